"""A store that receives state. Its journal rows get new numbers, from 1."""

from __future__ import annotations

import os
import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathgauge.collector.store.schema import APPLICATION_ID, checksum, migrate
from pathgauge.collector.store.sql import insert
from pathgauge.collector.store.sqlite import files

_BUFFERED_BYTES = 1 << 20
_BUFFERED_ROWS = 100


class Numbers:
    """The new number of each row of one source; 16 bytes for each row, which may be millions."""

    def __init__(self) -> None:
        self._old, self._new = array("q"), array("q")

    def add(self, old: int, new: int) -> None:
        """Add a row; both numbers grow."""
        self._old.append(old)
        self._new.append(new)

    def get(self, old: int) -> int | None:
        """The new number of a row, if it was moved here."""
        place = bisect_left(self._old, old)
        if place == len(self._old) or self._old[place] != old:
            return None
        return self._new[place]

    def up_to(self, old: int) -> int:
        """The largest new number of the rows up to `old`; 0 without any."""
        place = bisect_right(self._old, old)
        return self._new[place - 1] if place else 0


@dataclass(slots=True)
class Target:
    """The rows of one store in the transaction that fills it."""

    connection: sqlite3.Connection
    at: float
    """The running time at which its process continues."""
    last_row: int = 0
    processed: int = 0
    """The last journal row that was processed by its source."""
    suspect: int = 0
    numbers: dict[str, Numbers] = field(default_factory=dict)
    """By the name of the source."""
    _waiting: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    _waiting_bytes: int = 0

    def next_row(self, source: str, old: int) -> int:
        """The number that the row `old` of a source gets here."""
        self.last_row += 1
        self.numbers.setdefault(source, Numbers()).add(old, self.last_row)
        return self.last_row

    def new_row(self, source: str, old: int) -> int | None:
        """The number that the row `old` of a source has here."""
        numbers = self.numbers.get(source)
        return numbers.get(old) if numbers is not None else None

    def insert(self, into: str, row: tuple[Any, ...]) -> None:
        """Insert a row, a little later: many with one statement. `into` is the statement up to
        VALUES.
        """
        waiting = self._waiting.setdefault(into, [])
        waiting.append(row)
        self._waiting_bytes += sum(len(v) for v in row if isinstance(v, bytes | str))
        if self._waiting_bytes >= _BUFFERED_BYTES or len(waiting) >= _BUFFERED_ROWS:
            self.flush()

    def flush(self) -> None:
        """Insert what waits."""
        for into, rows in self._waiting.items():
            insert(self.connection, into, rows)
        self._waiting, self._waiting_bytes = {}, 0

    def finish(self) -> None:
        """Insert what waits, and the position in the journal."""
        self.flush()
        position: list[tuple[str, float]] = [
            ("row", self.processed),
            ("at", self.at),
            ("crc", checksum(self.processed, self.at)),
        ]
        if self.suspect:
            position.append(("suspect", self.suspect))
        insert(self.connection, "INSERT INTO meta (name, value)", position)


@contextmanager
def created(folder: Path) -> Iterator[sqlite3.Connection]:
    """A database in a new folder, in a transaction. At the end it is on the disk. Raises
    `sqlite3.Error` and OSError.
    """
    folder.mkdir(mode=0o700, parents=True)
    path = folder / files.DATABASE
    os.close(files.open_private(path))
    connection = sqlite3.connect(path, isolation_level=None, factory=files.Connection)
    with closing(connection):
        # After a crash this file is discarded, so it is synced only at the end.
        for pragma in (
            f"page_size = {files.PAGE_BYTES}",
            "journal_mode = MEMORY",
            "synchronous = OFF",
            f"application_id = {APPLICATION_ID}",
        ):
            connection.execute(f"PRAGMA {pragma}")
        migrate(connection)
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
    files.sync(path)
    files.sync(folder)
