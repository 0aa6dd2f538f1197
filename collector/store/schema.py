"""The tables, and the migration of files of earlier versions.

Every table has an integer key, so that the rows of a damaged file can be read one by one. Rows have
checksums, because SQLite does not notice a changed bit inside a value.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from typing import TypeAlias

from pathgauge.collector.core.evaluations.label_values import KEPT_CHARS

APPLICATION_ID = 0x70676175
"""`pgau`: the mark by which `file` and pathgauge recognize a store."""

_FIRST = """
CREATE TABLE meta (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, value NOT NULL);
CREATE TABLE journal (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, wall REAL NOT NULL, tenant TEXT NOT NULL,\
 form TEXT NOT NULL,
  traces BLOB NOT NULL, head_crc INTEGER NOT NULL, body_crc INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE TABLE traces (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, trace_id TEXT NOT NULL,\
 closed REAL, forgotten TEXT,
  known TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (trace_id, tenant)
);
CREATE TABLE results (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, trace_id TEXT NOT NULL,\
 span_id TEXT NOT NULL, revision INTEGER NOT NULL,
  at REAL NOT NULL, agent TEXT NOT NULL, scenario TEXT NOT NULL,\
 withdrawn INTEGER NOT NULL DEFAULT 0,
  body TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (trace_id, span_id, tenant, revision)
);
CREATE INDEX results_by_series ON results (tenant, agent, scenario, id);
CREATE INDEX results_by_time ON results (at);
CREATE TABLE turns (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation TEXT NOT NULL, scenario TEXT NOT NULL,
  trace_id TEXT NOT NULL, span_id TEXT NOT NULL, at REAL NOT NULL, body TEXT NOT NULL,\
 crc INTEGER NOT NULL,
  UNIQUE (trace_id, span_id, tenant)
);
CREATE INDEX turns_by_conversation ON turns (tenant, conversation, scenario);
CREATE TABLE counts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, state TEXT NOT NULL,\
 crc INTEGER NOT NULL);
CREATE TABLE quarantine (id INTEGER PRIMARY KEY, at REAL NOT NULL, source TEXT NOT NULL,\
 reason TEXT NOT NULL);
"""

_AWAITED = """
CREATE TABLE awaited (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, trace_id TEXT NOT NULL, span_id TEXT NOT NULL,\
 at REAL NOT NULL,
  known TEXT NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (trace_id, span_id, tenant)
);
"""

_EVIDENCE = """
ALTER TABLE results ADD COLUMN verdict TEXT NOT NULL DEFAULT '';
ALTER TABLE results ADD COLUMN category TEXT NOT NULL DEFAULT '';
ALTER TABLE results ADD COLUMN signature TEXT NOT NULL DEFAULT '';
CREATE INDEX results_by_verdict ON results (tenant, verdict, id);
CREATE INDEX results_by_scenario ON results (tenant, scenario, verdict, id);
CREATE TABLE evidence (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, trace_id TEXT NOT NULL,\
 span_id TEXT NOT NULL, at REAL NOT NULL,
  scenario TEXT NOT NULL, failed INTEGER NOT NULL, size INTEGER NOT NULL, body BLOB NOT NULL,\
 crc INTEGER NOT NULL, UNIQUE (trace_id, span_id, tenant)
);
CREATE INDEX evidence_by_time ON evidence (at, size);
CREATE INDEX evidence_of_passed ON evidence (tenant, scenario, at) WHERE failed = 0;
"""

_PUBLICATIONS = """
CREATE TABLE publications (
  id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL, crc INTEGER NOT NULL
);
CREATE TABLE forwarded (
  id INTEGER PRIMARY KEY AUTOINCREMENT, target INTEGER, body BLOB NOT NULL, crc INTEGER NOT NULL
);
"""

_PURGING = """
CREATE TABLE purging (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, trace_id TEXT NOT NULL, UNIQUE (trace_id, tenant)
);
"""

_SESSIONS = """
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, trace_id TEXT NOT NULL, at REAL NOT NULL,\
 known TEXT NOT NULL,
  crc INTEGER NOT NULL, UNIQUE (trace_id, tenant)
);
CREATE TABLE session_turns (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, session TEXT NOT NULL, trace_id TEXT NOT NULL,\
 span_id TEXT NOT NULL,
  at REAL NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (trace_id, span_id, tenant)
);
CREATE INDEX session_turns_by_session ON session_turns (session, tenant);
CREATE TABLE session_members (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, trace_id TEXT NOT NULL, session TEXT NOT NULL,
  crc INTEGER NOT NULL, UNIQUE (trace_id, session, tenant)
);
CREATE INDEX session_members_by_session ON session_members (session, tenant);
"""

_FEEDBACK = """
CREATE TABLE feedback (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, trace_id TEXT NOT NULL,\
 span_id TEXT NOT NULL, conversation TEXT NOT NULL, name TEXT NOT NULL, rater TEXT NOT NULL,\
 client TEXT NOT NULL,
  given REAL NOT NULL, at REAL NOT NULL, is_current INTEGER NOT NULL,
  body TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (tenant, client)
);
CREATE INDEX feedback_by_subject ON feedback (trace_id, span_id, tenant, name, rater);
CREATE INDEX feedback_by_time ON feedback (at);
CREATE INDEX feedback_by_conversation ON feedback (tenant, conversation)\
 WHERE conversation <> '';
CREATE TABLE feedback_key (id INTEGER PRIMARY KEY, value BLOB NOT NULL);
"""

_RESULTS_OF_CONVERSATIONS = """
ALTER TABLE results ADD COLUMN conversation TEXT NOT NULL DEFAULT '';
UPDATE results SET conversation = coalesce(json_extract(body, '$.session.conversation'), '')\
 WHERE trace_id IN (SELECT session FROM session_members) AND json_valid(body);
CREATE INDEX results_of_conversation ON results (tenant, conversation) WHERE conversation <> '';
"""

MIGRATIONS: Sequence[str] = (
    _FIRST,
    _AWAITED,
    _EVIDENCE,
    _PUBLICATIONS,
    _PURGING,
    _SESSIONS,
    _FEEDBACK,
    _RESULTS_OF_CONVERSATIONS,
)
"""The statements that lead from each version of the schema to the next; version 0 is an empty file.
Never change one that was released, not even its white space: the text is compared with the file.

Each must add or change a table or an index. Then a version number that does not match the tables
proves damage.
"""

OVERWRITTEN = "overwritten"
_MARK = f"INSERT INTO meta (name, value) VALUES ('{OVERWRITTEN}', 1);"
MAX_NAME_CHARS = KEPT_CHARS

_Objects: TypeAlias = "frozenset[tuple[str | None, ...]]"
"""Tables and indexes: type, name, table, and the statement that created it."""


class NewerSchemaError(Exception):
    """The file was written by a later version of pathgauge."""


class DamagedSchemaError(sqlite3.DatabaseError):
    """The schema in the file is not one that pathgauge wrote."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def verify(connection: sqlite3.Connection) -> None:
    """Check that the tables match the version number, without writing anything.

    Raises `NewerSchemaError`, and `sqlite3.Error` for a damaged file. Tables and indexes that
    operators added are no damage.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    newer = NewerSchemaError(
        f"found schema version {version}, expected at most {len(MIGRATIONS)}: a later version of"
        " pathgauge wrote it"
    )
    try:
        found = _objects(connection)
    except sqlite3.Error as error:
        if version > len(MIGRATIONS):
            raise newer from error
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            raise DamagedSchemaError(str(error)) from error
        raise
    latest = max(number for number, objects in enumerate(_known()) if objects <= found)
    if version > len(MIGRATIONS) and found != _known()[latest]:
        raise newer
    if version != latest:
        raise DamagedSchemaError(f"found schema version {version}, expected {latest} by the tables")


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate a file that was verified to this version, completely or not at all. Raises
    `sqlite3.Error`.

    From here on, SQLite overwrites what it deletes. A file that was always written so has the mark
    `OVERWRITTEN` in the table `meta`.
    """
    connection.execute("PRAGMA secure_delete = ON")
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        added = _MARK if number == 1 else ""
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {statements} {added} PRAGMA user_version = {number}; COMMIT;"
            )
        except sqlite3.Error as error:
            # The tables were verified, so only damage can make a statement invalid.
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
                raise DamagedSchemaError(str(error)) from error
            raise


def _objects(connection: sqlite3.Connection) -> _Objects:
    return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


@cache
def _known() -> Sequence[_Objects]:
    """The tables and indexes of each version."""
    with closing(sqlite3.connect(":memory:")) as connection:
        known = [_objects(connection)]
        for statements in MIGRATIONS:
            connection.executescript(statements)
            known.append(_objects(connection))
    return known


def text_of(name: str | None) -> str:
    """A name from telemetry in a form that databases can store: lone surrogates are replaced, and
    NUL characters, which PostgreSQL refuses, are left out.
    """
    return (name or "").encode("utf-8", "replace").decode().replace("\0", "")


def name_of(name: str | None) -> str:
    """The same, cut to `MAX_NAME_CHARS`: answers with many results must not grow with the names
    that senders choose.
    """
    return text_of(name)[:MAX_NAME_CHARS]


def checksum(*values: object) -> int:
    """The checksum of the values of a row."""
    return zlib.crc32("\x1f".join(map(str, values)).encode("utf-8", "surrogatepass"))
