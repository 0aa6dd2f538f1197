"""The sections about operation: the store, the evidence of results, the pages, the canary and the
log.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from pathgauge.collector.config.section import Section, default_if_empty
from pathgauge.collector.core.documents.quantities import (
    Duration,
    FileName,
    Size,
    at_least,
    parse_duration,
    parse_size,
)
from pathgauge.scorers.types import Json

_MiB = 2**20


class Canary(Section):
    """A trace that the collector sends to itself. Times in seconds."""

    interval: Annotated[Duration, at_least(parse_duration, "1s")] = 30.0


class Logging(Section):
    """The log on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


class Store(Section):
    """Durable storage of requests and results."""

    path: FileName = "pathgauge-data"
    """A folder, relative to `folder`."""
    max_bytes: Annotated[Size, at_least(parse_size, "64MiB")] = 10 * 1024 * _MiB
    max_backlog_age: Annotated[Duration, Field(gt=0)] = 20.0
    """Seconds that the oldest request may wait to be read. Beyond it, senders are told to retry."""
    retention: Duration = 7 * 86_400.0
    """How long results are kept, in seconds."""


class Evidence(Section):
    """What is kept to explain results."""

    keep: Literal["failed", "all", "none"] = "failed"
    passed_per_scenario: Annotated[int, Field(ge=0, le=1000)] = 20
    """Newest passed runs of a scenario that are kept with `keep: failed`."""
    max_bytes: Annotated[Size, Field(gt=0)] = 256 * _MiB
    retention: Duration = 7 * 86_400.0
    """In seconds."""


TRACE_ID, AGENT, SCENARIO = "{trace_id}", "{agent}", "{scenario}"


def parse_trace_url(value: str) -> str:
    """The value itself, if it is the address of a page for a trace."""
    return _page(value, TRACE_ID, f"https://tempo.example/trace/{TRACE_ID}")


def parse_dashboard_url(value: str) -> str:
    """The value itself, if it is the address of a dashboard for an agent."""
    example = f"https://grafana.example/d/pathgauge-scenario?var-agent={AGENT}"
    return _page(value, AGENT, f"{example}&var-scenario={SCENARIO}")


def _page(value: str, needed: str, example: str) -> str:
    expected = f"an address such as {example}"
    try:
        parts = urlsplit(value)
    except ValueError:
        raise ValueError(expected) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or needed not in value:
        raise ValueError(expected)
    return value


class Ui(Section):
    """The pages for people."""

    trace_url: Annotated[str, AfterValidator(parse_trace_url)] | None = None
    """The page of a trace in its backend; `{trace_id}` stands for the id in hexadecimal."""
    dashboard_url: Annotated[str, AfterValidator(parse_dashboard_url)] | None = None
    """The dashboard of an agent in a scenario, whose names replace `{agent}` and `{scenario}`."""
    hosts: tuple[str, ...] = ()
    """Host names by which browsers reach the pages, besides those of loopback."""


def in_memory(value: Json) -> Json:
    """`None` for the word `memory`, which replaces the section."""
    if isinstance(value, str) and value != "memory":
        raise ValueError("memory, or a mapping such as {path: pathgauge-data}")
    return None if value == "memory" else default_if_empty(value)
