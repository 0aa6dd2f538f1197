"""Opens the database for one query of the API, the pages or the commands.

Connecting takes longer than most queries, so a service keeps one idle connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

import psycopg
from psycopg.errors import QueryCanceled

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres.connection import (
    PostgresConnection,
    connect,
    milliseconds,
)
from pathgauge.collector.store.postgres.schema import check
from pathgauge.collector.store.postgres.writing import KEY_MASK, RESULTS_LOCK
from pathgauge.collector.store.queries.reading import MAX_SECONDS, QueryTooSlowError

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""One state of the database for all statements."""
_LAST = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM results_id_seq"
_IN_FLIGHT = """
SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid = (?::bigint & 4294967295)::oid
"""
"""Below these keys no result of a running transaction will be, see `writing.begin`."""


class PostgresReading:
    """For any thread. Called, it opens the database."""

    def __init__(
        self, conninfo: str, max_seconds: float = MAX_SECONDS, *, keep_idle: bool = True
    ) -> None:
        """Without `keep_idle`, no connection stays open between two queries."""
        self._conninfo = conninfo
        self._max_seconds = max_seconds
        self._keep_idle = keep_idle
        self._idle: PostgresConnection | None = None
        self._lock = Lock()

    @contextmanager
    def __call__(self) -> Iterator[PostgresConnection]:
        """A connection that can only read. Raises `StoreError`."""
        try:
            connection = self._begin()
            try:
                yield connection
                connection.rollback()
            except BaseException:
                connection.close()
                raise
        except QueryCanceled as error:
            raise QueryTooSlowError(
                f"postgres: the query took more than {self._max_seconds} s"
            ) from error
        except psycopg.Error as error:
            raise StoreError(f"postgres: {error}") from error
        self._keep(connection)

    def close(self) -> None:
        """Close the idle connection."""
        with self._lock:
            idle, self._idle = self._idle, None
        if idle is not None:
            idle.close()

    def _begin(self) -> PostgresConnection:
        with self._lock:
            connection, self._idle = self._idle, None
        if connection is not None:
            with suppress(psycopg.OperationalError):
                return _begun(connection)
            connection.close()  # the server was restarted meanwhile
        connection = connect(
            self._conninfo,
            {
                "statement_timeout": milliseconds(self._max_seconds),
                # Most queries need only the first of their rows.
                "cursor_tuple_fraction": "0.0001",
                "default_transaction_read_only": "on",
            },
        )
        try:
            check(connection)
            return _begun(connection)
        except BaseException:
            connection.close()
            raise

    def _keep(self, connection: PostgresConnection) -> None:
        with self._lock:
            if self._keep_idle and self._idle is None:
                self._idle = connection
                return
        connection.close()


def _begun(connection: PostgresConnection) -> PostgresConnection:
    """The connection, in a transaction that sees all results up to `settled`."""
    # In this order, and before the transaction: what begins later gets larger keys.
    with connection.pipelined():
        last = connection.execute(_LAST)
        running = connection.execute(_IN_FLIGHT, (connection.lock_key(RESULTS_LOCK),))
        [newest] = last.fetchone()
        behind = [(newest - key) & KEY_MASK for (key,) in running]
    connection.execute(_BEGIN)
    connection.settled = newest - max(behind, default=0)
    return connection
