"""The one thread in which the core runs: durable requests and commands come in, outcomes go to the
publisher.

The receivers' event loop stays free to answer senders while traces are read and scored here.
Requests come through a queue in memory; those that found no room there are read from the journal
when it is empty. Ages are measured by the time at which requests arrived, so that it makes no
difference to a score how far behind the worker is, nor whether it was restarted between.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import structlog

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.store import Delivery, Purged, Restored, Selection, Store, StoreError

_log = structlog.get_logger(__name__)

_MAX_SLEEP_S = 1.0
RETRY_S = 1.0
"""How long to wait after what should not have happened."""

T = TypeVar("T")
_Command = Delivery | Callable[[], object] | None


class Worker:
    """Owns the pipeline from `start` to `stop`. The queue is bounded in bytes, as batches differ in
    size a thousandfold.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        store: Store,
        telemetry: InternalTelemetry,
        publisher: Publisher,
        capacity: int,
        *,
        max_backlog_age: float = math.inf,
    ) -> None:
        """`capacity` is how many bytes of batches may wait in memory; no more are taken while one
        has waited `max_backlog_age` seconds.
        """
        self.capacity = capacity
        self._max_backlog_age = max_backlog_age
        self._pipeline = pipeline
        self._store = store
        self._telemetry = telemetry
        self._publisher = publisher
        self._commands: queue.SimpleQueue[_Command] = queue.SimpleQueue()
        self._waiting = 0
        self._row = self._latest = 0
        self._behind = False
        self._taken_at = self._behind_since = 0.0
        self._stopping = False
        # Guards `_waiting`, `_latest` and `_behind`, which the store's thread changes as well; and
        # `_stopping`: nothing may follow the end of the queue.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)

    @property
    def waiting(self) -> int:
        """Bytes of batches in the queue."""
        return self._waiting

    @property
    def backlog(self) -> int:
        """Requests that are durable and were not taken in yet."""
        return self._latest - self._row

    @property
    def backlog_age(self) -> float:
        """How long the oldest of them has been waiting, in seconds, at most; 0 when there is none."""
        # None of them arrived before the last one that was taken in, nor before the first one of
        # this backlog.
        return (
            max(0.0, self._store.horizon() - max(self._taken_at, self._behind_since))
            if self.backlog
            else 0.0
        )

    @property
    def late(self) -> bool:
        """Whether scoring is so far behind that nothing more is taken."""
        return self.backlog_age >= self._max_backlog_age

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self, restored: Restored | None = None) -> None:
        """Begin to work, where the last process stopped."""
        restored = restored or Restored()
        self._row, self._latest = restored.row, restored.last_row
        self._behind = self._latest > self._row
        self._taken_at = restored.at
        self._pipeline.suspect(self._store.usage().suspect)
        self._thread.start()

    async def accept(self, batch: Batch) -> bool:
        """Take a batch over as soon as it is durable, unless there is no room for it."""
        if self._stopping or self._pipeline.full or not self.alive or self.late:
            return False
        return await self._store.append(batch)

    def deliver(self, delivery: Delivery) -> bool:
        """Take over a durable request; `False` when it was not kept, and is read from the journal
        later, if there is one.

        A batch larger than the whole queue is let in when that is empty.
        """
        size = len(delivery.batch.body)
        with self._lock:
            if not self.backlog:
                self._behind_since = delivery.at
            self._latest = max(self._latest, delivery.row)
            if (
                self._stopping
                or self._behind
                or (self._waiting and self._waiting + size > self.capacity)
            ):
                self._behind = delivery.row > 0
                return False
            self._waiting += size
            self._commands.put(delivery)
        return True

    def call(self, command: Callable[[], object]) -> None:
        """Run `command` in the worker thread, between batches."""
        self._commands.put(command)

    def judged(self, awaited: PendingJudgment, evaluation: Evaluation) -> None:
        """Take in what judges said."""
        self.call(lambda: self._step(lambda: self._pipeline.judged(awaited, evaluation)))

    def ask(self, question: Callable[[], T]) -> Future[T]:
        """Have `question` answered in the worker thread, between batches. When nobody waits any
        more, it is passed over.
        """
        answer: Future[T] = Future()

        def run() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(question())
            except Exception as error:  # whoever asked is told
                answer.set_exception(error)

        self.call(run)
        return answer

    def purge(self, selection: Selection) -> Future[Purged]:
        """Remove telemetry and results from the store, the pipeline and the sinks; the future
        raises `StoreError`.
        """

        def purge() -> Purged:
            self._publish()
            purged = self._store.purge(selection)
            self._pipeline.discard(purged.traces)
            self._publisher.withdraw(purged.evaluations)
            return purged

        return self.ask(purge)

    def stop(self, timeout: float) -> bool:
        """Refuse what comes, take in what waits in memory, and end; says whether that was done
        within `timeout` seconds.

        What is open is read when nothing of it would outlive the process; else it stays in the
        journal.
        """
        with self._lock:
            self._stopping = True
            self._commands.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._guarded_turn():
            pass
        if not self._store.durable:
            self._step(lambda: self._pipeline.drain(self._store.horizon()))
        self._publish()
        self._publisher.close()

    def _guarded_turn(self) -> bool:
        try:
            return self._turn()
        except Exception:  # a thread that ended would leave everybody waiting
            _log.exception("pipeline turn failed")
            time.sleep(RETRY_S)
            return not self._stopping

    def _turn(self) -> bool:
        """Do one thing; `False` when it was the last."""
        horizon = (
            self._store.horizon()
        )  # before the look into the queue: what comes later is not older
        try:
            command = self._commands.get_nowait()
        except queue.Empty:
            if self._behind:
                self._catch_up()
                return True
            self._step(lambda: self._pipeline.expire(horizon))
            self._publisher.keep_house()
            self._publish_if_due()
            try:
                command = self._commands.get(timeout=self._pause())
            except queue.Empty:
                return True
        if command is None:
            return False
        if isinstance(command, Delivery):
            with self._lock:
                self._waiting -= len(command.batch.body)
            # It may have been read from the journal already, between its commit and its coming
            # here.
            if not 0 < command.row <= self._row:
                self._take(command)
        else:
            self._step(lambda: _nothing(command()))
        self._publish_if_due()
        return True

    def _pause(self) -> float:
        """Until time alone makes something ready, or something that was gathered is due."""
        deadline = self._pipeline.deadline()
        pause = math.inf if deadline is None else deadline - self._store.horizon()
        gathered = self._publisher.pause()
        return min(_MAX_SLEEP_S, max(0.0, pause if gathered is None else min(pause, gathered)))

    def _catch_up(self) -> None:
        """Take in what found no room in the queue."""
        latest, taken = self._latest, False
        try:
            for delivery in self._store.read(self._row):
                if self._stopping:
                    return
                self._pipeline.suspect(
                    self._store.usage().suspect
                )  # what is damaged is found as it is read
                self._take(delivery)
                taken = True
                self._publish_if_due()
                if not self._commands.empty():  # whoever asks something does not wait for the rest
                    return
        except StoreError:
            _log.exception("what waits in the journal cannot be taken in; trying again")
            time.sleep(RETRY_S)
            return
        self._pipeline.suspect(self._store.usage().suspect)
        if not taken:
            with self._lock:
                self._row = max(self._row, latest)
                self._behind = self._latest > self._row

    def _take(self, delivery: Delivery) -> None:
        """Everything that was due before it arrived comes first, as if the worker had been waiting
        for it.
        """
        while (deadline := self._pipeline.deadline()) is not None and deadline <= delivery.at:
            self._step(lambda: self._pipeline.expire(delivery.at))
            self._publish_if_due()
        batch = delivery.batch
        batch.count(self._telemetry)
        self._step(lambda: self._pipeline.feed(batch.spans, batch.logs, delivery.at, delivery.row))
        self._row, self._taken_at = max(self._row, delivery.row), delivery.at
        self._publisher.begin()

    def _step(self, outcomes: Callable[[], list[PipelineEvent]]) -> None:
        try:
            self._publisher.gather(outcomes())
        except Exception:  # what one step trips over must not stop the next
            _log.exception("pipeline step failed")

    def _publish(self) -> None:
        self._publisher.publish(self._row, lambda: self._stopping)

    def _publish_if_due(self) -> None:
        self._publisher.publish_if_due(self._row, lambda: self._stopping)


def _nothing(_: object) -> list[PipelineEvent]:
    """A command has no outcomes."""
    return []
