"""Recognizes damage by the errors of SQLite, and copies the readable rows of damaged tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from pathgauge.collector.store.schema import MIGRATIONS

_UNREADABLE = {
    sqlite3.SQLITE_ERROR,  # a damaged schema lacks a table
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
}
_UNREADABLE_IO = {
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}

_MIN_ID, _MAX_ID = -(2**63), 2**63 - 1
"""The range of an integer key."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is damaged, in contrast to a disk that fails or is full."""
    return primary_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def primary_code(error: sqlite3.Error) -> int:
    """The primary result code of SQLite; 0 without one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def tables() -> list[str]:
    """The names of all tables of this version."""
    empty = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statements in MIGRATIONS:
            empty.executescript(statements)
        select = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        return [name for (name,) in empty.execute(select)]
    finally:
        empty.close()


def copy_table(damaged: sqlite3.Connection, fresh: sqlite3.Connection, table: str) -> int:
    """Copy all readable rows of a table; returns how many were copied."""
    columns = [column[1] for column in fresh.execute(f"PRAGMA table_info({table})")]
    into = (
        f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES"
        f" ({','.join('?' * len(columns))})"
    )
    copied = 0
    for row in _readable(damaged, table, columns):
        try:
            copied += fresh.execute(into, row).rowcount
        except (sqlite3.IntegrityError, sqlite3.DataError):  # a damaged value
            continue
    return copied


def _readable(
    damaged: sqlite3.Connection, table: str, columns: list[str]
) -> Iterator[tuple[object, ...]]:
    """All readable rows. Raises errors that damage does not explain."""
    select = f"SELECT {', '.join(columns)} FROM {table} NOT INDEXED WHERE id = ?"
    for row in _ids(damaged, table):
        yield from _read(damaged, select, row) or []


def _ids(damaged: sqlite3.Connection, table: str) -> Iterator[int]:
    """Keys from the front up to the first unreadable page, then those from the back."""
    forward = f"SELECT id FROM {table} NOT INDEXED WHERE id > ? ORDER BY id LIMIT 1"
    backward = (
        f"SELECT id FROM {table} NOT INDEXED WHERE id > ? AND id < ? ORDER BY id DESC LIMIT 1"
    )
    last, end, from_back = _MIN_ID, _MAX_ID, []
    # A damaged tree may contain a cycle, so a key out of order counts as unreadable.
    while (found := _read(damaged, forward, last)) and found[0][0] > last:
        [(last,)] = found
        yield last
    if found == []:
        return
    while (found := _read(damaged, backward, last, end)) and last < found[0][0] < end:
        [(end,)] = found
        from_back.append(end)
    yield from reversed(from_back)  # pages fill up only if rows are inserted in order


def _read(
    damaged: sqlite3.Connection, select: str, *parameters: int
) -> list[tuple[Any, ...]] | None:
    """The result of a query for one row; `None` if a page cannot be read. With more rows, Python
    would read ahead, and an error would lose the rows before it.
    """
    try:
        return damaged.execute(select, parameters).fetchall()
    except sqlite3.Error as error:
        if "no such table" in str(error):  # an earlier version wrote the file
            return []
        code = getattr(error, "sqlite_errorcode", 0)
        if primary_code(error) in _UNREADABLE or code in _UNREADABLE_IO:
            return None
        raise
