"""The queue between the receivers and the pipeline thread.

Two kinds of entries wait here: durable requests, and commands to run between them. The queue is
bounded in bytes, because requests differ in size by a factor of a thousand. A request that does not
fit is not lost: it is in the journal already, and the pipeline thread reads it from there once this
queue is empty.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.store import Delivery, Restored, Store

Command: TypeAlias = Callable[[], object]


class Nothing:
    """No entry. An exception would be in the log as the cause of all that fails afterwards."""


class QueueUsage(NamedTuple):
    """How much waits for the pipeline thread."""

    queued_bytes: int
    """Requests that wait in memory."""
    backlog_requests: int
    """Durable requests that the pipeline has not processed, in memory or only in the journal."""
    backlog_age_s: float
    """Upper bound for the age of the oldest of them in seconds; 0 without a backlog."""


class RequestQueue:
    """`accept` is called by the event loop, `deliver` by the store, `put`, `usage` and `close` by
    any thread; everything else only by the pipeline thread.
    """

    def __init__(
        self,
        store: Store,
        is_full: Callable[[], bool],
        max_bytes: int,
        *,
        max_backlog_age: float = math.inf,
    ) -> None:
        """`is_full` tells whether the pipeline has no memory left for more spans. No requests are
        accepted while the backlog is older than `max_backlog_age` seconds.
        """
        self.max_bytes = max_bytes
        self.closed = False
        self.row = 0
        """The last journal row that the pipeline has processed."""
        self.last_row = 0
        """The last journal row that is known to exist."""
        self.has_unqueued = False
        """Whether requests wait in the journal that are not in this queue."""
        self._store = store
        self._is_full = is_full
        self._max_backlog_age = max_backlog_age
        self._entries: queue.SimpleQueue[Delivery | Command | None] = queue.SimpleQueue()
        self._queued_bytes = 0
        self._processed_at = self._backlog_since = 0.0
        # Guards `closed`, `last_row`, `has_unqueued` and `_queued_bytes`, which several threads
        # change. No entry may follow the one that `close` puts.
        self._lock = threading.Lock()

    def resume(self, restored: Restored) -> None:
        """Continue where the last process stopped; to be called before the first request."""
        self.row, self.last_row = restored.row, restored.last_row
        self.has_unqueued = self.last_row > self.row
        self._processed_at = restored.at

    async def accept(self, batch: Batch) -> bool:
        """Store a batch durably; `False` means that the sender should retry later."""
        if self.closed or self._is_full() or self.is_late():
            return False
        return await self._store.append(batch)

    def deliver(self, delivery: Delivery) -> bool:
        """Queue a durable request; `False` means that it must be read from the journal later.

        An empty queue takes a request of any size.
        """
        size = len(delivery.batch.body)
        with self._lock:
            if not self._backlog():
                self._backlog_since = delivery.at
            self.last_row = max(self.last_row, delivery.row)
            # Requests are processed in order: while some wait in the journal, all others do too.
            if self.closed or self.has_unqueued or not self._has_space(size):
                self.has_unqueued = delivery.row > 0
                return False
            self._queued_bytes += size
            self._entries.put(delivery)
        return True

    def put(self, command: Command) -> None:
        """Have `command` run in the pipeline thread, between requests."""
        self._entries.put(command)

    def usage(self) -> QueueUsage:
        """How much waits now."""
        return QueueUsage(self._queued_bytes, self._backlog(), self._backlog_age())

    def is_late(self) -> bool:
        """Whether the backlog is too old to accept more requests."""
        return self._backlog_age() >= self._max_backlog_age

    def close(self) -> None:
        """Accept nothing more; what is queued is still processed."""
        with self._lock:
            if not self.closed:
                self.closed = True
                self._entries.put(None)

    def get(self, timeout: float = 0.0) -> Delivery | Command | Nothing | None:
        """The next entry, `None` at the end, `Nothing` after `timeout` seconds without any."""
        try:
            entry = self._entries.get(timeout=timeout) if timeout else self._entries.get_nowait()
        except queue.Empty:
            return Nothing()
        if isinstance(entry, Delivery):
            with self._lock:
                self._queued_bytes -= len(entry.batch.body)
        return entry

    def is_empty(self) -> bool:
        """Whether neither a request nor a command waits in memory."""
        return self._entries.empty()

    def processed(self, row: int, at: float) -> None:
        """Record that the pipeline has processed a request that arrived at `at`."""
        self.row, self._processed_at = max(self.row, row), at

    def caught_up(self, row: int) -> None:
        """Record that the journal holds no unprocessed request up to `row`."""
        with self._lock:
            self.row = max(self.row, row)
            self.has_unqueued = self.last_row > self.row

    def _has_space(self, size: int) -> bool:
        return not self._queued_bytes or self._queued_bytes + size <= self.max_bytes

    def _backlog(self) -> int:
        return self.last_row - self.row

    def _backlog_age(self) -> float:
        if not self._backlog():
            return 0.0
        # None of the waiting requests arrived before the last one that was processed, nor before
        # the first one of this backlog.
        return max(0.0, self._store.horizon() - max(self._processed_at, self._backlog_since))
