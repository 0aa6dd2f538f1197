"""The sections of the configuration about what goes out, what is stored, and what the collector
says of itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from pathgauge.collector.config.events import OtlpEvents
from pathgauge.collector.config.receiving import Tls
from pathgauge.collector.config.section import Section, empty, off
from pathgauge.collector.core.documents.quantities import (
    Count,
    Duration,
    Endpoint,
    FileName,
    Size,
    parse_endpoint,
)
from pathgauge.scorers.types import Json

_MiB = 2**20


class Prometheus(Section):
    """The endpoint that Prometheus scrapes."""

    endpoint: Annotated[Endpoint, BeforeValidator(parse_endpoint)] = Endpoint("127.0.0.1", 9464)
    max_series: Count = 1500
    token_file: str | None = None
    tls: Annotated[Tls | None, BeforeValidator(off)] = None


class Exporters(Section):
    """Where scores go out."""

    prometheus: Prometheus = Prometheus()
    otlp: Annotated[OtlpEvents | None, BeforeValidator(off)] = None


class Canary(Section):
    """A trace that the collector sends to itself. Times in seconds."""

    interval: Annotated[Duration, Field(ge=1.0)] = 30.0


class Logging(Section):
    """What pathgauge says of itself on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


class Store(Section):
    """Where requests and results outlive the process."""

    path: FileName = "pathgauge-data"
    """A folder, relative to `folder`."""
    max_bytes: Annotated[Size, Field(ge=64 * _MiB)] = 10 * 1024 * _MiB
    max_backlog_age: Annotated[Duration, Field(gt=0)] = 20.0
    """Of the oldest request that waits to be read, in seconds; senders beyond it are told to retry.
    """
    retention: Duration = 7 * 86_400.0
    """Of results, in seconds."""


def in_memory(value: Json) -> Json:
    """The word `memory` in the place of the section means that there is no store."""
    if isinstance(value, str) and value != "memory":
        raise ValueError("memory, or a mapping such as {path: pathgauge-data}")
    return None if value == "memory" else empty(value)
