"""The one thread that writes: commands come in through a queue, transactions on one connection go
out.

All writes and checkpoints are those of one connection, because SQLite up to 3.51.2 can damage a
file that several connections checkpoint. Requests that wait while a transaction is being synced to
the disk form the next group, so that the disk itself decides how many share a sync.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

import structlog

_log = structlog.get_logger(__name__)

T = TypeVar("T")
ItemT = TypeVar("ItemT")


class Writer(Generic[ItemT]):
    """Runs calls one after the other, and groups of items between them."""

    def __init__(
        self,
        write_group: Callable[[list[ItemT]], None],
        size_of: Callable[[ItemT], int],
        group_bytes: int,
        group_items: int,
    ) -> None:
        """A group ends at `group_bytes` or `group_items`."""
        self._write_group = write_group
        self._size_of = size_of
        self._group_bytes = group_bytes
        self._group_items = group_items
        self._queue: queue.SimpleQueue[ItemT | Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def put(self, item: ItemT) -> None:
        """Have an item written with the next group."""
        self._queue.put(item)

    def call(self, function: Callable[[], T]) -> T:
        """Run `function` in the thread, between groups; returns or raises what it does."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._queue.put(run)
        return future.result()

    def stop(self) -> None:
        """Write everything that waits, and end."""
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
        except Exception:  # whatever one group trips over must not stop the next
            _log.exception("a group could not be written")

    def _gather(self, first: ItemT) -> ItemT | Callable[[], None] | None:
        """Write a group that begins with `first`; returns the command that comes after it."""
        group, size = [first], self._size_of(first)
        following: ItemT | Callable[[], None] | None
        while True:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                self._write(group)
                return self._queue.get()
            if (
                following is None
                or callable(following)
                or size >= self._group_bytes
                or len(group) >= self._group_items
            ):
                self._write(group)
                return following
            group.append(following)
            size += self._size_of(following)
