"""The store on disk: journal and results in one SQLite file, written by one thread.

A request that was acknowledged has been synced to the disk. When the disk is full or fails,
requests are refused and the process goes on; when the file is damaged, what can be read of it is
brought into a fresh one.
"""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pathgauge.collector.core.evaluations.windows import Recent
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.traces import Recalled, TraceKey
from pathgauge.collector.store import (
    Deliver,
    Delivery,
    Progress,
    Purged,
    Restored,
    Selection,
    StoreError,
    Transaction,
    Usage,
    files,
    journal,
    purge,
    recovery,
    results,
)
from pathgauge.collector.store.database import MEND_S, Database
from pathgauge.collector.store.journal import Packer
from pathgauge.collector.store.reader import JournalReader
from pathgauge.collector.store.restore import WindowBounds, evaluations_since, restore
from pathgauge.collector.store.retention import Cleaning, Retention
from pathgauge.collector.store.writer import Writer

IN_FLIGHT_BYTES = 64 << 20
"""Requests that wait to become durable; beyond it senders are told to retry."""
GROUP_BYTES = 8 << 20
GROUP_REQUESTS = 64
MEASURE_S = 0.5
_ATTEMPTS = 2
"""To read results, of a file that may have to be mended."""
_SIZES = ("page_count", "freelist_count", "page_size")


class _Waiting(NamedTuple):
    """A request that is not durable yet."""

    batch: Batch
    answer: asyncio.Future[bool]
    loop: asyncio.AbstractEventLoop


class SqliteStore:
    """A folder on disk. See `Store` for what it does."""

    durable = True

    def __init__(
        self,
        folder: Path,
        retention: Retention | None = None,
        windows: WindowBounds | None = None,
        timed: Callable[[Transaction, float], None] = lambda kind, seconds: None,
    ) -> None:
        """`timed` is told how long each transaction took that was made durable."""
        self._folder = folder
        self._retention = retention or Retention()
        self._windows = windows or WindowBounds()
        self._lock: int | None = None
        self._database = Database(folder, timed, self._renew_reader)
        self._cleaning = Cleaning(self._retention, self._windows)
        self._packer = Packer()
        self._writer: Writer[_Waiting] = Writer(
            self._write_group, lambda item: len(item.batch.body), GROUP_BYTES, GROUP_REQUESTS
        )
        self._measured = Usage(capacity=self._retention.max_bytes)
        self._in_flight = self._unmeasured = 0
        self._measured_at = self._mended_at = -math.inf
        self._writing_at: float | None = None
        self._last_row = self._requests = 0
        self._running = self._purging = False

    def open(self) -> Restored:
        """Read what the last process left, out of a fresh file with what could be saved if the old
        one is damaged.
        """
        self._lock = files.lock(self._folder)
        try:
            restored = self._database.open(
                lambda opened: restore(opened, self._database.quarantine)
            )
            self._reader = JournalReader(self._folder, self._set_aside, self._mend_reading)
        except sqlite3.Error as error:
            os.close(self._lock)
            raise StoreError(f"{self._database.path}: {error}") from error
        except BaseException:
            os.close(self._lock)
            raise
        self._last_row, self._requests = restored.last_row, restored.requests
        return restored

    def recent(self) -> Iterator[Recent]:
        since, reached = time.time() - self._windows.max_age_s, math.inf
        for _ in range(_ATTEMPTS):
            try:
                for row, evaluation in evaluations_since(
                    self._database.connection, since, self._database.quarantine
                ):
                    if row < reached:
                        reached = row
                        yield evaluation
            except sqlite3.Error as error:
                self._database.mend(error)
            else:
                return

    def start(self, deliver: Deliver, now: Callable[[], float]) -> None:
        self._deliver, self._now = deliver, now
        self._measure()
        self._running = True
        self._writer.start()

    async def append(self, batch: Batch) -> bool:
        size = len(batch.body)
        if not self._takes(size):
            return False
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        self._in_flight += size
        self._writer.put(_Waiting(batch, answer, loop))
        try:
            return await answer
        finally:
            self._in_flight -= size

    def read(self, after: int) -> Iterable[Delivery]:
        return self._reader.read(after)

    def recall(self, key: TraceKey, rows: Sequence[int]) -> Iterable[Recalled]:
        return self._reader.recall(key, rows)

    def commit(self, progress: Progress) -> bool:
        return self._writer.call(lambda: self._commit(progress))

    def purge(self, selection: Selection) -> Purged:
        self._reader.close()  # a log that somebody reads cannot be emptied
        self._purging = True
        try:
            return self._writer.call(lambda: self._purge(selection))
        except sqlite3.Error as error:
            raise StoreError(f"{self._database.path}: nothing was removed: {error}") from error
        finally:
            self._purging = False
            if self._database.reason is None:
                self._reader = JournalReader(self._folder, self._set_aside, self._mend_reading)

    def horizon(self) -> float:
        at = self._writing_at
        return self._now() if at is None else at

    def usage(self) -> Usage:
        database = self._database
        return replace(
            self._measured,
            used=self._measured.used + self._unmeasured,
            state=database.state,
            reason=database.reason,
            in_flight=self._in_flight,
            quarantined=database.quarantined,
            suspect=database.suspect,
        )

    def close(self) -> None:
        if self._running:
            self._running = False
            self._writer.stop()
        if self._lock is not None:
            self._reader.close()
            self._database.connection.close()
            os.close(self._lock)
            self._lock = None

    def _takes(self, size: int) -> bool:
        if (
            not self._running
            or self._purging
            or (self._in_flight and self._in_flight + size > IN_FLIGHT_BYTES)
        ):
            return False
        state = self._database.state
        if state == "full" and files.free_bytes(self._folder) < files.RESERVE_BYTES:
            return False  # what there is, is for results, and for giving rows back
        if state != "ok":
            return time.monotonic() >= self._database.retry_at
        usage = self.usage()
        return usage.used + usage.in_flight + size <= usage.capacity

    def _write_group(self, group: list[_Waiting]) -> None:
        durable = False
        try:
            durable = self._append(group)
        finally:
            self._writing_at = None
            for loop in {item.loop for item in group}:
                with suppress(RuntimeError):  # the loop ended without waiting for its answers
                    loop.call_soon_threadsafe(
                        _answer, [item.answer for item in group if item.loop is loop], durable
                    )
        self._measure()

    def _append(self, group: list[_Waiting]) -> bool:
        if not self._database.in_place():
            return False
        self._writing_at = at = self._now()
        wall, first = time.time(), self._last_row + 1
        rows = [
            self._packer.pack(row, at, wall, item.batch) for row, item in enumerate(group, first)
        ]
        if not self._database.transact(
            "requests", lambda connection: journal.append(connection, rows)
        ):
            return False
        self._last_row += len(group)
        self._requests += len(group)
        self._unmeasured += sum(len(row[-1]) for row in rows)
        for row, item in enumerate(group, first):
            self._deliver(Delivery(row, at, item.batch))
        return True

    def _purge(self, selection: Selection) -> Purged:
        if not self._database.in_place():
            raise StoreError(f"{self._database.path}: nothing was removed: {self._database.reason}")
        connection = self._database.connection
        purged = purge.purge(connection, selection, time.time() - self._windows.max_age_s)
        self._requests = connection.execute("SELECT count(*) FROM journal").fetchone()[0]
        self._measured_at = -math.inf
        self._measure()
        try:
            return replace(purged, damaged=purged.damaged + recovery.remove_set_aside(self._folder))
        except OSError as error:
            return replace(purged, unfinished=purged.unfinished or str(error))

    def _commit(self, progress: Progress) -> bool:
        removed = 0

        def work(connection: sqlite3.Connection) -> None:
            nonlocal removed
            removed = results.write(connection, progress)
            self._cleaning.clean(connection, progress.wall, nearly_full=self.usage().nearly_full)

        done = self._database.transact("results", work)
        if not done and self._database.state == "full" and files.give_up_reserve(self._folder):
            done = self._database.transact("results", work)
            self._database.state = "full"
        if done:
            self._requests -= removed
        self._measure()
        return done

    def _renew_reader(self) -> None:
        self._reader.renew()

    def _mend_reading(self, error: sqlite3.Error) -> None:
        """Only damage can be mended from here; whatever else keeps the file from being read may
        pass.
        """
        if (
            recovery.is_damage(error)
            and self._running
            and time.monotonic() >= self._mended_at + MEND_S
        ):
            self._mended_at = time.monotonic()
            self._writer.call(lambda: self._database.mend(error))

    def _measure(self) -> None:
        if time.monotonic() < self._measured_at + MEASURE_S:
            return
        self._measured_at = time.monotonic()
        if not self._database.in_place():
            return
        try:
            pages, free, size = (
                self._database.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _SIZES
            )
        except sqlite3.Error:
            return
        log = self._folder / f"{files.DATABASE}-wal"
        write_ahead = log.stat().st_size if log.exists() else 0
        used = (pages - free) * size + write_ahead
        self._unmeasured = 0
        self._measured = replace(
            self._measured, used=used, write_ahead=write_ahead, requests=self._requests
        )
        if self._database.state == "ok":
            self._make_reserve()

    def _make_reserve(self) -> None:
        try:
            if files.free_bytes(self._folder) > 2 * files.RESERVE_BYTES:
                files.make_reserve(self._folder)
        except OSError:
            files.give_up_reserve(self._folder)

    def _set_aside(self, row: int, reason: str) -> None:
        self._writer.call(
            lambda: self._database.transact(
                "quarantine", lambda _: self._database.quarantine("journal", row, reason)
            )
        )


def _answer(answers: Sequence[asyncio.Future[bool]], durable: bool) -> None:
    for answer in answers:
        if not answer.done():
            answer.set_result(durable)
