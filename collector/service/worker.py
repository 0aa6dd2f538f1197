"""The pipeline thread: it processes durable requests and commands, and publishes the results.

Traces are read and scored here, so that the event loop of the receivers stays free to answer
senders. Ages are measured from the arrival of each request. So scores depend neither on how far the
thread is behind nor on restarts in between.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import structlog

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.service.process_end import FAILED
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.request_queue import Command, Nothing, RequestQueue
from pathgauge.collector.service.thread_place import place_of
from pathgauge.collector.store import Delivery, Purged, Restored, Selection, Store, StoreError
from pathgauge.collector.store.essential import EssentialThread

_log = structlog.get_logger(__name__)

_MAX_SLEEP_S = 1.0
RETRY_S = 1.0
"""How long to wait after an unexpected failure."""

STUCK_S = 10.0
"""How long a step may take before it is told. Reading and scoring a trace takes milliseconds."""

T = TypeVar("T")


class Worker:
    """Owns the pipeline from `start` to `stop`."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: Store,
        telemetry: InternalTelemetry,
        publisher: Publisher,
        requests: RequestQueue,
    ) -> None:
        self._pipeline = pipeline
        self._store = store
        self._telemetry = telemetry
        self._publisher = publisher
        self._requests = requests
        self._thread = EssentialThread(self._run, "pipeline")
        self._pid = os.getpid()
        self._since: float | None = None
        """Since when a step is under way."""

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def stuck(self) -> list[str]:
        """That a step does not end, and where it is; for any thread."""
        since = self._since
        if since is None or (waited := time.monotonic() - since) < STUCK_S:
            return []
        return [f"the pipeline has not returned for {waited:.0f} s from {place_of(self._thread)}"]

    def start(self, restored: Restored | None = None) -> None:
        """Start the thread, which continues where the last process stopped."""
        self._requests.resume(restored or Restored())
        self._pipeline.suspect(self._store.usage().suspect)
        if restored is not None and restored.is_purging:
            self._finish_purge()
        self._thread.start()

    def call(self, command: Command) -> None:
        """Run `command` in the pipeline thread, between requests."""
        self._requests.put(command)

    def ask(self, question: Callable[[], T]) -> Future[T]:
        """Run `question` in the pipeline thread, between requests, and return its result. A future
        that was cancelled is skipped.
        """
        answer: Future[T] = Future()

        def run() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(question())
            except Exception as error:  # the caller gets it
                answer.set_exception(error)

        self.call(run)
        return answer

    def judged(self, pending: PendingJudgment, evaluation: Evaluation) -> None:
        """Add the results of judges."""
        self.call(lambda: self._step(lambda: self._pipeline.judged(pending, evaluation)))

    def flush(self) -> Future[None]:
        """Commit and publish at once."""
        return self.ask(self._publish)

    def purge(
        self, selection: Selection, traces: frozenset[TraceKey] = frozenset()
    ) -> Future[Purged]:
        """Remove telemetry and results from the store, the pipeline and the sinks, also of these
        `traces`. The future raises `StoreError`.
        """

        return self._purge(lambda: self._store.purge(selection, traces))

    def _finish_purge(self) -> None:
        def log(purging: Future[Purged]) -> None:
            error = purging.exception() or purging.result().unfinished
            _log.info("an interrupted purge was finished", error=error and str(error))

        self._purge(self._store.finish_purge).add_done_callback(log)

    def _purge(self, remove: Callable[[], Purged]) -> Future[Purged]:
        def purge() -> Purged:
            self._publish()
            purged = remove()
            self._pipeline.discard(purged.traces)
            self._publisher.withdraw(purged.evaluations)
            return purged

        return self.ask(purge)

    def stop(self, timeout: float) -> bool:
        """Refuse new requests, process what is queued in memory, and end the thread; `False` if
        that took longer than `timeout` seconds.

        Open traces stay in the journal. With a store in memory they are read now, complete or not.
        """
        self._requests.close()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while self._guarded_turn():
                pass
            if not self._store.durable:
                self._step(lambda: self._pipeline.drain(self._store.horizon()))
            self._publisher.publish_all(self._requests.row, self._is_stopping)
            self._publisher.close()
        finally:
            self._requests.close()  # whatever ended the thread, nothing would be processed any more

    def _guarded_turn(self) -> bool:
        try:
            self._end_if_forked()
            return self._turn()
        except Exception:  # if the thread ended, senders and callers would wait for ever
            _log.exception("pipeline turn failed")
            time.sleep(RETRY_S)
            return not self._requests.closed

    def _turn(self) -> bool:
        """Process one entry; `False` when it was the last."""
        # Taken before looking into the queue: no request that arrives later is older.
        horizon = self._store.horizon()
        entry = self._requests.get()
        if isinstance(entry, Nothing):
            if self._requests.has_unqueued:
                self._catch_up()
                return True
            self._step(lambda: self._pipeline.expire(horizon))
            self._publisher.begin_if_needed()
            self._publish_if_due()
            entry = self._requests.get(self._pause())
            if isinstance(entry, Nothing):
                return True
        if entry is None:
            return False
        if not isinstance(entry, Delivery):
            self._run_command(entry)
        elif not 0 < entry.row <= self._requests.row:
            # Otherwise it was read from the journal already, between its commit and its delivery.
            self._process(entry)
        self._publish_if_due()
        return True

    def _pause(self) -> float:
        """Seconds until a trace, a conversation or the next commit is due."""
        pauses = [_MAX_SLEEP_S]
        deadline = self._pipeline.deadline()
        if deadline is not None:
            pauses.append(deadline - self._store.horizon())
        until_commit = self._publisher.pause()
        if until_commit is not None:
            pauses.append(until_commit)
        return max(0.0, min(pauses))

    def _catch_up(self) -> None:
        """Process requests that did not fit into the queue."""
        last_row, processed = self._requests.last_row, False
        try:
            for delivery in self._store.read(self._requests.row):
                if self._requests.closed:
                    return
                self._pipeline.suspect(self._store.usage().suspect)  # reading may find damage
                self._process(delivery)
                processed = True
                self._publish_if_due()
                if not self._requests.is_empty():  # commands should not wait for the whole backlog
                    return
        except StoreError:
            _log.exception("the backlog in the journal cannot be read; trying again")
            time.sleep(RETRY_S)
            return
        self._pipeline.suspect(self._store.usage().suspect)
        if not processed:
            self._requests.caught_up(last_row)

    def _process(self, delivery: Delivery) -> None:
        """Feed a request to the pipeline. Whatever was due before it arrived is done first, as if
        the thread had not been behind.
        """
        while (deadline := self._pipeline.deadline()) is not None and deadline <= delivery.at:
            self._step(lambda: self._pipeline.expire(delivery.at))
            self._publish_if_due()
        batch = delivery.batch
        batch.count(self._telemetry)
        self._step(lambda: self._feed(delivery))
        self._requests.processed(delivery.row, delivery.at)
        self._publisher.begin()

    def _feed(self, delivery: Delivery) -> list[PipelineEvent]:
        _, at, batch = delivery
        if batch.turn is not None:
            return self._pipeline.feed_turn(batch.turn, at, delivery.row)
        return self._pipeline.feed(batch.spans, batch.logs, at, delivery.row)

    def _run_command(self, command: Command) -> None:
        def run() -> list[PipelineEvent]:
            command()
            return []

        self._step(run, is_told=False)  # a purge of a large store takes its time

    def _end_if_forked(self) -> None:
        """A scorer that forks and does not end its child lets it return to here. It would be a
        second collector on the same store, and keep the ports after a stop.
        """
        if os.getpid() != self._pid:
            os._exit(FAILED)

    def _step(self, events: Callable[[], list[PipelineEvent]], *, is_told: bool = True) -> None:
        self._since, found = time.monotonic() if is_told else None, None
        try:
            found = events()
        except Exception:  # the failure of one step must not stop the next
            _log.exception("pipeline step failed")
        finally:
            self._since = None
        self._end_if_forked()
        if found is not None:
            self._gather(found)

    def _gather(self, events: list[PipelineEvent]) -> None:
        try:
            self._publisher.gather(events)
        except Exception:
            _log.exception("events could not be gathered")

    def _publish(self) -> None:
        self._publisher.publish(self._requests.row, self._is_stopping)

    def _publish_if_due(self) -> None:
        self._publisher.publish_if_due(self._requests.row, self._is_stopping)

    def _is_stopping(self) -> bool:
        return self._requests.closed
