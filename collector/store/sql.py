"""What the statements of the store need of a database, so that the same ones run on SQLite and on
PostgreSQL.

`sqlite3.Connection` is a `Connection` as it is. Statements are written for SQLite, with `?` or
`:name` for values; `postgres/connection.py` rewrites the few words that differ, and leaves out
`INDEXED BY` and `NOT INDEXED`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import merge
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

Row: TypeAlias = "tuple[Any, ...]"
Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

MAX_ID = 2**63 - 1
MAX_ROWS = 200
"""Rows per statement."""
MAX_KEYS = 100
"""Keys per statement."""


class Cursor(Protocol):
    """The rows that a statement has found."""

    @property
    def rowcount(self) -> int:
        """How many rows a statement has changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or `None`."""
        ...

    def fetchall(self) -> list[Any]:
        """All other rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A database, within the transaction of the caller."""

    def execute(self, statement: str, parameters: Any = ..., /) -> Cursor:
        """Execute one statement."""
        ...

    def executemany(self, statement: str, parameters: Iterable[Any], /) -> object:
        """Execute a statement that returns nothing, once for each set of parameters."""
        ...


@runtime_checkable
class SharedConnection(Protocol):
    """A database that several processes write to at the same time."""

    @property
    def settled(self) -> int:
        """No row with this key or a smaller one can still appear: transactions get their keys in
        one order, and may end in another one.
        """
        ...

    @property
    def max_skew_s(self) -> float:
        """By how many seconds the order of the keys may differ from that of the times."""
        ...

    def stream(self, statement: str, parameters: Parameters = ()) -> Iterator[Any]:
        """The rows of a query. Only some more are read than the caller takes."""
        ...


class Query(NamedTuple):
    """A query for rows whose first column is their `id`, the greatest first."""

    statement: str
    parameters: Sequence[Any]


def settled(connection: Connection) -> int:
    """The key up to which all rows are visible."""
    return connection.settled if isinstance(connection, SharedConnection) else MAX_ID


def max_skew_s(connection: Connection) -> float:
    """By how many seconds the order of the keys may differ from that of the times."""
    return connection.max_skew_s if isinstance(connection, SharedConnection) else 0.0


def each(connection: Connection, statement: str, parameters: Parameters = ()) -> Iterator[Any]:
    """The rows of a query, one by one: there may be too many to hold them all."""
    if isinstance(connection, SharedConnection):
        return connection.stream(statement, parameters)
    return iter(connection.execute(statement, parameters))


def with_keys(
    connection: Connection, columns: str, keys: Sequence[Row], statement: str
) -> Iterator[Any]:
    """The rows of a statement that reads the table `keys`, which has these columns. Many keys go
    into one statement, because each one is a journey to the server.
    """
    for start in range(0, len(keys), MAX_KEYS):
        chunk = keys[start : start + MAX_KEYS]
        one = f"({','.join('?' * len(chunk[0]))})"
        yield from connection.execute(
            f"WITH keys ({columns}) AS (VALUES {','.join([one] * len(chunk))}) {statement}",
            [value for key in chunk for value in key],
        )


def newest_first(connection: Connection, queries: Sequence[Query]) -> Iterator[Any]:
    """The rows of several queries in one order. They are read as they are taken."""
    if not isinstance(connection, SharedConnection):
        found = [connection.execute(*query) for query in queries]
        return merge(*found, key=lambda row: -row[0]) if len(found) != 1 else iter(found[0])
    if len(queries) == 1:
        return connection.stream(*queries[0])
    if not queries:
        return iter(())
    # One statement, because each one is a journey to the server.
    union = " UNION ALL ".join(f"({query.statement})" for query in queries)
    parameters = [value for query in queries for value in query.parameters]
    return connection.stream(f"{union} ORDER BY id DESC", parameters)


def insert(connection: Connection, into: str, rows: Sequence[Row], end: str = "") -> None:
    """Insert `rows` with as few statements as possible. `into` is the statement up to VALUES, `end`
    is what follows the values.

    Python releases the interpreter lock for every statement, and may wait for busy threads to get
    it back. One statement for each row would take milliseconds per row.
    """
    for start in range(0, len(rows), MAX_ROWS):
        chunk = rows[start : start + MAX_ROWS]
        one = f"({','.join('?' * len(chunk[0]))})"
        connection.execute(
            f"{into} VALUES {','.join([one] * len(chunk))} {end}",
            [value for row in chunk for value in row],
        )


def upsert(
    connection: Connection,
    table: str,
    columns: str,
    key: str,
    rows: Iterable[Row],
    *,
    reset: str = "",
) -> None:
    """Insert rows, in place of those with the same `key`: some of the `columns`. As with `INSERT OR
    REPLACE`, they are the newest rows then: `id`, and the columns of `reset`, which are not among
    `columns`, get what a new row would have.

    Of several rows with the same key only the last one is written: PostgreSQL refuses to write a
    row twice in one statement.
    """
    names = columns.split(", ")
    places = [names.index(name) for name in key.split(", ")]
    distinct = {tuple(row[place] for place in places): row for row in rows}
    end = _instead(columns, key, reset)
    insert(connection, f"INSERT INTO {table} ({columns})", list(distinct.values()), end)


@cache
def _instead(columns: str, key: str, reset: str) -> str:
    keys = key.split(", ")
    names = ["id", *columns.split(", "), *filter(None, reset.split(", "))]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    return f"ON CONFLICT ({key}) DO UPDATE SET {changes}"


def delete(connection: Connection, table: str, ids: Iterable[int]) -> int:
    """Delete rows by key with as few statements as possible; returns how many were deleted."""
    keys, deleted = list(ids), 0
    for start in range(0, len(keys), MAX_ROWS):
        chunk = keys[start : start + MAX_ROWS]
        deleted += connection.execute(
            f"DELETE FROM {table} WHERE id IN ({','.join('?' * len(chunk))})", chunk
        ).rowcount
    return deleted
