"""The single thread that writes to the database.

All writes and checkpoints use one connection, because SQLite up to 3.51.2 can damage a file that
several connections checkpoint. Requests that arrive while a transaction is synced to the disk form
the next group. So the speed of the disk decides how many requests share a sync.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

import structlog

from pathgauge.collector.store.essential import EssentialThread

_log = structlog.get_logger(__name__)

T = TypeVar("T")
ItemT = TypeVar("ItemT")


class Writer(Generic[ItemT]):
    """Writes items in groups, and runs calls between the groups."""

    def __init__(
        self,
        write_group: Callable[[list[ItemT]], None],
        size_of: Callable[[ItemT], int],
        max_group_bytes: int,
        max_group_items: int,
    ) -> None:
        self._write_group = write_group
        self._size_of = size_of
        self._max_group_bytes = max_group_bytes
        self._max_group_items = max_group_items
        self._queue: queue.SimpleQueue[ItemT | Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = EssentialThread(self._run, "store")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, item: ItemT) -> None:
        """Write an item with the next group."""
        self._queue.put(item)

    def call(self, function: Callable[[], T]) -> T:
        """Run `function` in the thread, between groups; returns its result or raises its error."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._queue.put(run)
        return future.result()

    def stop(self) -> None:
        """Write all waiting items, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        command = self._queue.get()
        while command is not None:
            if callable(command):
                command()
                command = self._queue.get()
            else:
                command = self._gather(command)

    def _write(self, group: list[ItemT]) -> None:
        try:
            self._write_group(group)
        except Exception:  # the failure of one group must not stop the next
            _log.exception("a group could not be written")

    def _gather(self, first: ItemT) -> ItemT | Callable[[], None] | None:
        """Write a group that begins with `first`; returns the entry that follows it."""
        group, size = [first], self._size_of(first)
        while True:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                self._write(group)
                return self._queue.get()
            is_full = size >= self._max_group_bytes or len(group) >= self._max_group_items
            if following is None or callable(following) or is_full:
                self._write(group)
                return following
            group.append(following)
            size += self._size_of(following)
