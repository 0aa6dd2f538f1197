"""The sections about operation: the store, the canary and the log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pathgauge.collector.config.section import Section, default_if_empty
from pathgauge.collector.core.documents.quantities import (
    Duration,
    FileName,
    Size,
)
from pathgauge.scorers.types import Json

_MiB = 2**20


class Canary(Section):
    """A trace that the collector sends to itself. Times in seconds."""

    interval: Annotated[Duration, Field(ge=1.0)] = 30.0


class Logging(Section):
    """The log on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


class Store(Section):
    """Durable storage of requests and results."""

    path: FileName = "pathgauge-data"
    """A folder, relative to `folder`."""
    max_bytes: Annotated[Size, Field(ge=64 * _MiB)] = 10 * 1024 * _MiB
    max_backlog_age: Annotated[Duration, Field(gt=0)] = 20.0
    """Seconds that the oldest request may wait to be read. Beyond it, senders are told to retry."""
    retention: Duration = 7 * 86_400.0
    """How long results are kept, in seconds."""


def in_memory(value: Json) -> Json:
    """`None` for the word `memory`, which replaces the section."""
    if isinstance(value, str) and value != "memory":
        raise ValueError("memory, or a mapping such as {path: pathgauge-data}")
    return None if value == "memory" else default_if_empty(value)
