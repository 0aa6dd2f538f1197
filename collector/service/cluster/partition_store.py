"""A partition as the store of a pipeline: requests come from Kafka, everything else is in
PostgreSQL.

The number, the topic and the offset of each request that an open trace needs are in PostgreSQL; its
records are read again from Kafka.

Time is that of the records, so that it does not matter when they are read. Only when all records
were read, the clock goes on. Within a partition time never goes back, whatever clocks the senders
have.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from typing import Protocol

import structlog

from pathgauge.collector.core.agent_records import NAME as AGENT_RECORDS
from pathgauge.collector.core.evaluations.recent import Recent, Wants
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.pipeline_events import FeedbackGiven
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import Recalled, TraceKey
from pathgauge.collector.receivers.kafka import LogError
from pathgauge.collector.receivers.kafka.partition_source import Position
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.receivers.kafka.rereading import Place
from pathgauge.collector.service.cluster.requests_in_progress import RequestsInProgress
from pathgauge.collector.service.cluster.turns_in_progress import TurnsInProgress
from pathgauge.collector.service.cluster.without_purged import feedback_of, without_purged
from pathgauge.collector.store import (
    Deliver,
    Delivery,
    Progress,
    Purged,
    Restored,
    Selection,
    StoreError,
    Usage,
)
from pathgauge.collector.store.forwarded_turns import batch_of_turn
from pathgauge.collector.store.postgres import FencedError
from pathgauge.collector.store.postgres.heads import Head
from pathgauge.collector.store.postgres.messages import Forwarded, Purge
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.steps import Step

_log = structlog.get_logger(__name__)


class Source(Protocol):
    """The requests of one partition, see `receivers/kafka/partition_source.py`."""

    def at_end(self, now: float) -> bool:
        """Whether every request was delivered that there was a moment ago; `now`: Unix time."""
        ...

    def fetch(self, places: Sequence[Place]) -> Iterator[KafkaRecord]:
        """Read requests again, without those that are gone. Waits while Kafka cannot be reached."""
        ...


class PartitionStore:
    """The store of one partition. `Store` documents its methods."""

    durable = True

    def __init__(
        self,
        database: PartitionDatabase,
        source: Source,
        owner: str,
        *,
        on_lost: Callable[[], None],
        on_purge: Callable[[Purge], None],
        on_reached: Callable[[float], None],
        on_dropped: Callable[[], None] = lambda: None,
        on_feedback_dropped: Callable[[int], None] = lambda answers: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`owner` is the name of this process, for people. `on_lost` is called when another process
        has the partition now, `on_purge` when data was removed that the pipeline may hold,
        `on_reached` with what `Pipeline.hear` has to know, `on_dropped` when a forwarded turn
        cannot be read, `on_feedback_dropped` with the number of answers that are not kept because
        their traces were purged; all in the pipeline thread.
        """
        self._database = database
        self._source = source
        self._owner = owner
        self._on_lost = on_lost
        self._on_purge = on_purge
        self._on_reached = on_reached
        self._on_dropped = on_dropped
        self._on_feedback_dropped = on_feedback_dropped
        self._clock = clock
        self._deliver: Deliver = lambda _: False
        # Guards what follows: the threads of Kafka and of the pipeline deliver.
        self._lock = threading.Lock()
        self._row = 0
        self._reached = 0.0
        """No request that is delivered later has arrived before."""
        self._knows_time = False
        """Whether that is the present of the partition, and not that of its last commit."""
        self._unqueued: deque[Delivery] = deque()
        self._requests = RequestsInProgress()
        self._turns = TurnsInProgress()
        self._purged: frozenset[TraceKey] = frozenset()
        """Traces that were purged since the last commit. What is committed next may be of them."""
        self.lost = False
        """Whether another process has the partition."""

    def open(self) -> Restored:
        claimed = self._database.claim(self._owner)
        restored = claimed.restored
        self._row = restored.row
        self._reached = restored.at
        self._requests.restore(restored.row, claimed.heads, claimed.offsets)
        self._on_reached(-math.inf)
        return replace(restored, counts=(*restored.counts, *claimed.records))

    @property
    def position(self) -> Position:
        """Where reading continues, after `open`."""
        return Position(self._requests.offsets, self._reached)

    def recent(self, wants: Wants) -> Iterator[Recent]:
        return iter(())

    def start(self, deliver: Deliver, now: Callable[[], float]) -> None:
        self._deliver = deliver

    async def append(self, batch: Batch) -> bool:
        raise NotImplementedError("gateways write to Kafka")

    def read(self, after: int) -> Iterable[Delivery]:
        while True:
            with self._lock:
                if not self._unqueued:
                    break
                delivery = self._unqueued.popleft()
            if delivery.row > after:
                yield delivery

    def recall(self, key: TraceKey, rows: Sequence[int]) -> Iterable[Recalled]:
        tenant, trace_id = key
        for row in rows:
            head = self._requests.get(row)
            if head is None or head.tenant != tenant:
                continue
            for batch in self._fetch(head):
                yield Recalled(
                    head.at,
                    [span for span in batch.spans if span.trace_id == trace_id],
                    [log for log in batch.logs if log.trace_id == trace_id],
                )

    def commit(self, progress: Progress) -> bool:
        if self.lost:
            self._on_lost()
            return False
        kept = self._kept(progress)
        if kept is None:
            return False
        step = self._step(kept)
        try:
            if not self._database.commit(step):
                self.poll()
                return False
        except FencedError as error:
            _log.warning("partition given up", reason=str(error))
            self.lost = True
            self._on_lost()
            return False
        self._settle(step)
        self._purged = frozenset()
        if dropped := _answers(progress) - _answers(kept):
            self._on_feedback_dropped(dropped)
        return True

    def _kept(self, progress: Progress) -> Progress | None:
        """The progress without what is about purged traces; `None` if these are not known. Of
        answers they are asked for: the pipeline knows only those since it has the partition.
        """
        purged = self._purged
        if about := feedback_of(progress):
            found = self._database.purged(about)
            if found is None:
                return None
            purged |= found
        return without_purged(progress, purged)

    def purge(self, selection: Selection, traces: Set[TraceKey] = frozenset()) -> Purged:
        raise StoreError("a purge of PostgreSQL does not go through a partition")

    def finish_purge(self) -> Purged:
        return Purged()

    def horizon(self) -> float:
        now = self._clock()
        is_at_end = self._source.at_end(now)
        with self._lock:
            if is_at_end:
                self._reached = max(self._reached, now)
                self._knows_time = True
            return self._reached

    def usage(self) -> Usage:
        reason = self._database.reason
        return Usage(
            state="ok" if reason is None else "failed", reason=reason, requests=len(self._requests)
        )

    def close(self) -> None:
        self._database.close()

    def learned(self) -> Sequence[Row]:
        """What all scorers have learned about agent versions; for the pipeline thread."""
        return () if self.lost else self._database.records()

    def take(self, record: KafkaRecord) -> bool:
        """Pass a request to the pipeline; `False` if there is no room for it. In the thread that
        reads Kafka.
        """
        with self._lock:
            if self._unqueued:
                return False
            self._row += 1
            self._reached = at = max(self._reached, record.at)
            self._knows_time = True
            self._requests.add(self._row, record, at)
            self._queue(Delivery(self._row, at, record.batch))
            return True

    def poll(self) -> None:
        """Take what others have left for this partition: turns and purges. For the pipeline thread,
        from time to time.

        A turn arrives at the present of the partition, so it is left until that is known. With the
        time of a commit long ago, its conversation would seem to be idle, and end.
        """
        if self.lost:
            return
        try:
            news = self._database.news(with_turns=self._knows_time)
        except FencedError:
            return  # the next commit says so
        for turn in news.forwarded:
            self._take_turn(turn)
        for purge in news.purges:
            self._purged |= purge.traces
            self._on_purge(purge)
        if news.reached is not None:
            with self._lock:
                self._turns.hear(news.reached)
            self._tell_reached()

    def _tell_reached(self) -> None:
        """Tell the pipeline the time of the other partitions, as soon as it holds."""
        with self._lock:
            reached = self._turns.told()
        if reached is not None:
            self._on_reached(reached)

    def _take_turn(self, turn: Forwarded) -> None:
        """Pass a forwarded turn to the pipeline. One that cannot be read is dropped."""
        try:
            batch = batch_of_turn(turn.body)
        except Exception as error:  # damaged, or of another version
            _log.error("forwarded turn dropped", source=turn.source, reason=str(error))
            self._on_dropped()
            with self._lock:
                self._turns.add(self._row, self._reached, turn.id)
            return
        with self._lock:
            self._row += 1
            self._turns.add(self._row, self._reached, turn.id)
            self._queue(Delivery(self._row, self._reached, batch))

    def _fetch(self, head: Head) -> Iterator[Batch]:
        try:
            for record in self._source.fetch([(head.topic, head.offset)]):
                yield record.batch
        except LogError as error:
            _log.warning("partition given up", reason=str(error))
            self.lost = True  # what is scored without this request must not be committed

    def _queue(self, delivery: Delivery) -> None:
        """Pass a request on, or keep it until the pipeline reads it."""
        if not self._deliver(delivery):
            self._unqueued.append(delivery)

    def _step(self, progress: Progress) -> Step:
        """What becomes durable."""
        with self._lock:
            new = self._requests.uncommitted(progress.row)
            consumed = self._turns.processed(progress.row)
            offsets = dict(self._requests.offsets)
            at = min(progress.at, self._next_at(progress.row))
        for head in new:
            offsets[head.topic] = head.offset + 1  # lower than before if the topic was made anew
        records = [row for row in progress.counts if row.key[0] == AGENT_RECORDS]
        counts = [row for row in progress.counts if row.key[0] != AGENT_RECORDS]
        return Step(replace(progress, at=at, counts=counts), offsets, new, records, consumed)

    def _settle(self, step: Step) -> None:
        with self._lock:
            self._requests.committed(
                step.progress.row, step.offsets, step.progress.changes.released_rows
            )
            self._turns.forget(len(step.consumed))
        self._tell_reached()

    def _next_at(self, row: int) -> float:
        """The time of what is processed after `row`: requests that wait belong to it. With a later
        one, other partitions would not wait for their turns.
        """
        return min(self._requests.next_at(row, self._row), self._turns.next_at(row))


def _answers(progress: Progress) -> int:
    return sum(isinstance(one, FeedbackGiven) for one in progress.outcomes)
