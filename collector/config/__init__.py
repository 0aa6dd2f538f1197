"""The configuration: a YAML or JSON file comes in, a `Config` goes out, every value checked and
every default filled in.

The models are the format, one class a section. docs/configuration.md tells it to operators.
"""

from pathgauge.collector.config.config import Config
from pathgauge.collector.config.events import OtlpEvents
from pathgauge.collector.config.exporting import Canary, Prometheus
from pathgauge.collector.config.judging import Judge
from pathgauge.collector.config.loading import criteria_of_file, load
from pathgauge.collector.config.receiving import Auth, Grpc, Http, Protocols, Tenant, Tls
from pathgauge.collector.config.scoring import Assembly

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
