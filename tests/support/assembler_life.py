"""An assembler with a journal in memory, for tests of spilled traces, late records and restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.core.traces import Assembler, Bounds, Recalled, TraceKey, TraceSnapshot


class Journal:
    """Rows of records with their times of arrival."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[float, list[Span | LogRecord]]] = {}
        self.last = 0
        self.when_read: Callable[[], object] = lambda: None

    def append(self, records: Iterable[Span | LogRecord], at: float) -> int:
        self.last += 1
        self.rows[self.last] = at, list(records)
        return self.last

    def recall(self, key: TraceKey, rows: Sequence[int]) -> Iterator[Recalled]:
        self.when_read()
        for row in rows:
            if row in self.rows:
                at, records = self.rows[row]
                own = [one for one in records if (one.tenant, one.trace_id) == key]
                yield Recalled(at, *_by_kind(own))


class Life:
    """An assembler with a journal, from start to stop. `released` are the rows it released."""

    stored: dict[TraceKey, TraceSnapshot]
    """The newest state of each trace, as the store keeps it when the trace is forgotten."""

    def __init__(self, bounds: Bounds, journal: Journal) -> None:
        self.bounds = bounds
        self.telemetry = InternalTelemetry()
        self.journal = journal
        self.assembler = Assembler(
            bounds, self.telemetry, lambda one: "agent" in one.name, journal.recall
        )
        self.released: set[int] = set()
        self.stored = {}
        self._fed: dict[TraceKey, None] = {}

    def feed(self, *records: Span | LogRecord, at: float) -> list[Trace]:
        self._fed.update(dict.fromkeys((one.tenant, one.trace_id) for one in records))
        row = self.journal.append(records, at)
        grown = list(self.assembler.feed(*_by_kind(records), at, row))
        self.released.update(self.assembler.released())
        self._store()
        return grown

    def held_when_read(self) -> list[int]:
        """What the open traces hold whenever the journal is read, from now on."""
        held: list[int] = []
        self.journal.when_read = lambda: held.append(self.assembler.open_bytes)
        return held

    def expire(self, at: float) -> list[Trace]:
        read = []
        while (deadline := self.assembler.deadline()) is not None and deadline <= at:
            read += self.assembler.expire(at)
            self._store()
        self.released.update(self.assembler.released())
        return read

    def read_until(self, at: float) -> list[tuple[float, Trace]]:
        """The traces that are read up to `at`, each with the time when it becomes ready."""
        read: list[tuple[float, Trace]] = []
        while (deadline := self.assembler.deadline()) is not None and deadline <= at:
            read += [(deadline, trace) for trace in self.assembler.expire(deadline)]
            self._store()
        return read

    def restarted(self, at: float) -> Life:
        """The next process, with the same journal."""
        after = Life(self.bounds, self.journal)
        given_up = map(self.assembler.snapshot, self.assembler.given_up())
        after.stored = self.stored | {one.key: one for one in given_up}
        for snapshot in after.stored.values():
            after.assembler.restore(snapshot, at)
        return after

    def snapshots(self) -> list[TraceSnapshot]:
        """The state of all open and retained traces."""
        known = map(self.assembler.snapshot, dict.fromkeys([*self.stored, *self._fed]))
        return [one for one in known if not one.forgotten]

    def _store(self) -> None:
        self.stored.update((one.key, one) for one in self.snapshots())


def _by_kind(records: Iterable[Span | LogRecord]) -> tuple[list[Span], list[LogRecord]]:
    spans: list[Span] = []
    logs: list[LogRecord] = []
    for one in records:
        if isinstance(one, Span):
            spans.append(one)
        else:
            logs.append(one)
    return spans, logs
