"""Moves the write-ahead log into the database file, and keeps that file free of deleted rows.

After each checkpoint the gaps of the pages that it wrote are overwritten, before a transaction can
overwrite the log. So no page in the file ever keeps a deleted row for longer than the log does, and
a purge has to look at the pages in the log only, whatever the size of the file. After a crash the
log is still there, and the next start repeats its pages.

The file `lock` says whether this holds, because others may have changed the database meanwhile: an
earlier version, a backup that was restored, or `sqlite3`, which moves the log of a dead process.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import structlog

from pathgauge.collector.store.sqlite import files, gaps, wal

_log = structlog.get_logger(__name__)

_MORE_FRAMES = 100
"""By how much the log grows until the next checkpoint, if a reader keeps it from being begun anew.
"""
_LARGE = 8
"""So many times the usual length, the log of a large transaction is truncated at once."""
_RARE_FRAMES = 8_192
"""64 MiB."""
_OPEN = "open"
_CLOSED = "closed"


class Checkpoints:
    """For one connection, in the thread of the database."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, file: int) -> None:
        """`file` is the descriptor of the database."""
        self.unknown = False
        """Whether any page may keep deleted rows in its gap."""
        self.rare = False
        """Whether checkpoints wait for a long log: many transactions change the same pages."""
        self._log_path = folder / f"{files.DATABASE}-wal"
        self._state = folder / "lock"
        self._connection = connection
        self._retry, self._seen = 0, 0
        self._counter = wal.Counter(self._log_path)
        self._file = file
        self._begin()

    def committed(self) -> None:
        """Make a checkpoint if the log is long enough. To be called after each transaction."""
        try:
            frames = self._counter.frames()
        except OSError as error:
            self._lose(error)
            return
        if self._seen != (seen := self._counter.begun):
            self._retry, self._seen = 0, seen
        if frames >= max(self._length(), self._retry):
            self._retry = frames + _MORE_FRAMES
            if self.checkpoint() and not self.rare and frames > _LARGE * files.WAL_PAGES:
                self._truncate()  # its size counts as used

    def checkpoint(self) -> bool:
        """Move the whole log; `False` if that has to be tried again."""
        try:
            busy, frames, moved = self._pragma("wal_checkpoint(PASSIVE)")
            if busy or moved < frames:
                return False
            if frames > 0:  # -1 for a new file, whose size of a page is not set yet
                self._overwrite(wal.pages(self._log_path, frames))
        except (sqlite3.Error, OSError) as error:
            self._lose(error)
            return False
        return True

    def empty(self) -> bool:
        """Move the whole log and truncate it, and forget all pages in memory, which may still have
        what was overwritten in the file; `False` if somebody reads an earlier state.
        """
        if not self.checkpoint() or self.unknown:
            return False
        is_empty = self._truncate()
        self._connection.execute("PRAGMA shrink_memory")
        return is_empty

    def overwrite_from(self, first: int, count: int) -> int:
        """Overwrite the gaps of `count` pages from number `first`; returns the next one, or 0 after
        the last, when everything is known again. Raises `sqlite3.Error` and OSError.
        """
        [pages] = self._pragma("page_count")
        until = min(first + count, pages + 1)
        self._overwrite(range(first, until))
        if until <= pages:
            return until
        self.unknown = False
        self._write(_OPEN)
        return 0

    def close(self) -> None:
        """Move the log, then close the connection, which would move the rest of the log itself."""
        known = self.checkpoint() and not self.unknown
        self.abandon()
        if known:
            self._write(f"{_CLOSED} {self._stamp()}")

    def abandon(self) -> None:
        """Close a connection that failed. What it leaves in the gaps is unknown, unless the log
        stays.
        """
        self._connection.close()
        self._counter.close()

    def _length(self) -> int:
        return _RARE_FRAMES if self.rare else files.WAL_PAGES

    def _begin(self) -> None:
        before = self._state.read_text() if self._state.exists() else ""
        log_is_left = self._log_path.exists() and self._log_path.stat().st_size > 0
        known = log_is_left if before == _OPEN else before == f"{_CLOSED} {self._stamp()}"
        known = known or os.fstat(self._file).st_size == 0  # a new file
        self.unknown = not known
        self._write(_OPEN if known else "")

    def _overwrite(self, pages: range | set[int]) -> None:
        """Raises `sqlite3.Error` and OSError."""
        [page_bytes], [moves_pages] = self._pragma("page_size"), self._pragma("auto_vacuum")
        if moves_pages:  # such a file has pages that cannot be told from those of a tree
            raise sqlite3.NotSupportedError("found auto_vacuum, expected none")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            if gaps.overwrite(self._file, pages, page_bytes):
                os.fsync(self._file)
        finally:
            self._connection.execute("ROLLBACK")

    def _truncate(self) -> bool:
        """Truncate a log that was moved; `False` if somebody reads an earlier state."""
        self._pragma("busy_timeout = 0")  # senders would wait, too
        try:
            busy, *_ = self._pragma("wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            return False
        finally:
            self._pragma(f"busy_timeout = {int(files.BUSY_S * 1000)}")
        return not busy

    def _lose(self, error: Exception) -> None:
        if not self.unknown:
            _log.warning("the pages of a checkpoint are unknown", error=str(error))
            self.unknown = True
            self._write("")

    def _pragma(self, pragma: str) -> Sequence[int]:
        found: Sequence[int] = self._connection.execute(f"PRAGMA {pragma}").fetchone()
        return found

    def _stamp(self) -> str:
        status = os.fstat(self._file)
        return f"{status.st_mtime_ns} {status.st_size}"

    def _write(self, state: str) -> None:
        try:
            descriptor = files.open_private(self._state)
            try:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, state.encode(), 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            _log.warning("the state of the database cannot be noted", error=str(error))
