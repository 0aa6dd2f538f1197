"""The files of `deploy/` that other programs read: their documents, and the ports of pathgauge that
they must agree with.
"""

from __future__ import annotations

from typing import Any

import yaml

from pathgauge.collector.config import Config
from support.repository import ROOT

DEPLOY = ROOT / "deploy"
TOKEN = "a-token-of-enough-letters"


def document(*path: str) -> Any:
    """The only YAML document of a file below `deploy`."""
    return yaml.safe_load(DEPLOY.joinpath(*path).read_text())


def documents(*path: str) -> list[Any]:
    """All YAML documents of a file below `deploy`."""
    return list(yaml.safe_load_all(DEPLOY.joinpath(*path).read_text()))


def default_ports() -> dict[str, int]:
    """Where pathgauge listens unless it is told otherwise."""
    config = Config()
    protocols = config.receivers.otlp.protocols
    assert protocols.grpc
    assert protocols.http
    endpoints = {
        "otlp-grpc": protocols.grpc.endpoint,
        "otlp-http": protocols.http.endpoint,
        "metrics": config.exporters.prometheus.endpoint,
    }
    return {name: endpoint.port for name, endpoint in endpoints.items()}
