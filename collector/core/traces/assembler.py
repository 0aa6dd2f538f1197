"""Collects spans and log records into traces and decides when a trace can be read.

A state machine without a clock: `feed` takes records and the time, `expire` returns the traces that
have become readable, `deadline` says when to call `expire` next. Calling it early, late or in vain
is harmless. The conditions for reading a trace are in `completion.py`.

States of a trace:

- *open*: records arrive. It is read when it is complete and quiet for `settle` (`root_ended`),
  quiet for `idle` although incomplete (`idle`), older than `max_age` (`too_old`), or larger than
  its limits (`too_big`).
- *retained*: it was read and is kept for `late_ttl`, or shorter if `max_retained_bytes` are used
  up. A record that arrives now opens it again; the next reading may cause revisions.
  After a reading that late records caused, the trace stays open for a pause even if it is quiet.
- *forgotten*: only its id is remembered. Records that arrive now are dropped and counted as
  `late`.

With a journal (`recall`), a trace can be *spilled*: its records are dropped from memory, and only
the numbers of its journal rows are kept until it is read or receives a record. Retained traces are
spilled at once, the quietest open traces when `max_open_bytes` are used up, and all traces at a
restart.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import ClosedBy, LogRecord, Span, Trace
from pathgauge.collector.core.traces.ancestry import is_complete
from pathgauge.collector.core.traces.completion import (
    Bounds,
    closed_by,
    is_too_big,
    pause_after_reading,
    quiet_invocations,
)
from pathgauge.collector.core.traces.forgotten import LATE, TOO_BIG, TOO_SLOW, ForgottenTraces
from pathgauge.collector.core.traces.intake import Intake, Record, by_trace
from pathgauge.collector.core.traces.journal_rows import JournalRows
from pathgauge.collector.core.traces.memory import Memory
from pathgauge.collector.core.traces.open_trace import OpenTrace, Recall, TraceKey, TraceSnapshot
from pathgauge.collector.core.traces.schedule import Schedule

AT_ONCE = 100
"""Maximum number of traces that `expire` returns at once, so that new records do not wait long."""
AT_ONCE_BYTES = 16 << 20
"""Size of their spans in bytes at which `expire` stops adding traces."""
_LOADING_SHARE = 0.1
"""Share of loading a trace from the journal in the cost of reading it."""


class Assembler:
    """All traces that are open, retained or forgotten."""

    def __init__(
        self,
        bounds: Bounds,
        telemetry: InternalTelemetry,
        may_be_entry: Callable[[Span], bool],
        recall: Recall | None = None,
    ) -> None:
        """`may_be_entry` tells whether a span may be an entry agent, without decoding it."""
        self._bounds = bounds
        self._telemetry = telemetry
        self._intake = Intake(bounds, telemetry, may_be_entry)
        self._has_journal = recall is not None
        self._memory = Memory(bounds, telemetry, may_be_entry, recall)
        self._rows = JournalRows()
        self._traces: dict[TraceKey, OpenTrace] = {}
        self._schedule = Schedule(self._traces)
        self._retained: OrderedDict[TraceKey, None] = OrderedDict()
        self._forgotten = ForgottenTraces(bounds.max_forgotten)
        self._suspect = 0

    @property
    def open_traces(self) -> int:
        """Number of traces that wait to be read."""
        return len(self._traces) - len(self._retained)

    @property
    def retained_traces(self) -> int:
        """Number of traces that were read and are kept for late spans."""
        return len(self._retained)

    @property
    def spilled_traces(self) -> int:
        """Number of open traces whose records are only in the journal."""
        if not self._has_journal:
            return 0
        return max(0, self.open_traces - self._memory.spillable)

    @property
    def open_bytes(self) -> int:
        """Memory of open traces in bytes. Retained traces do not count, as they can be dropped."""
        return self._memory.open_bytes

    @property
    def full(self) -> bool:
        """Whether open traces have used up their memory, so that senders should retry later."""
        return self._memory.full

    def feed(
        self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float, row: int = 0
    ) -> Iterator[Trace]:
        """Add records that arrived at `now` in journal row `row` (0: no journal). Yields each trace
        that exceeds its limits.

        The work is done while the caller iterates, so that at most one trace at a time is held
        beyond `max_open_bytes`.
        """
        if row:
            self._rows.take(row)
        for key, records in by_trace(chain(spans, logs)).items():
            yield from self._add_all(key, records, now, row)
            self._memory.spill_excess()
        if row:
            self._rows.release((row,))

    def expire(self, now: float) -> list[Trace]:
        """The traces, and single invocations of busy traces, that can be read at `now`. If they are
        many, only some of them; call it again for the rest.
        """
        readable: list[Trace] = []
        size = 0
        for trace in self._schedule.due_by(now):
            found = self._check(trace, now)
            readable.extend(found)
            size += sum(len(span.raw) for part in found for span in part.spans)
            self._memory.spill_excess()
            if len(readable) >= AT_ONCE or size >= AT_ONCE_BYTES:
                break
        return readable

    def deadline(self) -> float | None:
        """The earliest time at which `expire` may have something to do."""
        return self._schedule.next_due()

    def drain(self, now: float) -> list[Trace]:
        """Close all open traces, complete or not."""
        waiting = [
            trace
            for trace in self._traces.values()
            if trace.closed_at is None and trace.unchanged_since is None
        ]
        return [
            self._close(trace, "root_ended" if is_complete(trace.spans) else "shutdown", now)
            for trace in waiting
        ]

    def oldest(self, max_traces: int) -> list[OpenTrace]:
        """The traces that wait to be read, the one that has been open longest first."""
        waiting = (trace for trace in self._traces.values() if trace.closed_at is None)
        return heapq.nsmallest(max_traces, waiting, key=lambda trace: trace.first)

    @property
    def has_released(self) -> bool:
        """Whether `released` would return anything."""
        return self._rows.any_released

    def released(self) -> list[int]:
        """Journal rows that no trace needs any more. Each is returned once."""
        return self._rows.released()

    def given_up(self) -> list[TraceKey]:
        """Traces that were forgotten early, or received a record too late. The store must know, so
        that a restart does not open them again. Each is returned once.
        """
        return self._forgotten.unreported()

    def snapshot(self, key: TraceKey) -> TraceSnapshot:
        """The state of a trace to be stored."""
        trace = self._traces.get(key)
        if trace is not None:
            return trace.snapshot()
        return TraceSnapshot(key, (), 0.0, 0.0, forgotten=self._forgotten.reason(key) or LATE)

    def restore(self, snapshot: TraceSnapshot, now: float) -> None:
        """Restore a trace after a restart. Its records stay in the journal until needed."""
        for row in snapshot.rows:
            self._rows.take(row)
        closed_at = snapshot.closed_at
        too_old = closed_at is not None and closed_at + self._bounds.late_ttl <= now
        if snapshot.forgotten or too_old:
            self._rows.release(snapshot.rows)
            self._forgotten.remember(snapshot.key, snapshot.forgotten or LATE)
            return
        trace = OpenTrace(
            snapshot.key,
            snapshot.first,
            snapshot.last,
            rows=list(snapshot.rows),
            completed=snapshot.completed,
            next_reading=snapshot.next_reading,
            read_entry_agents=snapshot.read_entry_agents,
        )
        self._traces[snapshot.key] = trace
        self._memory.spill(trace)
        if closed_at is None:
            trace.has_new_entry_agents = True  # perhaps: its records were not looked at
            self._schedule.at(trace, snapshot.last + self._bounds.settle)
        else:
            self._retain(trace, closed_at)

    def suspect(self, row: int) -> None:
        """Journal rows up to `row` may be lost: open traces that began by then are read as
        truncated.
        """
        if row <= self._suspect:
            return
        self._suspect = row
        for trace in self._traces.values():
            if trace.closed_at is None and trace.rows and trace.rows[0] <= row:
                trace.damaged = True

    def forget_retained(self, traces: int) -> int:
        """Forget up to `traces` retained traces, those read first, so that their journal rows can
        be deleted. Returns how many were forgotten.
        """
        oldest = list(islice(self._retained, traces))
        for key in oldest:
            self._give_up(key)
        return len(oldest)

    def abandon(self, key: TraceKey) -> None:
        """Forget a trace that takes too long to read. Records that still arrive are dropped."""
        trace = self._traces.get(key)
        if trace is not None:
            self._count_completed(trace, "too_slow")
            self._forget(trace, TOO_SLOW)

    def discard(self, keys: Iterable[TraceKey]) -> None:
        """Purge traces, read or not. Records that still arrive for these ids are dropped."""
        for key in keys:
            trace = self._traces.get(key)
            if trace is not None:
                if not trace.completed:
                    self._count_completed(trace, "purged")
                    self._telemetry.traces_skipped.add("purged")
                self._drop(trace)
            self._forgotten.purge(key)

    def holds(self, key: TraceKey) -> bool:
        """Whether a trace is open or retained, so that it may be read, or read again."""
        return key in self._traces

    def is_purged(self, key: TraceKey) -> bool:
        """Whether a trace was purged, so that nothing about it may be kept."""
        return self._forgotten.is_purged(key)

    def _add_all(
        self, key: TraceKey, records: Sequence[Record], now: float, row: int
    ) -> Iterator[Trace]:
        at = 0
        while at < len(records):
            trace = self._find(key, now, records[at])
            if trace is None:
                at += 1
                continue
            size_before = trace.size
            at, has_grown = self._intake.add(trace, records, at, now)
            if has_grown:
                self._grew(trace, size_before, now, row)
                if is_too_big(trace, self._bounds):
                    yield self._cut(trace)
        trace = self._traces.get(key)
        if trace is not None and self._was_loaded_for_nothing(trace):
            self._hold(trace, now)

    def _find(self, key: TraceKey, now: float, record: Record) -> OpenTrace | None:
        trace = self._traces.get(key)
        if trace is None:
            reason = self._forgotten.reason(key)
            if reason is not None:
                self._intake.drop(record, reason)
                if reason == LATE and self._has_journal:
                    # Other traces may keep its row, and a restart would find the record there.
                    self._forgotten.report(key)
                return None
            trace = self._traces[key] = OpenTrace(key, now, now)
            self._schedule.at(trace, now + self._bounds.settle)
            self._telemetry.traces_opened.add()
        elif trace.spilled:
            self._memory.load(trace)
        return trace

    def _grew(self, trace: OpenTrace, size_before: int, now: float, row: int) -> None:
        """Update a trace that grew: open it again if it was read, and check it after `settle` at
        the latest.
        """
        self._memory.grew(trace, size_before)
        if trace.closed_at is not None:
            self._open_again(trace)
            trace.first = now
        if trace.unchanged_since is not None:
            trace.unchanged_since = None
            trace.first = now
        due = now + self._bounds.settle
        if trace.is_paused(due) and not trace.has_new_entry_agents:
            due = trace.next_reading
        if trace.due > due:
            self._schedule.at(trace, due)
        if self._has_journal and (not trace.rows or trace.rows[-1] != row):
            trace.rows.append(row)
            self._rows.take(row)
            trace.damaged = trace.damaged or row <= self._suspect

    def _open_again(self, trace: OpenTrace) -> None:
        trace.closed_at = None
        del self._retained[trace.key]

    def _was_loaded_for_nothing(self, trace: OpenTrace) -> bool:
        """Whether it was read, and was loaded from the journal for copies of its records."""
        return self._has_journal and trace.closed_at is not None and not trace.spilled

    def _hold(self, trace: OpenTrace, now: float) -> None:
        """Keep a trace in memory for a while: further copies should not have it loaded again."""
        self._memory.grew(trace, trace.size)
        trace.unchanged_since = trace.closed_at
        self._open_again(trace)
        pause = _LOADING_SHARE * pause_after_reading(trace.size, self._bounds)
        self._schedule.at(trace, now + max(self._bounds.settle, pause))

    def _cut(self, trace: OpenTrace) -> Trace:
        """Close a trace that is too big. Records that still arrive are dropped."""
        is_first = not trace.completed
        self._count_completed(trace, "too_big")
        self._forget(trace, TOO_BIG)
        return trace.whole("too_big", truncated=True, is_first=is_first)

    def _check(self, trace: OpenTrace, now: float) -> list[Trace]:
        bounds = self._bounds
        if trace.closed_at is not None:
            self._forget(trace, LATE)
            return []
        if trace.unchanged_since is not None:
            self._retain(trace, trace.unchanged_since)
            return []
        if trace.is_paused(now):
            return self._check_paused(trace, now)
        if trace.spilled:
            self._memory.load(trace)
        reason = closed_by(trace, bounds, now)
        if reason is not None:
            return [self._close(trace, reason, now)]
        invocations = list(quiet_invocations(trace, bounds, now))
        next_check = trace.last + bounds.settle
        if next_check <= now:  # quiet, but incomplete
            next_check = trace.last + bounds.idle
        self._schedule.at(trace, min(next_check, trace.first + bounds.max_age))
        return invocations

    def _check_paused(self, trace: OpenTrace, now: float) -> list[Trace]:
        """The new invocations of a trace that must not be read as a whole yet."""
        found: list[Trace] = []
        due = trace.next_reading
        if trace.has_new_entry_agents:
            if trace.spilled:
                self._memory.load(trace)
            found += quiet_invocations(trace, self._bounds, now)
            due = min(due, trace.last + self._bounds.settle)
            if due <= now:  # what is not complete by now needs further records
                trace.has_new_entry_agents = False
                due = trace.next_reading
        self._schedule.at(trace, due)
        return found

    def _close(self, trace: OpenTrace, reason: ClosedBy, now: float) -> Trace:
        if trace.completed:
            trace.next_reading = now + pause_after_reading(trace.size, self._bounds)
        trace.note_reading()
        is_first = not trace.completed
        self._count_completed(trace, reason)
        readable = trace.whole(reason, is_first=is_first)
        self._retain(trace, now)
        self._limit_retained()
        return readable

    def _retain(self, trace: OpenTrace, closed_at: float) -> None:
        self._memory.retain(trace)
        trace.closed_at, trace.unchanged_since = closed_at, None
        self._retained[trace.key] = None
        self._schedule.at(trace, closed_at + self._bounds.late_ttl)

    def _count_completed(self, trace: OpenTrace, reason: ClosedBy) -> None:
        if not trace.completed:
            self._telemetry.traces_completed.add(reason)
        trace.completed = True

    def _limit_retained(self) -> None:
        while self._memory.retained_bytes > self._bounds.max_retained_bytes:
            self._give_up(next(iter(self._retained)))

    def _give_up(self, key: TraceKey) -> None:
        self._forget(self._traces[key], LATE)
        if self._has_journal:
            self._forgotten.report(key)

    def _forget(self, trace: OpenTrace, reason: str) -> None:
        self._drop(trace)
        self._forgotten.remember(trace.key, reason)

    def _drop(self, trace: OpenTrace) -> None:
        del self._traces[trace.key]
        self._memory.forget(trace, retained=trace.key in self._retained)
        self._rows.release(trace.rows)
        self._retained.pop(trace.key, None)
