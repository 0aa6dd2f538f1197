"""The file of a store on disk while it is in use: transactions come in, what could be made durable
goes out.

A file that fails is opened again, and a damaged one is brought into a fresh one, without the
process having to end.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import structlog

from pathgauge.collector.store import State, StoreError, Transaction, files, recovery
from pathgauge.collector.store.schema import insert

_log = structlog.get_logger(__name__)

RETRY_S = 1.0
"""How long a store that failed refuses before it tries again."""
MEND_S = 60.0
"""How often a file that cannot be read may be brought into a fresh one."""
GONE = (
    "the folder of the store was removed or replaced: senders are told to retry until the collector"
    " is restarted"
)

T = TypeVar("T")


class Database:
    """For one thread, save what it says of its condition."""

    def __init__(
        self,
        folder: Path,
        timed: Callable[[Transaction, float], None],
        reopened: Callable[[], None],
    ) -> None:
        """`timed` is told how long each transaction took that was made durable; `reopened`, that
        there may be another file.
        """
        self.connection: sqlite3.Connection
        self.state: State = "ok"
        self.reason: str | None = None
        """Why it fails, when that does not end by itself."""
        self.suspect = 0
        """Journal rows up to this one may be lost without anybody knowing of which traces."""
        self.quarantined = 0
        """Damaged rows that were set aside."""
        self.retry_at = -math.inf
        self._folder = folder
        self._timed = timed
        self._reopened = reopened
        self._reopen_at = -math.inf
        self._file: tuple[int, int] | None = None

    @property
    def path(self) -> Path:
        """Of the file."""
        return self._folder / files.DATABASE

    def open(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Open the file and read it with `read`, out of a fresh one with what could be saved if it
        is damaged.
        """
        self.connection = self._connected()
        try:
            found = read(self.connection)
        except sqlite3.DatabaseError as error:
            if not recovery.is_damage(error):
                raise
            self.connection.close()
            self.connection = self._salvaged()
            found = read(self.connection)
        self.suspect = recovery.suspected(self.connection)
        return found

    def transact(self, kind: Transaction, work: Callable[[sqlite3.Connection], None]) -> bool:
        """Run `work` in a transaction; `False` when it could not be made durable, and nothing of it
        happened.
        """
        began = time.monotonic()
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            work(self.connection)
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.retry_at = time.monotonic() + RETRY_S
            self.mend(error)
            return False
        except BaseException:
            self.connection.rollback()
            raise
        self._timed(kind, time.monotonic() - began)
        if self.state != "ok":
            _log.info("the store takes requests again")
            self.state = "ok"
        return True

    def quarantine(self, table: str, row: int, reason: str) -> None:
        """Set a damaged row aside, within a transaction."""
        _log.error("a damaged row of the store was set aside", table=table, row=row, reason=reason)
        insert(
            self.connection,
            "INSERT INTO quarantine (at, source, reason)",
            [(time.time(), f"{table} {row}", reason)],
        )
        self.connection.execute(f"DELETE FROM {table} WHERE id = ?", (row,))
        self.quarantined += 1
        if table == "journal":
            self.suspect = recovery.suspect(self.connection)

    def mend(self, error: sqlite3.Error) -> None:
        """Do what can be done about a failure."""
        if not self.in_place():
            return
        full = recovery.primary(error) == sqlite3.SQLITE_FULL
        if self.state == "ok":
            _log.error(
                "the store cannot be written to; senders are told to retry", error=str(error)
            )
        self.state = "full" if full else "failed"
        with suppress(sqlite3.Error):  # closed already, when it could not be opened again
            self.connection.rollback()
        if not full and time.monotonic() >= self._reopen_at:
            self._reopen(salvaging=recovery.is_damage(error))

    def in_place(self) -> bool:
        """Whether the path still leads to the file that is open; what is written to another one
        would never be found again.
        """
        if self.reason is not None:
            return False
        try:
            if self._file is None or files.identity(self._folder) == self._file:
                return True
        except OSError:
            return True  # nobody can say
        self.connection.close()
        self.state, self.reason = "failed", GONE
        _log.error(GONE, folder=str(self._folder))
        return False

    def _reopen(self, *, salvaging: bool) -> None:
        try:
            # After a failed sync pages count as written that are not: what is on disk has to be
            # read again.
            self.connection.close()
            self.connection = self._salvaged() if salvaging else self._connected()
            self._reopened()
        except StoreError as refused:
            self._reopen_at = time.monotonic() + MEND_S
            _log.error("the store could not be opened again", error=str(refused))
        except (sqlite3.Error, OSError):
            _log.exception("the store could not be opened again")

    def _connected(self) -> sqlite3.Connection:
        if recovery.unfinished(self._folder):
            return self._salvaged()
        try:
            connection = self._connect()
            if files.is_sound(connection):
                return connection
            connection.close()
        except sqlite3.DatabaseError as error:
            if not recovery.is_damage(error):
                raise
        return self._salvaged()

    def _salvaged(self) -> sqlite3.Connection:
        self._file = None
        recovery.salvage(self._folder)
        connection = self._connect()
        self.suspect = recovery.suspected(connection)
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = files.connect(self._folder)
        self._file = files.identity(self._folder)
        return connection
