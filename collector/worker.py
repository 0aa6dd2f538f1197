"""The one thread in which the core runs: batches and commands come in through a bounded queue, outcomes go out to the sinks.

The receivers' event loop stays free to answer senders while traces are read and scored here.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from collector.conversations import Case
from collector.evaluator import Evaluation
from collector.pipeline import Outcome, Pipeline, Unreadable, Withdrawn
from collector.receivers.intake import Batch
from collector.sinks import Sink

_log = structlog.get_logger(__name__)

_MAX_SLEEP_S = 1.0


class Worker:
    """Owns the pipeline from `start` to `stop`. The queue is bounded in bytes, as batches differ in size a thousandfold."""

    def __init__(self, pipeline: Pipeline, sinks: Sequence[Sink], capacity: int) -> None:
        """`capacity` is how many bytes of batches may wait."""
        self.capacity = capacity
        self._pipeline = pipeline
        self._sinks = sinks
        self._commands: queue.SimpleQueue[Batch | Callable[[], object] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._expired_at = 0.0
        self._stopping = False
        # Guards `_waiting`: the event loop adds to it, the worker takes from it. And `_stopping`: nothing may follow the end of the queue.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)

    @property
    def waiting(self) -> int:
        """Bytes of batches in the queue."""
        return self._waiting

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    async def accept(self, batch: Batch) -> bool:
        """Take a batch over, unless there is no room for it; a batch larger than the whole queue is let in when that is empty."""
        with self._lock:
            if self._stopping or self._pipeline.full or (self._waiting and self._waiting + batch.size > self.capacity):
                return False
            self._waiting += batch.size
            self._commands.put(batch)
        return True

    def call(self, command: Callable[[], object]) -> None:
        """Run `command` in the worker thread, between batches."""
        self._commands.put(command)

    def stop(self, timeout: float) -> bool:
        """Refuse what comes, read everything that is open, and end; says whether that was done within `timeout` seconds."""
        with self._lock:
            self._stopping = True
            self._commands.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (command := self._next()) is not None:
            self._step(partial(self._do, command))
        self._step(lambda: self._pipeline.drain(time.monotonic()))
        for sink in self._sinks:
            _close(sink)

    def _step(self, outcomes: Callable[[], list[Outcome]]) -> None:
        try:
            self._publish(outcomes())
        except Exception:  # what one step trips over must not stop the next
            _log.exception("pipeline step failed")

    def _next(self) -> Batch | Callable[[], object] | None:
        """The next command; a step without one (`_nothing`) when time alone has made something ready."""
        deadline = self._pipeline.deadline()
        pause = min(_MAX_SLEEP_S, max(0.0, (math.inf if deadline is None else deadline) - time.monotonic()))
        try:
            return self._commands.get(timeout=pause) if pause else self._commands.get_nowait()
        except queue.Empty:
            return _nothing

    def _do(self, command: Batch | Callable[[], object]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        if isinstance(command, Batch):
            with self._lock:
                self._waiting -= command.size
            outcomes = self._pipeline.feed(command.spans, command.logs, time.monotonic())
        else:
            command()
        now = time.monotonic()
        # What waits may belong to a trace that time alone would take for complete; but a queue that never empties must not stop the clock.
        if self._commands.empty() or now >= self._expired_at + _MAX_SLEEP_S:
            self._expired_at = now
            outcomes += self._pipeline.expire(now)
        return outcomes

    def _publish(self, outcomes: list[Outcome]) -> None:
        now = time.time()
        for outcome in outcomes:
            if isinstance(outcome, Unreadable):
                _log.error("trace could not be read", trace_id=outcome.trace_id, exc_info=outcome.error)
                continue
            for sink in self._sinks:
                _tell(sink, outcome, now)


def _nothing() -> None:
    """Wake up for the deadline alone."""


def _tell(sink: Sink, outcome: Evaluation | Withdrawn | Case, now: float) -> None:
    try:
        if isinstance(outcome, Evaluation):
            sink.publish(outcome, now)
        elif isinstance(outcome, Case):
            sink.publish_case(outcome, now)
        else:
            sink.withdraw(outcome.key)
    except Exception:  # one sink's failure must not keep the outcome from the others
        _log.exception("sink failed", sink=type(sink).__name__)


def _close(sink: Sink) -> None:
    try:
        sink.close()
    except Exception:
        _log.exception("sink could not be closed", sink=type(sink).__name__)
