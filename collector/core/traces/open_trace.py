"""A trace while it is collected: its records, or only its journal rows when it is spilled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
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
"""Bytes of memory per span in addition to its encoded size, measured as growth of the resident set
per waiting span.
"""
SPILLED_BYTES = 700
"""Bytes of memory of a spilled trace, without its list of rows."""
_ROW_BYTES = 40

AddResult = Literal["added", "duplicate", "conflict", "replaced", "described"]
"""`replaced`: took the place of another span with its id. `described`: it is the same span, with
more about its sender.
"""


class Recalled(NamedTuple):
    """The records of one trace in one journal row."""

    at: float
    """Time of arrival."""
    spans: Sequence[Span]
    logs: Sequence[LogRecord]


Recall = Callable[[TraceKey, Sequence[int]], Iterable[Recalled]]
"""Reads the records of a trace from journal rows, in their order. Unreadable rows are left out."""


@dataclass(frozen=True, slots=True)
class TraceSnapshot:
    """The state of a trace that is stored, in addition to its journal rows."""

    key: TraceKey
    rows: tuple[int, ...]
    first: float
    last: float
    closed_at: float | None = None
    """When it was read; `None` while it waits, or when it is unknown what was published of it."""
    forgotten: str | None = None
    """Why records that still arrive are dropped; `None` if they are not."""
    completed: bool = False
    """Whether it was ever read."""
    next_reading: float = 0.0
    """The pause after its last reading ends then."""
    read_entry_agents: int = 0
    """How many of its entry agents were read with the whole trace, in the order of arrival."""


@dataclass(slots=True)
class OpenTrace:
    """The records of one trace, or only its journal rows if it was spilled."""

    key: TraceKey
    first: float
    last: float
    spans: dict[str, Span] = field(default_factory=dict)
    logs: dict[tuple[str | None, bytes], LogRecord] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    """Last arrival of each span or of a log record of it, by span id."""
    entry_agents: list[str] = field(default_factory=list)
    early_reads: dict[str, float] = field(default_factory=dict)
    """Invocations that were read separately since the whole trace was read, by entry agent: the
    last arrival below it at that time.
    """
    read_entry_agents: int = 0
    """How many of `entry_agents` were read with the whole trace."""
    has_new_entry_agents: bool = False
    """Whether there may be others, which need not wait for `next_reading`."""
    read_until: float = 0.0
    """The last arrival when the whole trace was read."""
    next_reading: float = 0.0
    """What was read is not read again before, although records arrived."""
    unchanged_since: float | None = None
    """When it was read, if it is open only because copies of its records arrive."""
    rows: list[int] = field(default_factory=list)
    resources: set[int] = field(default_factory=set)
    """Identities of the resources included in `size`; spans of one request share a resource."""
    size: int = 0
    due: float = 0.0
    """When the assembler checks it next. Other entries of the schedule are void."""
    closed_at: float | None = None
    completed: bool = False
    spilled: bool = False
    damaged: bool = False
    """Whether one of its rows could not be read back."""

    def add_span(self, span: Span, now: float, *, entry_agent: bool) -> AddResult:
        """Add a span. Of two different copies, the one that ended later is kept, then the longer
        one, then that of the resource with more attributes, which a collector on the way may have
        added; the order of arrival does not matter.
        """
        known = self.spans.get(span.span_id)
        if known is not None and not _supersedes(span, known):
            return "duplicate" if span.raw == known.raw else "conflict"
        if known is not None:
            self.size -= len(known.raw) + SPAN_OVERHEAD
        elif entry_agent:
            self.entry_agents.append(span.span_id)
            if len(self.entry_agents) > self.read_entry_agents:
                self.has_new_entry_agents = True
        span.trace_id = self.key[1]  # equal, but one string for all spans of the trace
        self.spans[span.span_id] = span
        self.arrived[span.span_id] = self.last = now
        self.size += len(span.raw) + SPAN_OVERHEAD
        self._charge(span.resource)
        if known is None:
            return "added"
        return "described" if span.raw == known.raw else "replaced"

    def add_log(self, log: LogRecord, now: float) -> AddResult:
        """Add a log record."""
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

    def is_paused(self, now: float) -> bool:
        """Whether it was read, and must not be read as a whole now."""
        return self.completed and now < self.next_reading

    def note_reading(self) -> None:
        """Record that the whole trace is being read."""
        self.read_entry_agents, self.read_until = len(self.entry_agents), self.last
        self.has_new_entry_agents = False
        self.early_reads.clear()

    def spill(self) -> None:
        """Drop the records, keep the rows."""
        self.spans, self.logs, self.arrived = {}, {}, {}
        self.entry_agents, self.resources = [], set()
        self.size = SPILLED_BYTES + _ROW_BYTES * len(self.rows)
        self.spilled = True

    def fill(self, recalled: Iterable[Recalled], may_be_entry: Callable[[Span], bool]) -> None:
        """Add the spilled records again."""
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

    def logs_by_span(self) -> Mapping[str | None, Sequence[LogRecord]]:
        """The log records of each span."""
        found: dict[str | None, list[LogRecord]] = {}
        for log in self.logs.values():
            found.setdefault(log.span_id, []).append(log)
        return found

    def whole(
        self, closed_by: ClosedBy, *, truncated: bool = False, is_first: bool = False
    ) -> Trace:
        """A `Trace` of all records, in a stable order."""
        found = self._readable(self.spans.values(), self.logs.values(), closed_by, truncated)
        return replace(found, is_first=is_first)

    def part(
        self,
        spans: Iterable[Span],
        logs: Mapping[str | None, Sequence[LogRecord]],
        closed_by: ClosedBy,
    ) -> Trace:
        """A `Trace` of these spans with their log records, which `logs` has by span."""
        held = {span.span_id: span for span in spans}
        if len(held) == len(self.spans):
            return self.whole(closed_by)
        own = chain.from_iterable(logs.get(span_id, ()) for span_id in held)
        found = self._readable(held.values(), own, closed_by, truncated=False)
        return replace(found, is_part=True)

    def _readable(
        self,
        spans: Iterable[Span],
        logs: Iterable[LogRecord],
        closed_by: ClosedBy,
        truncated: bool,
    ) -> Trace:
        return Trace(
            tenant=self.key[0],
            trace_id=self.key[1],
            spans=tuple(sorted(spans, key=start_order)),
            logs=tuple(sorted(logs, key=lambda log: (log.time_ns, log.raw))),
            closed_by=closed_by,
            truncated=truncated or self.damaged,
        )

    def _charge(self, resource: Resource) -> None:
        if id(resource) not in self.resources:
            self.resources.add(id(resource))
            self.size += resource.size

    def snapshot(self) -> TraceSnapshot:
        """The state to be stored."""
        return TraceSnapshot(
            self.key,
            tuple(self.rows),
            self.first,
            self.last,
            self.unchanged_since if self.closed_at is None else self.closed_at,
            completed=self.completed,
            next_reading=self.next_reading,
            read_entry_agents=self.read_entry_agents,
        )


def _supersedes(span: Span, known: Span) -> bool:
    if span.raw != known.raw:
        return (span.end_ns, len(span.raw), span.raw) > (known.end_ns, len(known.raw), known.raw)
    if (span.resource.attributes, span.scope) == (known.resource.attributes, known.scope):
        return False
    return _sender(span) > _sender(known)


def _sender(span: Span) -> tuple[int, str, str, str]:
    """Resource and scope in a form that can be ordered."""
    attributes = span.resource.attributes
    return len(attributes), repr(sorted(attributes.items())), span.scope.name, span.scope.version
