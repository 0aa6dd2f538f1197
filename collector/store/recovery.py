"""What is readable of a damaged database: a folder comes in, a fresh database stands where the
damaged one was, which is set aside.

pathgauge.db.new        being filled; when it is found, the salvage of the database beside it has to
be done, or done again pathgauge.db.salvaged   complete and on the disk; what is still missing is to
put it into the place of the damaged one

Until the second is there the damaged files stay where they are, and nothing that a crash leaves
looks like a whole store.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import structlog

from pathgauge.collector.store import StoreError, files, header_page
from pathgauge.collector.store.files import DATABASE
from pathgauge.collector.store.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    NewerSchemaError,
    insert,
    migrate,
    verify,
)

_log = structlog.get_logger(__name__)

_UNREADABLE = {
    sqlite3.SQLITE_ERROR,  # a table is not known any more
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
}
_UNREADABLE_IO = {
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}

_FIRST, _LAST = -(2**63), 2**63 - 1
"""The bounds of a key."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is to blame, and not the disk or the room on it."""
    return primary(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def primary(error: sqlite3.Error) -> int:
    """Its result code without what extends it; 0 where there is none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def unfinished(folder: Path) -> bool:
    """Whether a salvage was begun that has to be done (again)."""
    return _salvaged(folder).exists() or (_new(folder).exists() and (folder / DATABASE).exists())


def salvage(folder: Path) -> None:
    """Bring every row that can be read into a fresh database, and set the damaged one aside. To be
    repeated as a whole until it succeeds.

    Raises `StoreError` when what can be read cannot be written; then everything is where it was.
    """
    rows = None
    if not _salvaged(folder).exists():
        files.give_up_reserve(folder)
        try:
            rows = _fill(folder)
        except (sqlite3.Error, OSError) as error:
            raise _failed(folder, error) from error
    _log.error(
        "the store was damaged; what could be read of it was saved",
        rows=rows,
        damaged_file=f"{folder / DATABASE}.damaged-*",
    )
    try:
        _put_in_place(folder)
    except OSError as error:
        raise StoreError(
            f"{folder / DATABASE}: damaged, and what was saved of it cannot be put in its place:"
            f" {error}"
        ) from error


def suspect(connection: sqlite3.Connection) -> int:
    """Note that of the requests up to now some may be lost, and nobody knows of which traces;
    returns the last of these rows.
    """
    [last] = connection.execute(
        "SELECT max(value) FROM (SELECT value FROM meta WHERE name = 'row' UNION SELECT max(id)"
        " FROM journal)"
    ).fetchone()
    insert(connection, "INSERT OR REPLACE INTO meta (name, value)", [("suspect", last or 0)])
    return last or 0


def suspected(connection: sqlite3.Connection) -> int:
    """The last row that `suspect` noted; 0 if there is none."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'suspect'").fetchone()
    return found[0] if found else 0


def remove_set_aside(folder: Path) -> int:
    """Remove what salvages set aside; returns how many files that were. Not to be called while one
    is unfinished.
    """
    aside = list(folder.glob(f"{DATABASE}.damaged-*"))
    for path in aside:
        path.unlink()
    return len(aside)


def _new(folder: Path) -> Path:
    return folder / f"{DATABASE}.new"


def _salvaged(folder: Path) -> Path:
    return folder / f"{DATABASE}.salvaged"


def _fill(folder: Path) -> int:
    new = _new(folder)
    new.unlink(missing_ok=True)
    os.close(files.open_private(new))
    _sync(folder)  # a start that finds it does not take the damaged database for a whole one
    fresh = sqlite3.connect(new, isolation_level=None)
    try:
        # A crash leaves a file that is thrown away, so nothing is synced before the end.
        for pragma in (
            f"page_size = {files.PAGE_BYTES}",
            "journal_mode = MEMORY",
            "synchronous = OFF",
            f"application_id = {APPLICATION_ID}",
        ):
            fresh.execute(f"PRAGMA {pragma}")
        migrate(fresh)
        fresh.execute("BEGIN")
        rows = _copy_all(folder, fresh)
        suspect(fresh)
        fresh.execute("COMMIT")
    finally:
        fresh.close()
    _sync(new)
    new.rename(_salvaged(folder))
    _sync(folder)
    return rows


def _copy_all(folder: Path, fresh: sqlite3.Connection) -> int:
    database = folder / DATABASE
    with header_page.put_back(database, _trees(database)), closing(_open(database)) as damaged:
        return sum(_copy(damaged, fresh, table) for table in _tables())


def _trees(database: Path) -> dict[str, int]:
    """Where a damaged file says that its tables and indexes begin; nothing if it cannot be trusted."""
    with closing(_open(database)) as damaged:
        try:
            verify(damaged)
            return dict(damaged.execute("SELECT name, rootpage FROM sqlite_schema"))
        except (sqlite3.DatabaseError, NewerSchemaError):
            return {}


def _open(database: Path) -> sqlite3.Connection:
    damaged = sqlite3.connect(database, isolation_level=None, factory=files.Connection)
    damaged.text_factory = lambda text: text.decode(
        "utf-8", "replace"
    )  # a changed byte is for the checksum of its row to notice
    return damaged


def _put_in_place(folder: Path) -> None:
    database = folder / DATABASE
    _new(folder).unlink(missing_ok=True)
    if database.exists():
        _set_aside(database)
        _sync(folder)  # the fresh database must not meet the log of the damaged one
    _salvaged(folder).rename(database)
    _sync(folder)


def _set_aside(database: Path) -> None:
    """Can be repeated after a crash: the name depends on the damaged database alone, which is the
    last one to go.
    """
    aside = f"{database}.damaged-{database.stat().st_mtime_ns}"
    for suffix in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            os.rename(f"{database}{suffix}", f"{aside}{suffix}")


def _failed(folder: Path, error: Exception) -> StoreError:
    with suppress(OSError):
        os.truncate(_new(folder), 0)  # gives the room back, and leaves the mark
    database = folder / DATABASE
    if not isinstance(error, sqlite3.Error) or primary(error) not in {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    }:
        return StoreError(
            f"{database}: damaged, and what can be read of it cannot be saved: {error}"
        )
    needed = sum(
        path.stat().st_size for path in (database, folder / f"{DATABASE}-wal") if path.exists()
    )
    return StoreError(
        f"{database}: damaged, and what can be read of it cannot be saved: {error}; "
        f"found {files.free_bytes(folder)} bytes free, expected {needed}"
    )


def _sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _tables() -> list[str]:
    empty = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statements in MIGRATIONS:
            empty.executescript(statements)
        select = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        return [name for (name,) in empty.execute(select)]
    finally:
        empty.close()


def _copy(damaged: sqlite3.Connection, fresh: sqlite3.Connection, table: str) -> int:
    columns = [column[1] for column in fresh.execute(f"PRAGMA table_info({table})")]
    into = (
        f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES"
        f" ({','.join('?' * len(columns))})"
    )
    copied = 0
    for row in _readable(damaged, table, columns):
        try:
            copied += fresh.execute(into, row).rowcount
        except (sqlite3.IntegrityError, sqlite3.DataError):  # a value that the column does not take
            continue
    return copied


def _readable(
    damaged: sqlite3.Connection, table: str, columns: list[str]
) -> Iterator[tuple[object, ...]]:
    """Raises what is not for the damaged file to answer."""
    select = f"SELECT {', '.join(columns)} FROM {table} NOT INDEXED WHERE id = ?"
    for row in _ids(damaged, table):
        yield from _read(damaged, select, row) or []


def _ids(damaged: sqlite3.Connection, table: str) -> Iterator[int]:
    """From the front until a page cannot be read, then from the back."""
    ahead = f"SELECT id FROM {table} NOT INDEXED WHERE id > ? ORDER BY id LIMIT 1"
    back = f"SELECT id FROM {table} NOT INDEXED WHERE id > ? AND id < ? ORDER BY id DESC LIMIT 1"
    last, end, behind = _FIRST, _LAST, []
    # A damaged tree may lead in circles: a key that is out of order counts as one that cannot be
    # read.
    while (found := _read(damaged, ahead, last)) and found[0][0] > last:
        [(last,)] = found
        yield last
    if found == []:
        return
    while (found := _read(damaged, back, last, end)) and last < found[0][0] < end:
        [(end,)] = found
        behind.append(end)
    yield from reversed(behind)  # pages fill up only when rows come in order


def _read(
    damaged: sqlite3.Connection, select: str, *parameters: int
) -> list[tuple[Any, ...]] | None:
    """`None` when a page cannot be read. One row at a time: Python reads ahead, and what it had is
    lost when that fails.
    """
    try:
        return damaged.execute(select, parameters).fetchall()
    except sqlite3.Error as error:
        if "no such table" in str(error):  # an earlier version wrote the file
            return []
        if primary(error) in _UNREADABLE or getattr(error, "sqlite_errorcode", 0) in _UNREADABLE_IO:
            return None
        raise
