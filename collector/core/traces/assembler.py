"""Collects spans and log records into traces and decides when they can be read: a state machine
without clock.

`feed` takes what arrived and the time, `expire` returns the traces that time has made readable,
`deadline` says when to call it next, `drain` gives up everything. A wake-up that comes early, late
or with nothing to do is harmless. `completion` says when a trace can be read.

States of a trace
    open       spans arrive. It closes when it is complete and nothing arrived for `settle` (`root_ended`), when nothing arrived
               for `idle` (`idle`), at the age of `max_age` (`too_old`), or when it outgrows its bounds (`too_big`).
    retained   read once; it is kept for `late_ttl` (for less when `max_retained_bytes` are used up). A span that
               arrives now opens it again, and it is read again: a revision.
    forgotten  only its id is remembered. Spans that arrive now are dropped and counted as late.

With a journal behind it (`recall`), a trace can be *spilled*: its records are given up and only the
journal rows that hold them are kept, until it is looked at or grows. That happens to retained
traces at once, to the open ones that were silent longest when `max_open_bytes` are used up, and to
all of them at a restart.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import ClosedBy, LogRecord, Span, Trace
from pathgauge.collector.core.traces.ancestry import is_complete
from pathgauge.collector.core.traces.completion import Bounds, closed_by, settled_invocations
from pathgauge.collector.core.traces.journal_rows import Rows
from pathgauge.collector.core.traces.memory import Memory
from pathgauge.collector.core.traces.open_trace import OpenTrace, Recall, TraceKey, TraceSnapshot

AT_ONCE = 100
"""How many traces `expire` returns before what has arrived meanwhile gets its turn."""
AT_ONCE_BYTES = 16 << 20
"""How large they may become together."""


class Assembler:
    """The traces of one partition."""

    def __init__(
        self,
        bounds: Bounds,
        telemetry: InternalTelemetry,
        may_be_entry: Callable[[Span], bool],
        recall: Recall | None = None,
    ) -> None:
        """`may_be_entry` tells without decoding a span whether it may be the top-most one of an
        invocation.
        """
        self._bounds = bounds
        self._telemetry = telemetry
        self._may_be_entry = may_be_entry
        self._has_journal = recall is not None
        self._memory = Memory(bounds, telemetry, may_be_entry, recall)
        self._rows = Rows()
        self._traces: dict[TraceKey, OpenTrace] = {}
        self._retained: OrderedDict[TraceKey, None] = OrderedDict()
        self._forgotten: OrderedDict[TraceKey, str] = OrderedDict()
        self._due: list[tuple[float, TraceKey]] = []
        self._given_up: dict[TraceKey, None] = {}
        self._suspect = 0

    @property
    def open_traces(self) -> int:
        """Traces that wait to be read."""
        return len(self._traces) - len(self._retained)

    @property
    def retained_traces(self) -> int:
        """Traces that were read and are kept for spans that come late."""
        return len(self._retained)

    @property
    def spilled_traces(self) -> int:
        """Traces that wait to be read and whose records only the journal holds."""
        return max(0, self.open_traces - self._memory.spillable) if self._has_journal else 0

    @property
    def open_bytes(self) -> int:
        """What the open traces hold; retained ones give way and do not count."""
        return self._memory.open_bytes

    @property
    def full(self) -> bool:
        """Whether open traces have used up their memory, so that senders should retry later."""
        return self._memory.full

    def feed(
        self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float, row: int = 0
    ) -> Iterator[Trace]:
        """Take in what arrived at `now` in one journal row (0: there is no journal), and give each
        trace that outgrows its bounds.

        All of it is done while the caller iterates, so that what is beyond `max_open_bytes` is one
        trace at a time.
        """
        if row:
            self._rows.take(row)
        for key, records in _by_trace(chain(spans, logs)).items():
            yield from self._take_in(key, records, now, row)
            self._memory.tidy()
        if row:
            self._rows.give_back((row,))

    def expire(self, now: float) -> list[Trace]:
        """The traces, and the invocations of still busy traces, that have become readable by `now`,
        or some of them if they are many.
        """
        readable: list[Trace] = []
        size = 0
        while (
            self._due
            and self._due[0][0] <= now
            and len(readable) < AT_ONCE
            and size < AT_ONCE_BYTES
        ):
            due, key = heapq.heappop(self._due)
            trace = self._traces.get(key)
            if trace is not None and trace.due == due:
                found = self._check(trace, now)
                readable.extend(found)
                size += sum(len(span.raw) for one in found for span in one.spans)
                self._memory.tidy()
        return readable

    def deadline(self) -> float | None:
        """When `expire` may next have something to do."""
        return self._due[0][0] if self._due else None

    def drain(self, now: float) -> list[Trace]:
        """Close everything that is open, complete or not."""
        waiting = [trace for trace in self._traces.values() if trace.closed_at is None]
        return [
            self._close(trace, "root_ended" if is_complete(trace.spans) else "shutdown", now)
            for trace in waiting
        ]

    def oldest(self, most: int) -> list[OpenTrace]:
        """The traces that wait to be read, the longest open first."""
        waiting = (trace for trace in self._traces.values() if trace.closed_at is None)
        return heapq.nsmallest(most, waiting, key=lambda trace: trace.first)

    @property
    def has_released(self) -> bool:
        """Whether there are journal rows that no trace needs any more."""
        return self._rows.any_released

    def released(self) -> list[int]:
        """Journal rows that no trace needs any more; each is told once."""
        return self._rows.released()

    def given_up(self) -> list[TraceKey]:
        """Traces that were forgotten before their time, or of which something came too late; they
        have to stay forgotten.
        """
        given_up, self._given_up = list(self._given_up), {}
        return given_up

    def standing(self, key: TraceKey) -> TraceSnapshot:
        """What has to outlive the process for `key` to be known after a restart."""
        trace = self._traces.get(key)
        if trace is not None:
            return trace.standing()
        return TraceSnapshot(key, (), 0.0, 0.0, forgotten=self._forgotten.get(key, "late"))

    def standings(self) -> Iterator[TraceSnapshot]:
        """All traces that are open or retained."""
        return (trace.standing() for trace in self._traces.values())

    def restore(self, standing: TraceSnapshot, now: float) -> None:
        """Know a trace again after a restart; its records stay in the journal until they are
        needed.
        """
        for row in standing.rows:
            self._rows.take(row)
        closed_at = standing.closed_at
        if standing.forgotten or (
            closed_at is not None and closed_at + self._bounds.late_ttl <= now
        ):
            self._rows.give_back(standing.rows)
            self._remember(standing.key, standing.forgotten or "late")
            return
        trace = OpenTrace(
            standing.key,
            standing.first,
            standing.last,
            rows=list(standing.rows),
            completed=standing.completed,
        )
        self._traces[standing.key] = trace
        self._memory.spill(trace)
        if closed_at is None:
            self._schedule(trace, standing.last + self._bounds.settle)
        else:
            self._retain(trace, closed_at)

    def suspect(self, row: int) -> None:
        """Journal rows up to `row` may be lost: what waits and came by then may lack something, and
        says so.
        """
        if row <= self._suspect:
            return
        self._suspect = row
        for trace in self._traces.values():
            if trace.closed_at is None and trace.rows and trace.rows[0] <= row:
                trace.damaged = True

    def forget_retained(self, traces: int) -> int:
        """Give up the traces that were read longest ago, so that their journal rows can go; returns
        how many.
        """
        oldest = list(islice(self._retained, traces))
        for key in oldest:
            self._give_up(key)
        return len(oldest)

    def discard(self, keys: Iterable[TraceKey]) -> None:
        """Forget traces, read or not. What still comes of them is dropped, even if nothing came
        before.
        """
        for key in keys:
            trace = self._traces.get(key)
            if trace is None:
                self._remember(key, "purged")
            else:
                self._forget(trace, "purged")
            self._given_up.pop(key, None)

    def _take_in(
        self, key: TraceKey, records: Iterable[Span | LogRecord], now: float, row: int
    ) -> Iterator[Trace]:
        for record in records:
            trace = self._find(key, now, record)
            if trace is not None and self._add(trace, record, now, row) and self._too_big(trace):
                yield self._cut(trace)

    def _find(self, key: TraceKey, now: float, item: Span | LogRecord) -> OpenTrace | None:
        trace = self._traces.get(key)
        if trace is None:
            reason = self._forgotten.get(key)
            if reason is not None:
                self._drop(item, reason)
                if reason == "late" and self._has_journal:
                    self._given_up[key] = (
                        None  # other traces may keep the row, in which a restart would find it
                    )
                return None
            trace = self._traces[key] = OpenTrace(key, now, now)
            self._schedule(trace, now + self._bounds.settle)
            self._telemetry.traces_opened.add()
        elif trace.spilled:
            self._memory.load(trace)
        return trace

    def _add(self, trace: OpenTrace, record: Span | LogRecord, now: float, row: int) -> bool:
        return (
            self._add_span(trace, record, now, row)
            if isinstance(record, Span)
            else self._add_log(trace, record, now, row)
        )

    def _add_span(self, trace: OpenTrace, span: Span, now: float, row: int) -> bool:
        before = trace.size
        match trace.add_span(span, now, entry_agent=self._may_be_entry(span)):
            case "added":
                self._telemetry.spans_assembled.add()
            case "replaced":
                self._drop(span, "conflict")
            case reason:
                self._drop(span, reason)
                return False
        self._took(trace, before, now, row)
        return True

    def _add_log(self, trace: OpenTrace, log: LogRecord, now: float, row: int) -> bool:
        before = trace.size
        if trace.add_log(log, now) == "duplicate":
            self._drop(log, "duplicate")
            return False
        self._telemetry.logs_assembled.add()
        self._took(trace, before, now, row)
        return True

    def _took(self, trace: OpenTrace, size_before: int, now: float, row: int) -> None:
        """Something new came: open the trace again if it was read, and look at it after `settle` at
        the latest.
        """
        self._memory.grew(trace, size_before)
        if trace.closed_at is not None:
            trace.closed_at = None
            trace.first = now
            del self._retained[trace.key]
        if trace.due > now + self._bounds.settle:
            self._schedule(trace, now + self._bounds.settle)
        if self._has_journal and (not trace.rows or trace.rows[-1] != row):
            trace.rows.append(row)
            self._rows.take(row)
            trace.damaged = trace.damaged or row <= self._suspect

    def _drop(self, item: Span | LogRecord, reason: str) -> None:
        (
            self._telemetry.spans_dropped
            if isinstance(item, Span)
            else self._telemetry.logs_dropped
        ).add(reason)

    def _schedule(self, trace: OpenTrace, due: float) -> None:
        trace.due = due
        heapq.heappush(self._due, (due, trace.key))

    def _too_big(self, trace: OpenTrace) -> bool:
        return (
            len(trace.spans) > self._bounds.max_trace_spans
            or trace.size > self._bounds.max_trace_bytes
        )

    def _cut(self, trace: OpenTrace) -> Trace:
        """Close a trace that grew too big; what still comes of it is dropped."""
        self._count_completed(trace, "too_big")
        self._forget(trace, "trace_too_big")
        return trace.readable(trace.spans.values(), "too_big", truncated=True)

    def _check(self, trace: OpenTrace, now: float) -> list[Trace]:
        bounds = self._bounds
        if trace.closed_at is not None:
            self._forget(trace, "late")
            return []
        if trace.spilled:
            self._memory.load(trace)
        reason = closed_by(trace, bounds, now)
        if reason is not None:
            return [self._close(trace, reason, now)]
        settled = list(settled_invocations(trace, bounds, now))
        quiet = trace.last + (bounds.settle if trace.last + bounds.settle > now else bounds.idle)
        self._schedule(trace, min(quiet, trace.first + bounds.max_age))
        return settled

    def _close(self, trace: OpenTrace, reason: ClosedBy, now: float) -> Trace:
        self._count_completed(trace, reason)
        readable = trace.readable(trace.spans.values(), reason)
        self._retain(trace, now)
        self._make_room()
        return readable

    def _retain(self, trace: OpenTrace, closed_at: float) -> None:
        self._memory.retain(trace)
        trace.closed_at = closed_at
        self._retained[trace.key] = None
        self._schedule(trace, closed_at + self._bounds.late_ttl)

    def _count_completed(self, trace: OpenTrace, reason: ClosedBy) -> None:
        if not trace.completed:
            self._telemetry.traces_completed.add(reason)
        trace.completed = True

    def _make_room(self) -> None:
        while self._memory.retained_bytes > self._bounds.max_retained_bytes:
            self._give_up(next(iter(self._retained)))

    def _give_up(self, key: TraceKey) -> None:
        self._forget(self._traces[key], "late")
        if self._has_journal:
            self._given_up[key] = None

    def _forget(self, trace: OpenTrace, reason: str) -> None:
        del self._traces[trace.key]
        self._memory.forget(trace, retained=trace.key in self._retained)
        self._rows.give_back(trace.rows)
        self._retained.pop(trace.key, None)
        self._remember(trace.key, reason)

    def _remember(self, key: TraceKey, reason: str) -> None:
        self._forgotten[key] = reason
        if len(self._forgotten) > self._bounds.max_forgotten:
            self._forgotten.popitem(last=False)


def _by_trace(records: Iterable[Span | LogRecord]) -> dict[TraceKey, list[Span | LogRecord]]:
    found: dict[TraceKey, list[Span | LogRecord]] = {}
    for record in records:
        found.setdefault((record.tenant, record.trace_id), []).append(record)
    return found
