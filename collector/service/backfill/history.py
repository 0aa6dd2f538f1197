"""Traces of the past, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pathgauge.collector.core.otlp.spans import LogRecord, Span


class SourceError(OSError):
    """The source cannot be read; the message is for the operator."""


class TooManyError(Exception):
    """More traces than the limit. A shorter time has fewer."""


@dataclass(frozen=True, slots=True)
class PastTrace:
    """A whole trace. Times in Unix nanoseconds."""

    trace_id: str
    start: int
    end: int
    spans: Sequence[Span]
    logs: Sequence[LogRecord] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The traces of some time."""

    traces: Sequence[PastTrace]
    rejected: int = 0
    """Spans and log records that are not valid OTLP."""
    notes: Sequence[str] = ()


class Source(Protocol):
    """Where traces are kept."""

    name: str
    """What distinguishes it from other sources, without credentials."""

    def read(self, since: int, until: int, limit: int) -> Found:
        """The traces that began at `since` or later and before `until`. Raises `TooManyError` if
        there are more than about `limit`, and `SourceError`.
        """
        ...

    def begin(self, since: int, until: int) -> int:
        """When the first trace of this time began, as far as that is known without a search."""
        ...

    def close(self) -> None:
        """End connections, delete temporary files."""
        ...


def whole_traces(
    spans: Iterable[Span], logs: Iterable[LogRecord], since: int, until: int
) -> list[PastTrace]:
    """Group spans by trace, and keep those that began in this time. Log records without a span of
    their trace are left out: nothing tells when it began.
    """
    of_trace: dict[str, list[Span]] = {}
    records: dict[str, list[LogRecord]] = {}
    for span in spans:
        of_trace.setdefault(span.trace_id, []).append(span)
    for log in logs:
        records.setdefault(log.trace_id, []).append(log)
    found = []
    for trace_id, members in of_trace.items():
        start = min(span.start_ns for span in members)
        if since <= start < until:
            end = max(max(span.end_ns, span.start_ns) for span in members)
            found.append(PastTrace(trace_id, start, end, members, records.get(trace_id, ())))
    return found
