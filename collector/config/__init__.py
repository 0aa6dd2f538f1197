"""The configuration: a YAML or JSON file comes in, a `Config` goes out, every value checked and every default filled in.

The models are the format, one class a section. docs/configuration.md tells it to operators.
"""

from collector.config.config import Config
from collector.config.events import OtlpEvents
from collector.config.judging import Judge
from collector.config.loading import criteria_of_file, load
from collector.config.receiving import Auth, Grpc, Http, Protocols, Tenant, Tls
from collector.config.running import Canary, Prometheus
from collector.config.scoring import Assembly

__all__ = [
    "Assembly",
    "Auth",
    "Canary",
    "Config",
    "Grpc",
    "Http",
    "Judge",
    "OtlpEvents",
    "Prometheus",
    "Protocols",
    "Tenant",
    "Tls",
    "criteria_of_file",
    "load",
]
