"""Collects spans and log records into traces and decides when they can be read: a state machine without clock.

`feed` takes what arrived and the time, `expire` returns the traces that time has made readable, `deadline` says when to call it
next, `drain` gives up everything. A wake-up that comes early, late or with nothing to do is harmless.

States of a trace
    open       spans arrive. It closes when it is complete and nothing arrived for `settle` (`root_ended`), when nothing arrived
               for `idle` (`idle`), at the age of `max_age` (`too_old`), or when it outgrows its bounds (`too_big`).
    retained   read once; its spans are kept for `late_ttl` (for less when `max_retained_bytes` are used up). A span that
               arrives now opens it again, and it is read again: a revision.
    forgotten  only its id is remembered. Spans that arrive now are dropped and counted as late.

A trace is complete when every known part of it begins with a span without parent, or was entered from another process, which may
never tell of the caller. A root alone is not enough: it may have answered its request while the agent below it still works.
In a trace that never falls silent an invocation is read on its own as soon as its anchor is known to be the top-most one and
nothing arrived below it for `settle`. Under a parent that has not arrived, that is known only when the anchors there bear one
name and a later one exists: the parent is then a session or a batch, not a workflow.

Equal copies of a span change nothing. Of unequal ones the copy that ended later (then the longer one) is kept, whatever the order.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from collector.lineage import Lineage, is_complete
from collector.spans import ClosedBy, LogRecord, Span, Trace, start_order
from collector.telemetry import Ledger

Key = tuple[str, str]
"""Tenant and trace id."""

SPAN_OVERHEAD = 620
"""Bytes that a held span costs beside its own: the growth of the resident set for each span that waits."""

AT_ONCE = 100
"""How many traces `expire` returns before what has arrived meanwhile gets its turn."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Times in seconds, sizes in bytes."""

    settle: float = 6.0
    idle: float = 30.0
    max_age: float = 600.0
    late_ttl: float = 300.0
    max_trace_spans: int = 10_000
    max_trace_bytes: int = 16 << 20
    max_open_bytes: int = 512 << 20
    max_retained_bytes: int = 32 << 20
    max_forgotten: int = 200_000


@dataclass(slots=True)
class _OpenTrace:
    key: Key
    first: float
    last: float
    spans: dict[str, Span] = field(default_factory=dict)
    logs: dict[tuple[str | None, bytes], LogRecord] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    """When a span, or a log record of a span, arrived last, by span id."""
    anchors: list[str] = field(default_factory=list)
    settled: dict[str, float] = field(default_factory=dict)
    """Anchors that were read on their own, with the last arrival below them that was read."""
    size: int = 0
    due: float = 0.0
    """When it is looked at next; an older entry of the schedule is void."""
    closed_at: float | None = None
    completed: bool = False


class Assembler:
    """The traces of one partition."""

    def __init__(self, bounds: Bounds, ledger: Ledger, may_be_anchor: Callable[[Span], bool]) -> None:
        """`may_be_anchor` tells without decoding a span whether it may be the top-most one of an invocation."""
        self._bounds = bounds
        self._ledger = ledger
        self._may_be_anchor = may_be_anchor
        self._traces: dict[Key, _OpenTrace] = {}
        self._retained: OrderedDict[Key, None] = OrderedDict()
        self._forgotten: OrderedDict[Key, str] = OrderedDict()
        self._due: list[tuple[float, Key]] = []
        self._size = 0
        self._retained_size = 0

    @property
    def open_traces(self) -> int:
        """Traces that wait to be read."""
        return len(self._traces) - len(self._retained)

    @property
    def open_bytes(self) -> int:
        """What the open traces hold; retained ones give way and do not count."""
        return self._size - self._retained_size

    @property
    def full(self) -> bool:
        """Whether open traces have used up their memory, so that senders should retry later."""
        return self.open_bytes >= self._bounds.max_open_bytes

    def feed(self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float) -> list[Trace]:
        """Take in what arrived at `now`; returns traces that outgrew their bounds."""
        grown: list[Trace] = []
        for span in spans:
            trace = self._find((span.tenant, span.trace_id), now, span)
            if trace is not None and self._add_span(trace, span, now) and self._too_big(trace):
                grown.append(self._cut(trace))
        for log in logs:
            trace = self._find((log.tenant, log.trace_id), now, log)
            if trace is not None and self._add_log(trace, log, now) and self._too_big(trace):
                grown.append(self._cut(trace))
        return grown

    def expire(self, now: float) -> list[Trace]:
        """The traces, and the invocations of still busy traces, that have become readable by `now`, or some of them if they are many."""
        readable: list[Trace] = []
        while self._due and self._due[0][0] <= now and len(readable) < AT_ONCE:
            due, key = heapq.heappop(self._due)
            trace = self._traces.get(key)
            if trace is not None and trace.due == due:
                readable.extend(self._check(trace, now))
        return readable

    def deadline(self) -> float | None:
        """When `expire` may next have something to do."""
        return self._due[0][0] if self._due else None

    def drain(self, now: float) -> list[Trace]:
        """Close everything that is open, complete or not."""
        waiting = [trace for trace in self._traces.values() if trace.closed_at is None]
        return [self._close(trace, "root_ended" if is_complete(trace.spans) else "shutdown", now) for trace in waiting]

    def _find(self, key: Key, now: float, item: Span | LogRecord) -> _OpenTrace | None:
        trace = self._traces.get(key)
        if trace is None:
            reason = self._forgotten.get(key)
            if reason is not None:
                self._drop(item, reason)
                return None
            trace = self._traces[key] = _OpenTrace(key, now, now)
            self._schedule(trace, now + self._bounds.settle)
            self._ledger.traces_opened.add()
        return trace

    def _add_span(self, trace: _OpenTrace, span: Span, now: float) -> bool:
        known = trace.spans.get(span.span_id)
        if known is not None and not _supersedes(span, known):
            self._drop(span, "duplicate" if span.raw == known.raw else "conflict")
            return False
        self._touch(trace, now)
        if known is not None:
            self._drop(known, "conflict")
            self._resize(trace, -len(known.raw) - SPAN_OVERHEAD)
        else:
            self._ledger.spans_assembled.add()
            if self._may_be_anchor(span):
                trace.anchors.append(span.span_id)
        span.trace_id = trace.key[1]  # equal, but one string for all spans of the trace
        trace.spans[span.span_id] = span
        trace.arrived[span.span_id] = trace.last = now
        self._resize(trace, len(span.raw) + SPAN_OVERHEAD)
        return True

    def _add_log(self, trace: _OpenTrace, log: LogRecord, now: float) -> bool:
        identity = log.span_id, log.raw
        if identity in trace.logs:
            self._drop(log, "duplicate")
            return False
        self._touch(trace, now)
        trace.logs[identity] = log
        trace.last = now
        if log.span_id is not None:
            trace.arrived[log.span_id] = now
        self._resize(trace, len(log.raw) + SPAN_OVERHEAD)
        self._ledger.logs_assembled.add()
        return True

    def _drop(self, item: Span | LogRecord, reason: str) -> None:
        (self._ledger.spans_dropped if isinstance(item, Span) else self._ledger.logs_dropped).add(reason)

    def _touch(self, trace: _OpenTrace, now: float) -> None:
        """Something new came: open the trace again if it was read, and look at it after `settle` at the latest."""
        if trace.closed_at is not None:
            trace.closed_at = None
            trace.first = now
            del self._retained[trace.key]
            self._retained_size -= trace.size
        if trace.due > now + self._bounds.settle:
            self._schedule(trace, now + self._bounds.settle)

    def _schedule(self, trace: _OpenTrace, due: float) -> None:
        trace.due = due
        heapq.heappush(self._due, (due, trace.key))

    def _resize(self, trace: _OpenTrace, change: int) -> None:
        trace.size += change
        self._size += change

    def _too_big(self, trace: _OpenTrace) -> bool:
        return len(trace.spans) > self._bounds.max_trace_spans or trace.size > self._bounds.max_trace_bytes

    def _cut(self, trace: _OpenTrace) -> Trace:
        """Close a trace that grew too big; what still comes of it is dropped."""
        self._count_completed(trace, "too_big")
        self._forget(trace, "trace_too_big")
        return _readable(trace, trace.spans.values(), "too_big", truncated=True)

    def _check(self, trace: _OpenTrace, now: float) -> list[Trace]:
        bounds = self._bounds
        if trace.closed_at is not None:
            self._forget(trace, "late")
            return []
        closed_by = self._closed_by(trace, now)
        if closed_by is not None:
            return [self._close(trace, closed_by, now)]
        settled = list(self._settled_invocations(trace, now))
        quiet = trace.last + (bounds.settle if trace.last + bounds.settle > now else bounds.idle)
        self._schedule(trace, min(quiet, trace.first + bounds.max_age))
        return settled

    def _closed_by(self, trace: _OpenTrace, now: float) -> ClosedBy | None:
        if now >= trace.last + self._bounds.settle and is_complete(trace.spans):
            return "root_ended"
        if now >= trace.last + self._bounds.idle:
            return "idle"
        return "too_old" if now >= trace.first + self._bounds.max_age else None

    def _close(self, trace: _OpenTrace, closed_by: ClosedBy, now: float) -> Trace:
        trace.closed_at = now
        self._count_completed(trace, closed_by)
        self._retained[trace.key] = None
        self._retained_size += trace.size
        self._schedule(trace, now + self._bounds.late_ttl)
        self._make_room()
        return _readable(trace, trace.spans.values(), closed_by)

    def _count_completed(self, trace: _OpenTrace, closed_by: ClosedBy) -> None:
        if not trace.completed:
            self._ledger.traces_completed.add(closed_by)
        trace.completed = True

    def _settled_invocations(self, trace: _OpenTrace, now: float) -> Iterator[Trace]:
        """Invocations of a busy trace that are known to be whole and have been quiet long enough."""
        if not trace.anchors:
            return
        lineage = Lineage(trace.spans, trace.anchors)
        for anchor in lineage.known_tops():
            below = lineage.below(anchor)
            last = max(trace.arrived[span.span_id] for span in below)
            if now >= last + self._bounds.settle and trace.settled.get(anchor.span_id) != last:
                trace.settled[anchor.span_id] = last
                yield _readable(trace, [*below, *lineage.above(anchor)], "root_ended")

    def _make_room(self) -> None:
        while self._retained_size > self._bounds.max_retained_bytes:
            self._forget(self._traces[next(iter(self._retained))], "late")

    def _forget(self, trace: _OpenTrace, reason: str) -> None:
        del self._traces[trace.key]
        self._size -= trace.size
        if trace.key in self._retained:
            del self._retained[trace.key]
            self._retained_size -= trace.size
        self._forgotten[trace.key] = reason
        if len(self._forgotten) > self._bounds.max_forgotten:
            self._forgotten.popitem(last=False)


def _supersedes(span: Span, known: Span) -> bool:
    return (span.end_ns, len(span.raw), span.raw) > (known.end_ns, len(known.raw), known.raw)


def _readable(trace: _OpenTrace, spans: Iterable[Span], closed_by: ClosedBy, *, truncated: bool = False) -> Trace:
    held = {span.span_id: span for span in spans}
    whole = len(held) == len(trace.spans)
    logs = (log for log in trace.logs.values() if whole or log.span_id in held)
    return Trace(
        tenant=trace.key[0],
        trace_id=trace.key[1],
        spans=tuple(sorted(held.values(), key=start_order)),
        logs=tuple(sorted(logs, key=lambda log: (log.time_ns, log.raw))),
        closed_by=closed_by,
        truncated=truncated,
    )
