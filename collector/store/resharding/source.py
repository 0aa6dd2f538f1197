"""A store whose state is moved. It is only read, so that a crash leaves it as it was."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import structlog

from pathgauge.collector.store import restore
from pathgauge.collector.store.restore import Tables
from pathgauge.collector.store.sqlite import damage, files, recovery
from pathgauge.collector.store.sqlite.database import Database

_log = structlog.get_logger(__name__)

T = TypeVar("T")


class DamagedSourceError(Exception):
    """The file of a source has to be recovered before it can be read to its end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


@dataclass(slots=True)
class Source:
    """An open store, and what was found damaged in it."""

    folder: Path
    name: str
    """The folder relative to the main folder; empty for the main file."""
    connection: sqlite3.Connection
    row: int = 0
    """The last journal row that was processed."""
    at: float = 0.0
    """The running time that its process has reached."""
    suspect: int = 0
    """Journal rows up to this one may be lost."""
    shift: float = 0.0
    """What is added to all running times. The clocks of processes differ: each goes on from what it
    had stored when it was started.
    """
    damaged: dict[tuple[str, int], str] = field(default_factory=dict)
    """The reason for each damaged row, by table and key. These rows are not moved."""

    @property
    def tables(self) -> Tables:
        """The tables; damaged rows are recorded."""
        return Tables(self.connection, self.quarantine)

    def quarantine(self, table: str, row: int, reason: str) -> None:
        """Record a damaged row."""
        if (table, row) not in self.damaged:
            _log.error(
                "damaged row of the store quarantined",
                folder=str(self.folder),
                table=table,
                row=row,
                reason=reason,
            )
        self.damaged[table, row] = reason
        if table == "journal":
            self.suspect = max(self.suspect, self.row, row)

    def guarded(self, rows: Iterator[T]) -> Iterator[T]:
        """The same rows. Raises `DamagedSourceError` for a file that must be recovered."""
        try:
            yield from rows
        except sqlite3.DatabaseError as error:
            if damage.is_damage(error):
                raise DamagedSourceError(self.folder) from error
            raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a store. Raises `StoreError`."""
    held = files.lock(folder)
    try:
        yield
    finally:
        os.close(held)


@contextmanager
def opened(folder: Path, name: str = "") -> Iterator[Source]:
    """Open a store that is locked; a damaged file is recovered first. Raises `StoreError`."""
    database = Database(folder, lambda kind, seconds: None, lambda: None)
    try:
        source = database.open(lambda connection: _read(folder, name, connection))
    except sqlite3.Error as error:
        raise files.cannot_open(folder, error) from error
    try:
        yield source
    finally:
        database.close()


def _read(folder: Path, name: str, connection: sqlite3.Connection) -> Source:
    source = Source(folder, name, connection)
    last_row, last_at = restore.newest(source.tables)
    source.row, at = restore.position(connection, last_row, last_at)
    source.at = max(at, last_at)
    source.suspect = max(source.suspect, recovery.suspected(connection))
    return source
