"""Adds arriving records to traces, and counts those that are added and those that are dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.traces.completion import Bounds, is_too_big
from pathgauge.collector.core.traces.open_trace import OpenTrace, TraceKey

Record = Span | LogRecord


def by_trace(records: Iterable[Record]) -> Mapping[TraceKey, Sequence[Record]]:
    """The records of each trace, in order."""
    found: dict[TraceKey, list[Record]] = {}
    for record in records:
        found.setdefault((record.tenant, record.trace_id), []).append(record)
    return found


class Intake:
    """Adds records to open traces."""

    def __init__(
        self, bounds: Bounds, telemetry: InternalTelemetry, may_be_entry: Callable[[Span], bool]
    ) -> None:
        """`may_be_entry` tells whether a span may be an entry agent, without decoding it."""
        self._bounds = bounds
        self._telemetry = telemetry
        self._may_be_entry = may_be_entry

    def add(
        self, trace: OpenTrace, records: Sequence[Record], start: int, now: float
    ) -> tuple[int, bool]:
        """Add the records from `start` on, until the trace is too big. Returns where the rest
        begins, and whether any record added anything.
        """
        has_grown = False
        for at in range(start, len(records)):
            if self._add(trace, records[at], now):
                has_grown = True
                if is_too_big(trace, self._bounds):
                    return at + 1, True
        return len(records), has_grown

    def drop(self, record: Record, reason: str) -> None:
        """Count a record that is not part of any trace, or replaced another one."""
        if isinstance(record, Span):
            self._telemetry.spans_dropped.add(reason)
        else:
            self._telemetry.logs_dropped.add(reason)

    def _add(self, trace: OpenTrace, record: Record, now: float) -> bool:
        """Whether the record added anything."""
        if isinstance(record, Span):
            return self._add_span(trace, record, now)
        return self._add_log(trace, record, now)

    def _add_span(self, trace: OpenTrace, span: Span, now: float) -> bool:
        match trace.add_span(span, now, entry_agent=self._may_be_entry(span)):
            case "added":
                self._telemetry.spans_assembled.add()
            case "replaced":
                self.drop(span, "conflict")
            case "described":
                self.drop(span, "duplicate")
            case reason:
                self.drop(span, reason)
                return False
        return True

    def _add_log(self, trace: OpenTrace, log: LogRecord, now: float) -> bool:
        if trace.add_log(log, now) == "duplicate":
            self.drop(log, "duplicate")
            return False
        self._telemetry.logs_assembled.add()
        return True
