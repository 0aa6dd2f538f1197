"""One trace while it is collected: its records, the journal rows they came in, and what is known
when only the rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pathgauge.collector.core.otlp.spans import (
    ClosedBy,
    LogRecord,
    Resource,
    Span,
    Trace,
    start_order,
)

TraceKey = tuple[str, str]
"""Tenant and trace id."""

SPAN_OVERHEAD = 620
"""Bytes that a held span costs beside its own: the growth of the resident set for each span that
waits.
"""
SPILLED_BYTES = 700
"""What a trace costs of which only the rows are known, without them."""
_ROW_BYTES = 40

Addition = Literal["added", "duplicate", "conflict", "replaced"]


class Recalled(NamedTuple):
    """The records that a journal row holds of one trace."""

    at: float
    """When they arrived."""
    spans: Sequence[Span]
    logs: Sequence[LogRecord]


Recall = Callable[[TraceKey, Sequence[int]], Iterable[Recalled]]
"""Reads the records of a trace from rows of the journal, in their order; a row that cannot be read
is left out.
"""


@dataclass(frozen=True, slots=True)
class TraceSnapshot:
    """What outlives the process beside the rows of a trace."""

    key: TraceKey
    rows: tuple[int, ...]
    first: float
    last: float
    closed_at: float | None = None
    """When it was read; `None` while it waits, or when nobody knows what was said of it."""
    forgotten: str | None = None
    """Why what still comes of it is dropped."""
    completed: bool = False
    """Whether it was ever read."""


@dataclass(slots=True)
class OpenTrace:
    """The records of one trace, or only its rows when it was spilled."""

    key: TraceKey
    first: float
    last: float
    spans: dict[str, Span] = field(default_factory=dict)
    logs: dict[tuple[str | None, bytes], LogRecord] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    """When a span, or a log record of a span, arrived last, by span id."""
    entry_agents: list[str] = field(default_factory=list)
    settled: dict[str, float] = field(default_factory=dict)
    """Anchors that were read on their own, with the last arrival below them that was read."""
    rows: list[int] = field(default_factory=list)
    resources: set[int] = field(default_factory=set)
    """Identities of the resources that are charged: spans of one request share theirs."""
    size: int = 0
    due: float = 0.0
    """When it is looked at next; an older entry of the schedule is void."""
    closed_at: float | None = None
    completed: bool = False
    spilled: bool = False
    damaged: bool = False
    """Whether a row of it could not be read again."""

    def add_span(self, span: Span, now: float, *, entry_agent: bool) -> Addition:
        """Take a span in. Of unequal copies the one that ended later (then the longer one) is kept,
        whatever the order.
        """
        known = self.spans.get(span.span_id)
        if known is not None and not _supersedes(span, known):
            return "duplicate" if span.raw == known.raw else "conflict"
        if known is not None:
            self.size -= len(known.raw) + SPAN_OVERHEAD
        elif entry_agent:
            self.entry_agents.append(span.span_id)
        span.trace_id = self.key[1]  # equal, but one string for all spans of the trace
        self.spans[span.span_id] = span
        self.arrived[span.span_id] = self.last = now
        self.size += len(span.raw) + SPAN_OVERHEAD
        self._charge(span.resource)
        return "added" if known is None else "replaced"

    def add_log(self, log: LogRecord, now: float) -> Addition:
        """Take a log record in."""
        identity = log.span_id, log.raw
        if identity in self.logs:
            return "duplicate"
        self.logs[identity] = log
        self.last = now
        if log.span_id is not None:
            self.arrived[log.span_id] = now
        self.size += len(log.raw) + SPAN_OVERHEAD
        self._charge(log.resource)
        return "added"

    def spill(self) -> None:
        """Keep the rows alone."""
        self.spans, self.logs, self.arrived, self.entry_agents, self.resources = (
            {},
            {},
            {},
            [],
            set(),
        )
        self.size = SPILLED_BYTES + _ROW_BYTES * len(self.rows)
        self.spilled = True

    def fill(self, recalled: Iterable[Recalled], may_be_entry: Callable[[Span], bool]) -> None:
        """Take in again what was spilled."""
        last, found = self.last, 0
        self.size, self.spilled = 0, False
        for at, spans, logs in recalled:
            found += 1
            for span in spans:
                self.add_span(span, at, entry_agent=may_be_entry(span))
            for log in logs:
                self.add_log(log, at)
        self.last = last
        self.damaged = self.damaged or found < len(self.rows)

    def readable(
        self, spans: Iterable[Span], closed_by: ClosedBy, *, truncated: bool = False
    ) -> Trace:
        """These spans of the trace, with their log records, in a stable order."""
        held = {span.span_id: span for span in spans}
        whole = len(held) == len(self.spans)
        logs = (log for log in self.logs.values() if whole or log.span_id in held)
        return Trace(
            tenant=self.key[0],
            trace_id=self.key[1],
            spans=tuple(sorted(held.values(), key=start_order)),
            logs=tuple(sorted(logs, key=lambda log: (log.time_ns, log.raw))),
            closed_by=closed_by,
            truncated=truncated or self.damaged,
        )

    def _charge(self, resource: Resource) -> None:
        if id(resource) not in self.resources:
            self.resources.add(id(resource))
            self.size += resource.size

    def standing(self) -> TraceSnapshot:
        """What outlives the process."""
        return TraceSnapshot(
            self.key,
            tuple(self.rows),
            self.first,
            self.last,
            self.closed_at,
            completed=self.completed,
        )


def _supersedes(span: Span, known: Span) -> bool:
    return (span.end_ns, len(span.raw), span.raw) > (known.end_ns, len(known.raw), known.raw)
