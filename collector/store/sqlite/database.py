"""The database file while it is in use.

A file that fails is opened again, and the rows of a damaged file are copied into a fresh one. The
process keeps running meanwhile.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import structlog

from pathgauge.collector.store import State, StoreError, Transaction
from pathgauge.collector.store.sql import insert
from pathgauge.collector.store.sqlite import damage, files, recovery
from pathgauge.collector.store.sqlite.checkpoints import Checkpoints

_log = structlog.get_logger(__name__)

RETRY_S = 1.0
"""How long a store that failed refuses requests before it tries again."""
RECOVERY_INTERVAL_S = 60.0
"""The shortest time between two recoveries of a file that cannot be read."""
GONE = (
    "the folder of the store was removed or replaced: senders are told to retry until the collector"
    " is restarted"
)

T = TypeVar("T")


class Database:
    """For one thread, except for the public attributes, which any thread may read."""

    def __init__(
        self,
        folder: Path,
        on_commit: Callable[[Transaction, float], None],
        on_reopen: Callable[[], None],
    ) -> None:
        """`on_commit` gets the duration of each successful transaction in seconds. `on_reopen` is
        called when the file may have been replaced.
        """
        self.connection: sqlite3.Connection
        self.checkpoints: Checkpoints
        self.state: State = "ok"
        self.reason: str | None = None
        """Why it fails, if that does not end by itself."""
        self.suspect = 0
        """Journal rows up to this one may be lost, and it is unknown which traces they belonged to.
        """
        self.quarantined = 0
        """Damaged rows that were moved to the quarantine."""
        self.retry_at = -math.inf
        self._folder = folder
        self._on_commit = on_commit
        self._on_reopen = on_reopen
        self._reopen_at = -math.inf
        self._told = ""
        """Why the file could not be reopened, as the log has said."""
        self._file: tuple[int, int] | None = None
        self._held: tuple[tuple[int, int] | None, int] | None = None

    @property
    def path(self) -> Path:
        """The database file."""
        return self._folder / files.DATABASE

    def open(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Open the file and return the result of `read`. A damaged file is recovered first."""
        self.connection = self._open()
        try:
            found = read(self.connection)
        except sqlite3.DatabaseError as error:
            if not damage.is_damage(error):
                raise
            self.checkpoints.abandon()
            self.connection = self._recover()
            found = read(self.connection)
        self.suspect = recovery.suspected(self.connection)
        return found

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        if self._held is None:
            return
        if self.reason is None:
            self.checkpoints.close()
        os.close(self._held[1])
        self._held = None

    def transact(
        self,
        kind: Transaction,
        work: Callable[[sqlite3.Connection], None],
        *,
        in_reserve: bool = False,
    ) -> bool:
        """Run `work` in a transaction; `False` if it was not committed. `in_reserve`: the space of
        the reserve was released for it, so the disk stays full.
        """
        began = time.monotonic()
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            work(self.connection)
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.retry_at = time.monotonic() + RETRY_S
            self.handle(error)
            return False
        except BaseException:
            self.connection.rollback()
            raise
        self.checkpoints.committed()
        self._on_commit(kind, time.monotonic() - began)
        if self.state != "ok" and not in_reserve:
            _log.info("the store accepts requests again")
            self.state = "ok"
        return True

    def quarantine(self, table: str, row: int, reason: str) -> None:
        """Move a damaged row to the quarantine, within a transaction."""
        _log.error("damaged row of the store quarantined", table=table, row=row, reason=reason)
        insert(
            self.connection,
            "INSERT INTO quarantine (at, source, reason)",
            [(time.time(), f"{table} {row}", reason)],
        )
        self.connection.execute(f"DELETE FROM {table} WHERE id = ?", (row,))
        self.quarantined += 1
        if table == "journal":
            self.suspect = recovery.suspect(self.connection)

    def handle(self, error: sqlite3.Error) -> None:
        """React to a failure: refuse requests, and reopen or recover the file."""
        if not self.in_place():
            return
        full = damage.primary_code(error) == sqlite3.SQLITE_FULL
        if self.state == "ok":
            _log.error(
                "the store cannot be written to; senders are told to retry", error=str(error)
            )
        self.state = "full" if full else "failed"
        with suppress(sqlite3.Error):  # closed already if it could not be reopened
            self.connection.rollback()
        if not full and time.monotonic() >= self._reopen_at:
            self._reopen(recover=damage.is_damage(error))

    def in_place(self) -> bool:
        """Whether the path still leads to the open file. Data written to a file that was removed
        or replaced would be lost.
        """
        if self.reason is not None:
            return False
        try:
            if self._file is None or files.identity(self._folder) == self._file:
                return True
        except OSError:
            return True  # unknown
        self.checkpoints.abandon()
        self.state, self.reason = "failed", GONE
        _log.error(GONE, folder=str(self._folder))
        return False

    def _reopen(self, *, recover: bool) -> None:
        try:
            # After a failed sync the system treats pages as written that are not on the disk. So
            # the file has to be read again.
            self.checkpoints.abandon()
            self.connection = self._recover() if recover else self._open()
            self._on_reopen()
            self._told = ""
        except StoreError as error:
            self._reopen_at = time.monotonic() + RECOVERY_INTERVAL_S
            _log.error("the store could not be reopened", error=str(error))
        except (sqlite3.Error, OSError) as error:
            if str(error) != self._told:  # it is tried every second
                _log.error("the store could not be reopened", error=str(error))
            self._told = str(error)

    def _open(self) -> sqlite3.Connection:
        if recovery.is_unfinished(self._folder):
            return self._recover()
        try:
            connection = self._connect()
            if files.is_sound(connection):
                return connection
            self.checkpoints.abandon()
        except sqlite3.DatabaseError as error:
            if not damage.is_damage(error):
                raise
        return self._recover()

    def _recover(self) -> sqlite3.Connection:
        self._file = None
        recovery.recover(self._folder)
        connection = self._connect()
        self.suspect = recovery.suspected(connection)
        return connection

    def _connect(self) -> sqlite3.Connection:
        def begin(connection: sqlite3.Connection) -> None:
            self.checkpoints = Checkpoints(self._folder, connection, self._descriptor())
            self.checkpoints.checkpoint()

        connection = files.connect(self._folder, begin)
        self._file = files.identity(self._folder)
        return connection

    def _descriptor(self) -> int:
        """A descriptor of the file, which stays open with it: when a process closes any descriptor
        of a file, the system drops all its locks on it, also those of other connections.
        """
        identity = files.identity(self._folder)
        if self._held is None or self._held[0] != identity:
            held, self._held = self._held, (identity, os.open(self.path, os.O_RDWR))
            if held is not None:
                os.close(held[1])
        return self._held[1]
