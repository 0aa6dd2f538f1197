"""The store on disk: journal and results in one SQLite file, written by one thread.

A request that was acknowledged has been synced to the disk. When the disk is full or fails, requests are refused and the process
goes on; when the file is damaged, what can be read of it is brought into a fresh one.
"""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import structlog

from collector.assembler import Key, Recalled
from collector.intake import Batch
from collector.store import (
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
    purging,
    results,
    salvage,
)
from collector.store.journal import Packer
from collector.store.reader import JournalReader
from collector.store.restoring import WindowBounds, restore
from collector.store.schema import insert
from collector.store.writer import Writer

_log = structlog.get_logger(__name__)

IN_FLIGHT_BYTES = 64 << 20
"""Requests that wait to become durable; beyond it senders are told to retry."""
GROUP_BYTES = 8 << 20
GROUP_REQUESTS = 64
RETRY_S = 1.0
"""How long a store that failed refuses before it tries again."""
MEASURE_S = 0.5
GONE = "the folder of the store was removed or replaced: senders are told to retry until the collector is restarted"
CLEAN_S = 10.0
MEND_S = 60.0
"""How often a file that cannot be read may be brought into a fresh one."""
_CLEAN_ROWS = 20_000
_TRACES_KEPT = 200_000
_SIZES = ("page_count", "freelist_count", "page_size")


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept, and for how long."""

    max_bytes: int = 10 << 30
    """Journal and results together."""
    results_s: float = 7 * 86_400.0


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
        self._timed = timed
        self._lock: int | None = None
        self._packer = Packer()
        self._writer: Writer[_Waiting] = Writer(self._write_group, lambda item: len(item.batch.body), GROUP_BYTES, GROUP_REQUESTS)
        self._usage = Usage(capacity=self._retention.max_bytes)
        self._in_flight = 0
        self._retry_at = self._measured_at = self._cleaned_at = self._mended_at = self._reopen_at = -math.inf
        self._writing_at: float | None = None
        self._file: tuple[int, int] | None = None
        self._last_row = self._requests = 0
        self._running = self._purging = False

    def open(self) -> Restored:
        """Read what the last process left, out of a fresh file with what could be saved if the old one is damaged."""
        self._lock = files.lock(self._folder)
        try:
            self._connection = self._connect()
            restored = self._restored()
            self._reader = JournalReader(self._folder, self._set_aside, self._mend_reading)
        except sqlite3.Error as error:
            os.close(self._lock)
            raise StoreError(f"{self._folder / files.DATABASE}: {error}") from error
        except BaseException:
            os.close(self._lock)
            raise
        self._last_row, self._requests = restored.last_row, restored.requests
        self._usage = replace(self._usage, suspect=salvage.suspected(self._connection))
        return restored

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

    def read(self, after: int) -> list[Delivery]:
        return self._reader.read(after)

    def recall(self, key: Key, rows: Sequence[int]) -> Iterable[Recalled]:
        return self._reader.recall(key, rows)

    def commit(self, progress: Progress) -> bool:
        return self._writer.call(lambda: self._commit(progress))

    def purge(self, selection: Selection) -> Purged:
        self._reader.close()  # a log that somebody reads cannot be emptied
        self._purging = True
        try:
            return self._writer.call(lambda: self._purge(selection))
        except sqlite3.Error as error:
            raise StoreError(f"{self._folder / files.DATABASE}: nothing was removed: {error}") from error
        finally:
            self._purging = False
            if self._usage.reason is None:
                self._reader = JournalReader(self._folder, self._set_aside, self._mend_reading)

    def horizon(self) -> float:
        at = self._writing_at
        return self._now() if at is None else at

    def usage(self) -> Usage:
        return replace(self._usage, in_flight=self._in_flight)

    def close(self) -> None:
        if self._running:
            self._running = False
            self._writer.stop()
        if self._lock is not None:
            self._reader.close()
            self._connection.close()
            os.close(self._lock)
            self._lock = None

    def _takes(self, size: int) -> bool:
        if not self._running or self._purging or (self._in_flight and self._in_flight + size > IN_FLIGHT_BYTES):
            return False
        usage = self._usage
        if usage.state == "full" and files.free_bytes(self._folder) < files.RESERVE_BYTES:
            return False  # what there is, is for results, and for giving rows back
        if usage.state != "ok":
            return time.monotonic() >= self._retry_at
        return usage.used < usage.capacity

    def _connect(self) -> sqlite3.Connection:
        if salvage.unfinished(self._folder):
            return self._salvaged()
        try:
            connection = self._opened()
            if files.is_sound(connection):
                return connection
            connection.close()
        except sqlite3.DatabaseError as error:
            if not salvage.is_damage(error):
                raise
        return self._salvaged()

    def _salvaged(self) -> sqlite3.Connection:
        self._file = None
        salvage.salvage(self._folder)
        connection = self._opened()
        self._usage = replace(self._usage, suspect=salvage.suspected(connection))
        return connection

    def _opened(self) -> sqlite3.Connection:
        connection = files.connect(self._folder)
        self._file = files.identity(self._folder)
        return connection

    def _restored(self) -> Restored:
        try:
            return restore(self._connection, self._windows, time.time(), self._quarantine)
        except sqlite3.DatabaseError as error:
            if not salvage.is_damage(error):
                raise
            self._connection.close()
            self._connection = self._salvaged()
            return restore(self._connection, self._windows, time.time(), self._quarantine)

    def _write_group(self, group: list[_Waiting]) -> None:
        durable = False
        try:
            durable = self._append(group)
        finally:
            self._writing_at = None
            for loop in {item.loop for item in group}:
                with suppress(RuntimeError):  # the loop ended without waiting for its answers
                    loop.call_soon_threadsafe(_answer, [item.answer for item in group if item.loop is loop], durable)
        self._measure()

    def _append(self, group: list[_Waiting]) -> bool:
        if not self._in_place():
            return False
        self._writing_at = at = self._now()
        wall, first = time.time(), self._last_row + 1
        rows = [self._packer.pack(row, at, wall, item.batch) for row, item in enumerate(group, first)]
        if not self._transact("requests", lambda connection: journal.append(connection, rows)):
            return False
        self._last_row += len(group)
        self._requests += len(group)
        for row, item in enumerate(group, first):
            self._deliver(Delivery(row, at, item.batch))
        return True

    def _purge(self, selection: Selection) -> Purged:
        if not self._in_place():
            raise StoreError(f"{self._folder / files.DATABASE}: nothing was removed: {self._usage.reason}")
        purged = purging.purge(self._connection, selection, time.time() - self._windows.max_age_s)
        self._requests = self._connection.execute("SELECT count(*) FROM journal").fetchone()[0]
        self._measured_at = -math.inf
        self._measure()
        try:
            return replace(purged, damaged=purged.damaged + salvage.remove_set_aside(self._folder))
        except OSError as error:
            return replace(purged, unfinished=purged.unfinished or str(error))

    def _commit(self, progress: Progress) -> bool:
        removed = 0

        def work(connection: sqlite3.Connection) -> None:
            nonlocal removed
            removed = results.write(connection, progress)
            self._clean(connection, progress.wall)

        done = self._transact("results", work)
        if not done and self._usage.state == "full" and files.give_up_reserve(self._folder):
            done = self._transact("results", work)
            self._usage = replace(self._usage, state="full")
        if done:
            self._requests -= removed
        self._measure()
        return done

    def _transact(self, kind: Transaction, work: Callable[[sqlite3.Connection], None]) -> bool:
        """Run `work` in a transaction; `False` when it could not be made durable, and nothing of it happened."""
        began = time.monotonic()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            work(self._connection)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._retry_at = time.monotonic() + RETRY_S
            self._mend(error)
            return False
        except BaseException:
            self._connection.rollback()
            raise
        self._timed(kind, time.monotonic() - began)
        if self._usage.state != "ok":
            _log.info("the store takes requests again")
            self._usage = replace(self._usage, state="ok")
        return True

    def _mend(self, error: sqlite3.Error) -> None:
        if not self._in_place():
            return
        full = salvage.primary(error) == sqlite3.SQLITE_FULL
        if self._usage.state == "ok":
            _log.error("the store cannot be written to; senders are told to retry", error=str(error))
        self._usage = replace(self._usage, state="full" if full else "failed")
        with suppress(sqlite3.Error):  # closed already, when it could not be opened again
            self._connection.rollback()
        if full or time.monotonic() < self._reopen_at:
            return
        try:
            # After a failed sync pages count as written that are not: what is on disk has to be read again.
            self._connection.close()
            self._connection = self._salvaged() if salvage.is_damage(error) else self._connect()
            self._reader.renew()
        except StoreError as refused:
            self._reopen_at = time.monotonic() + MEND_S
            _log.error("the store could not be opened again", error=str(refused))
        except (sqlite3.Error, OSError):
            _log.exception("the store could not be opened again")

    def _in_place(self) -> bool:
        """Whether the path still leads to the file that is open; what is written to another one would never be found again."""
        if self._usage.reason is not None:
            return False
        try:
            if self._file is None or files.identity(self._folder) == self._file:
                return True
        except OSError:
            return True  # nobody can say
        self._connection.close()
        self._usage = replace(self._usage, state="failed", reason=GONE)
        _log.error(GONE, folder=str(self._folder))
        return False

    def _mend_reading(self, error: sqlite3.Error) -> None:
        """Only damage can be mended from here; whatever else keeps the file from being read may pass."""
        if salvage.is_damage(error) and self._running and time.monotonic() >= self._mended_at + MEND_S:
            self._mended_at = time.monotonic()
            self._writer.call(lambda: self._mend(error))

    def _clean(self, connection: sqlite3.Connection, wall: float) -> None:
        if time.monotonic() < self._cleaned_at + CLEAN_S:
            return
        kept = self._retention.results_s
        if self._usage.nearly_full:
            kept = min(kept, self._windows.max_age_s)
        before = wall - kept
        if results.drop_old(connection, before, _TRACES_KEPT, _CLEAN_ROWS) < _CLEAN_ROWS:
            self._cleaned_at = time.monotonic()

    def _measure(self) -> None:
        if time.monotonic() < self._measured_at + MEASURE_S:
            return
        self._measured_at = time.monotonic()
        if not self._in_place():
            return
        try:
            pages, free, size = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _SIZES)
        except sqlite3.Error:
            return
        log = self._folder / f"{files.DATABASE}-wal"
        write_ahead = log.stat().st_size if log.exists() else 0
        self._usage = replace(self._usage, used=(pages - free) * size + write_ahead, write_ahead=write_ahead, requests=self._requests)
        if self._usage.state == "ok":
            self._make_reserve()

    def _make_reserve(self) -> None:
        try:
            if files.free_bytes(self._folder) > 2 * files.RESERVE_BYTES:
                files.make_reserve(self._folder)
        except OSError:
            files.give_up_reserve(self._folder)

    def _set_aside(self, row: int, reason: str) -> None:
        self._writer.call(lambda: self._transact("quarantine", lambda _: self._quarantine("journal", row, reason)))

    def _quarantine(self, table: str, row: int, reason: str) -> None:
        _log.error("a damaged row of the store was set aside", table=table, row=row, reason=reason)
        insert(self._connection, "INSERT INTO quarantine (at, source, reason)", [(time.time(), f"{table} {row}", reason)])
        self._connection.execute(f"DELETE FROM {table} WHERE id = ?", (row,))
        self._usage = replace(self._usage, quarantined=self._usage.quarantined + 1)
        if table == "journal":
            self._usage = replace(self._usage, suspect=salvage.suspect(self._connection))


def _answer(answers: Sequence[asyncio.Future[bool]], durable: bool) -> None:
    for answer in answers:
        if not answer.done():
            answer.set_result(durable)
