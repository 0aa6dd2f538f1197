"""The configuration: pydantic models that define the format of the file, one class per section, and
`load`.

docs/configuration.md documents the format for operators.
"""

from pathgauge.collector.config.config import Config
from pathgauge.collector.config.exporters import Prometheus
from pathgauge.collector.config.judging import Judge
from pathgauge.collector.config.loading import criteria_of_file, load
from pathgauge.collector.config.operating import Canary
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
    "Prometheus",
    "Protocols",
    "Tenant",
    "Tls",
    "criteria_of_file",
    "load",
]
