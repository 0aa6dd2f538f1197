"""The store for `store: memory`: passes requests on at once, and keeps nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from pathgauge.collector.core.evaluations.recent import Recent, Wants
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.traces import Recalled, TraceKey
from pathgauge.collector.store import (
    Deliver,
    Delivery,
    FeedbackOutcome,
    Progress,
    Purged,
    Restored,
    Selection,
    StoreError,
    Usage,
)


class MemoryStore:
    """A store that keeps nothing."""

    durable = False

    def __init__(self) -> None:
        self._deliver: Deliver | None = None
        self._now: Callable[[], float] = lambda: 0.0

    def open(self) -> Restored:
        return Restored()

    def recent(self, wants: Wants) -> Iterator[Recent]:
        return iter(())

    def start(self, deliver: Deliver, now: Callable[[], float]) -> None:
        self._deliver, self._now = deliver, now

    async def append(self, batch: Batch) -> bool:
        return self._deliver is not None and self._deliver(Delivery(0, self._now(), batch))

    def read(self, after: int) -> Iterable[Delivery]:
        return ()

    def recall(self, key: TraceKey, rows: Sequence[int]) -> Iterable[Recalled]:
        return ()

    def commit(self, progress: Progress) -> bool:
        return True

    def record_feedback(self, answers: Sequence[Answer]) -> Sequence[FeedbackOutcome]:
        raise StoreError("found store: memory, expected a store on disk: feedback is kept there")

    def purge(self, selection: Selection, traces: Set[TraceKey] = frozenset()) -> Purged:
        raise StoreError(
            "found store: memory, expected a store on disk: nothing in memory outlives the process"
        )

    def finish_purge(self) -> Purged:
        return Purged()

    def horizon(self) -> float:
        return self._now()

    def usage(self) -> Usage:
        return Usage()

    def close(self) -> None:
        self._deliver = None
