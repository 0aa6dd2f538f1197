"""The thread of the parent that publishes what its scorers have committed."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TypeVar

import structlog

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.pipeline_events import Withdrawn
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.service.publications import Arrived, Publications, Stored
from pathgauge.collector.service.sink_calls import close, publish
from pathgauge.collector.store.essential import EssentialThread

_log = structlog.get_logger(__name__)

COMMIT_S = 0.25
"""How long publications are collected before they are stored."""
IDLE_COMMIT_S = 30.0
"""The longest time without a commit. Retention runs with commits."""
_MAX_PUBLICATIONS = 64
_RETRY_S = 1.0

T = TypeVar("T")


class PublicationThread:
    """Owns the gauge from `start` to `stop`."""

    def __init__(
        self,
        publications: Publications,
        sinks: Sequence[Sink],
        *,
        needs_commit: Callable[[], bool],
        is_short: Callable[[], bool],
        on_stored: Callable[[Stored], None],
    ) -> None:
        """`needs_commit` tells whether counts changed without a publication, `is_short` whether the
        store needs commits to free space. `on_stored` is called in this thread.
        """
        self._publications = publications
        self._sinks = sinks
        self._needs_commit = needs_commit
        self._is_short = is_short
        self._on_stored = on_stored
        self._entries: queue.SimpleQueue[Arrived | Callable[[], object] | None]
        self._entries = queue.SimpleQueue()
        self._committed_at = time.monotonic()
        self._closed = threading.Event()
        self._thread = EssentialThread(self._run, "gauge")

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, arrived: Arrived) -> None:
        """Publish what a scorer has sent; for any thread."""
        self._entries.put(arrived)

    def call(self, command: Callable[[], T]) -> Future[T]:
        """Run `command` in the thread, when everything before it is stored; for any thread."""
        answer: Future[T] = Future()

        def run() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(command())
            except Exception as error:  # the caller gets it
                answer.set_exception(error)

        self._entries.put(run)
        return answer

    def withdraw(self, evaluations: Iterable[EvaluationKey]) -> None:
        """Withdraw purged evaluations from all sinks; for this thread."""
        for key in evaluations:
            for sink in self._sinks:
                publish(sink, Withdrawn(key), time.time())

    def stop(self, timeout: float) -> bool:
        """Publish what was sent, and end the thread; `False` if that took longer than `timeout`
        seconds.
        """
        self._entries.put(None)
        self._thread.join(timeout)
        self._closed.set()
        return not self._thread.is_alive()

    def _run(self) -> None:
        is_open = True
        while is_open:
            try:
                is_open = self._turn()
            except Exception:  # if the thread ended, nothing would be published any more
                _log.exception("publishing failed")
        self._commit()
        while self._needs_commit() and not self._closed.is_set():
            self._publications.begin()
            self._commit()
        for sink in self._sinks:
            close(sink)

    def _turn(self) -> bool:
        """Process one entry; `False` when it was the last."""
        try:
            entry = self._entries.get(timeout=self._pause())
        except queue.Empty:
            self._commit_if_due()
            return True
        if entry is None:
            return False
        if isinstance(entry, Arrived):
            self._publications.take(entry)
        else:
            self._commit()
            entry()
        self._commit_if_due()
        return True

    def _pause(self) -> float:
        """Seconds until a commit may be due."""
        since = self._publications.since
        if since is None:
            return _RETRY_S
        return max(0.001, since + COMMIT_S - time.monotonic())

    def _commit_if_due(self) -> None:
        now = time.monotonic()
        interval = _RETRY_S if self._is_short() else IDLE_COMMIT_S
        if self._needs_commit() or now >= self._committed_at + interval:
            self._publications.begin()
        since = self._publications.since
        if since is None:
            return
        is_large = self._publications.waiting >= _MAX_PUBLICATIONS
        if is_large or now >= since + COMMIT_S:
            self._commit()

    def _commit(self) -> None:
        """Store what was published. While the store cannot, this blocks until `stop`."""
        stored = self._publications.commit(lambda: not self._closed.wait(_RETRY_S))
        self._committed_at = time.monotonic()
        if stored is not None:
            self._on_stored(stored)
