"""The tables, and how a file of an earlier version becomes one of this version.

Every table has an integer key, so that what is readable of a damaged file can be fetched row by row. Rows carry checksums:
SQLite does not notice a changed bit inside of a value.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

APPLICATION_ID = 0x70676175
"""`pgau`, so that `file` and we ourselves know such a file."""

_FIRST = """
CREATE TABLE meta (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, value NOT NULL);
CREATE TABLE journal (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, wall REAL NOT NULL, tenant TEXT NOT NULL, form TEXT NOT NULL,
  traces BLOB NOT NULL, head_crc INTEGER NOT NULL, body_crc INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE TABLE traces (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, trace_id TEXT NOT NULL, closed REAL, forgotten TEXT,
  known TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (trace_id, tenant)
);
CREATE TABLE results (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, trace_id TEXT NOT NULL, span_id TEXT NOT NULL, revision INTEGER NOT NULL,
  at REAL NOT NULL, agent TEXT NOT NULL, scenario TEXT NOT NULL, withdrawn INTEGER NOT NULL DEFAULT 0,
  body TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (trace_id, span_id, tenant, revision)
);
CREATE INDEX results_by_series ON results (tenant, agent, scenario, id);
CREATE INDEX results_by_time ON results (at);
CREATE TABLE turns (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation TEXT NOT NULL, scenario TEXT NOT NULL,
  trace_id TEXT NOT NULL, span_id TEXT NOT NULL, at REAL NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL,
  UNIQUE (trace_id, span_id, tenant)
);
CREATE INDEX turns_by_conversation ON turns (tenant, conversation, scenario);
CREATE TABLE counts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, state TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE quarantine (id INTEGER PRIMARY KEY, at REAL NOT NULL, source TEXT NOT NULL, reason TEXT NOT NULL);
"""

_AWAITED = """
CREATE TABLE awaited (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, trace_id TEXT NOT NULL, span_id TEXT NOT NULL, at REAL NOT NULL,
  known TEXT NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (trace_id, span_id, tenant)
);
"""

MIGRATIONS: Sequence[str] = (_FIRST, _AWAITED)
"""The statements that lead from each version of the schema to the next; version 0 is an empty file. Never change one that was released."""

_ROWS_AT_ONCE = 200


class NewerSchemaError(Exception):
    """The file was written by a later version of pathgauge."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema to this version, all of it or nothing. Raises `NewerSchemaError` and `sqlite3.Error`."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise NewerSchemaError(f"found schema version {version}, expected at most {len(MIGRATIONS)}: a later version of pathgauge wrote it")
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {statements} PRAGMA user_version = {number}; COMMIT;")


def checksum(*values: object) -> int:
    """Of what a row says."""
    return zlib.crc32("\x1f".join(map(str, values)).encode("utf-8", "surrogatepass"))


def insert(connection: sqlite3.Connection, into: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert `rows` with as few statements as possible.

    Python lets go of its interpreter lock for every statement, and may have to wait for the busy threads to get it back: one
    statement a row would take milliseconds a row. `into` is the beginning of the statement, up to VALUES.
    """
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        chunk = rows[start : start + _ROWS_AT_ONCE]
        one = f"({','.join('?' * len(chunk[0]))})"
        connection.execute(f"{into} VALUES {','.join([one] * len(chunk))}", [value for row in chunk for value in row])


def delete(connection: sqlite3.Connection, table: str, ids: Iterable[int]) -> int:
    """Delete rows by their keys, with as few statements as possible; returns how many there were."""
    numbers, deleted = list(ids), 0
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        chunk = numbers[start : start + _ROWS_AT_ONCE]
        deleted += connection.execute(f"DELETE FROM {table} WHERE id IN ({','.join('?' * len(chunk))})", chunk).rowcount
    return deleted
