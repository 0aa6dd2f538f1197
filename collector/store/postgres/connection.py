"""One connection to PostgreSQL, with the methods that the statements of the store need.

A connection never waits for ever: connecting, a statement, and a server that has vanished each have
a time limit. Statements are sent without waiting for their results as long as nobody asks for
these, see `pipelined`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper

from pathgauge.collector.store.postgres.statements import Statement, translated
from pathgauge.collector.store.sql import MAX_ID, Parameters

Raw: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

STATEMENT_S = 30.0
"""How long one statement may take, also while it waits for a lock."""
IDLE_S = 60.0
"""How long a transaction may wait for its client. Then it ends, so that a process that was stopped
in the middle of one does not keep a partition from others.
"""
_OPTIONS: Mapping[str, str | int] = {
    "application_name": "pathgauge",
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""libpq's options, as far as the operator has not set them."""
_FIRST_ROWS, _MAX_ROWS = 64, 2_048
"""How many rows of a stream are read at first, and later."""


class PostgresCursor:
    """The rows of one statement."""

    __slots__ = ("_cursor", "_raw")

    def __init__(self, raw: Raw, cursor: psycopg.Cursor[tuple[Any, ...]]) -> None:
        self._raw = raw
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed or found."""
        if self._raw.pgconn.pipeline_status and self._cursor.pgresult is None:
            with self._raw.pipeline() as pipeline:
                pipeline.sync()
        return self._cursor.rowcount

    def fetchone(self) -> Any:
        """The next row, or `None`."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """All other rows."""
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


class PostgresConnection:
    """For one thread. Statements outside of `transaction` are transactions of their own. Methods
    raise `psycopg.Error`.
    """

    max_skew_s = 60.0
    """Clocks of scorers differ, and a transaction may take as long as a statement."""

    def __init__(self, raw: Raw, schema: str) -> None:
        self.raw = raw
        self.schema = schema
        self.settled = MAX_ID
        self._cursors = count()

    def execute(self, statement: str, parameters: Parameters = ()) -> PostgresCursor:
        """Execute one statement."""
        found = translated(statement)
        return self._execute(found, found.values(parameters))

    def executemany(self, statement: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Execute a statement that returns nothing, once for each set of parameters."""
        found = translated(statement)
        rows = [[_storable(value) for value in found.values(one)] for one in parameters]
        if rows:
            self.raw.cursor().executemany(found.text, rows)

    def stream(self, statement: str, parameters: Parameters = ()) -> Iterator[Any]:
        """The rows of a query within a transaction, some more than the caller takes."""
        found, name = translated(statement), f"rows_{next(self._cursors)}"
        declared = found._replace(text=f"DECLARE {name} NO SCROLL CURSOR FOR {found.text}")
        self._execute(declared, found.values(parameters))
        return self._fetch(name)

    @property
    def is_broken(self) -> bool:
        """Whether the server has to be connected to again."""
        return self.raw.closed or self.raw.broken

    @contextmanager
    def transaction(self, begin: str = "BEGIN") -> Iterator[None]:
        """Commit what is done within, or nothing of it."""
        self.raw.execute(begin)
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        self.raw.execute("COMMIT")

    def rollback(self) -> None:
        """End a transaction; nothing happens without one, or if the connection is broken. A
        connection that can execute nothing any more is closed: one that was cut within a pipeline
        may stay in it for ever, without being broken to libpq.
        """
        if self.is_broken:
            return
        if self.raw.pgconn.pipeline_status:
            self.raw.close()
        elif self.raw.info.transaction_status != TransactionStatus.IDLE:
            try:
                self.raw.execute("ROLLBACK")
            except psycopg.Error:
                self.raw.close()
                raise

    @contextmanager
    def pipelined(self) -> Iterator[None]:
        """Send the statements within without waiting for each. Errors of one may be raised by a
        later one, or at the end.
        """
        with self.raw.pipeline():
            yield

    def lock_key(self, purpose: str) -> int:
        """The first half of an advisory lock of this schema: 32 bits with a sign."""
        value = zlib.crc32(f"pathgauge {purpose} {self.schema}".encode())
        return value - (1 << 32) if value >> 31 else value

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self.raw.close()

    def _execute(self, statement: Statement, values: Sequence[Any]) -> PostgresCursor:
        try:
            return PostgresCursor(self.raw, self.raw.execute(statement.text, values or None))
        except (psycopg.DataError, UnicodeEncodeError) as error:
            if isinstance(error, psycopg.DataError) and error.sqlstate is not None:
                raise
        # Nothing was sent: a text has characters that PostgreSQL cannot store.
        cleaned = [_storable(value) for value in values]
        return PostgresCursor(self.raw, self.raw.execute(statement.text, cleaned))

    def _fetch(self, name: str) -> Iterator[Any]:
        rows = _FIRST_ROWS
        while found := self.raw.execute(f"FETCH FORWARD {rows} FROM {name}").fetchall():
            yield from found
            if len(found) < rows:
                return
            rows = min(2 * rows, _MAX_ROWS)


def connect(conninfo: str, settings: Mapping[str, str] | None = None) -> PostgresConnection:
    """Connect, with further settings of the session. Raises `psycopg.Error`."""
    written = conninfo_to_dict(conninfo)
    options = {name: value for name, value in _OPTIONS.items() if name not in written}
    raw: Raw = psycopg.connect(
        make_conninfo(conninfo, **options), autocommit=True, cursor_factory=psycopg.RawCursor
    )
    try:
        # Always the same type, so that equal statements are prepared once.
        raw.adapters.register_dumper(int, Int8Dumper)
        wanted = {
            "client_encoding": "UTF8",
            "statement_timeout": milliseconds(STATEMENT_S),
            "idle_in_transaction_session_timeout": milliseconds(IDLE_S),
            "tcp_keepalives_idle": "15",
            "tcp_keepalives_interval": "5",
            "tcp_keepalives_count": "3",
            **(settings or {}),
        }
        calls = ", ".join(
            f"set_config(${place}, ${place + 1}, false)" for place in range(1, 2 * len(wanted), 2)
        )
        values = [value for setting in wanted.items() for value in setting]
        found = raw.execute(f"SELECT current_schema(), {calls}", values).fetchone()
    except BaseException:
        raw.close()
        raise
    return PostgresConnection(raw, (found and found[0]) or "public")


def milliseconds(seconds: float) -> str:
    """A duration as settings of PostgreSQL have it."""
    return str(int(seconds * 1000))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "")
    return value
