"""Makes requests durable, several in one transaction, before they are acknowledged."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.store import Deliver, Delivery, Restored, journal, outbox
from pathgauge.collector.store.journal import Packer
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.database import Database
from pathgauge.collector.store.sqlite.space import Space
from pathgauge.collector.store.sqlite.writer import Writer

MAX_IN_FLIGHT_BYTES = 64 << 20
"""Size of the requests that wait to become durable; beyond it, senders are told to retry."""
MAX_GROUP_BYTES = 8 << 20
MAX_GROUP_REQUESTS = 64


class _Waiting(NamedTuple):
    """A request that is not durable yet, and the future that its sender waits for."""

    batch: Batch
    answer: asyncio.Future[bool]
    loop: asyncio.AbstractEventLoop


class Appending:
    """Appends requests to the journal, in the thread of its writer."""

    def __init__(self, folder: Path, database: Database, space: Space) -> None:
        self.writer: Writer[_Waiting] = Writer(
            self._write_group,
            lambda item: len(item.batch.body),
            MAX_GROUP_BYTES,
            MAX_GROUP_REQUESTS,
        )
        """The only thread that writes to the database."""
        self.running = False
        self.in_flight = 0
        """Bytes that wait to become durable."""
        self._folder = folder
        self._database = database
        self._space = space
        self._packer = Packer()
        self._last_row = 0
        self._received: Mapping[str, int] = {}
        self._writing_at: float | None = None

    def restore(self, restored: Restored) -> None:
        """Continue behind what an earlier process has stored."""
        self._last_row, self._received = restored.last_row, restored.received

    def start(self, deliver: Deliver, now: Callable[[], float]) -> None:
        """Accept requests from now on. `deliver` gets those that are durable."""
        self._deliver, self._now = deliver, now
        self.running = True
        self.writer.start()

    def stop(self) -> None:
        """Write what waits, and accept nothing more."""
        if self.running:
            self.running = False
            self.writer.stop()

    async def append(self, batch: Batch) -> bool:
        """Whether the request is durable now."""
        size = len(batch.body)
        if not self._can_accept(size):
            return False
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        self.in_flight += size
        self.writer.put(_Waiting(batch, answer, loop))
        try:
            return await answer
        finally:
            self.in_flight -= size

    def horizon(self) -> float:
        """No request that is delivered later has arrived before this time."""
        at = self._writing_at
        return self._now() if at is None else at

    def _can_accept(self, size: int) -> bool:
        if not self.running:
            return False
        if self.in_flight and self.in_flight + size > MAX_IN_FLIGHT_BYTES:
            return False
        state = self._database.state
        if state == "full" and files.free_bytes(self._folder) < files.RESERVE_BYTES:
            return False  # the remaining space is for results, and for deleting rows
        if state != "ok":
            return time.monotonic() >= self._database.retry_at
        return self._space.fits(size, self.in_flight)

    def _write_group(self, group: list[_Waiting]) -> None:
        durable = False
        try:
            durable = self._append(group)
        finally:
            self._writing_at = None
            for loop in {item.loop for item in group}:
                answers = [item.answer for item in group if item.loop is loop]
                with suppress(RuntimeError):  # the loop was closed before the answer
                    loop.call_soon_threadsafe(_answer, answers, durable)
        self._space.measure()

    def _append(self, group: list[_Waiting]) -> bool:
        if not self._database.in_place():
            return False
        self._writing_at = at = self._now()
        received = dict(self._received)
        batches = [item.batch for item in group if outbox.is_new(item.batch, received)]
        wall, first = time.time(), self._last_row + 1
        rows = [self._packer.pack(row, at, wall, batch) for row, batch in enumerate(batches, first)]

        def work(connection: sqlite3.Connection) -> None:
            journal.append(connection, rows)
            outbox.write_received(connection, self._received, received)

        if not self._database.transact("requests", work):
            return False
        self._received = received
        self._last_row += len(batches)
        self._space.add(rows)
        for row, batch in enumerate(batches, first):
            self._deliver(Delivery(row, at, batch))
        return True


def _answer(answers: Sequence[asyncio.Future[bool]], durable: bool) -> None:
    for answer in answers:
        if not answer.done():
            answer.set_result(durable)
