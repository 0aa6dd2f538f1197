"""The number of partitions that the stored state was made with.

A trace or a conversation belongs to the partition that its hash gives, modulo this number. With
another number, what is open would be continued by scorers that do not have its state. So the number
may change only while nothing is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import psycopg

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres.connection import PostgresConnection, connect
from pathgauge.collector.store.postgres.heads import heads_of, row_head
from pathgauge.collector.store.postgres.schema import migrate
from pathgauge.collector.store.restore import Tables, traces_of
from pathgauge.scorers.matching.wording import counted

SECTION = "Changing the number of partitions"
"""Of docs/scaling.md."""
_COUNTED = (
    ("SELECT count(*) FROM turns", "turn", "turns"),
    (
        "SELECT count(*) FROM sessions WHERE known LIKE '%\"ended_by\":null%'",
        "open session",
        "open sessions",
    ),
    ("SELECT count(*) FROM awaited", "awaited judgment", "awaited judgments"),
    ("SELECT count(*) FROM forwarded", "forwarded turn", "forwarded turns"),
)
_PER_PARTITION = ("requests", "traces", "scorer_counts", "partitions")


class PartitionCount(NamedTuple):
    """The number, and the topics of spans and of log records that have so many partitions."""

    number: int
    topics: Sequence[str]


Offsets: TypeAlias = Mapping[int, Mapping[str, int]]
"""The first offset that was not processed, by partition and topic."""
Unread: TypeAlias = Callable[[PartitionCount, Offsets], int]
"""The number of records from these offsets on."""


def write(connection: PostgresConnection, count: PartitionCount) -> None:
    """Note that the stored state is one of so many partitions, in the caller's transaction."""
    connection.execute(
        "INSERT INTO partition_count (partitions, topics) VALUES (?, ?) ON CONFLICT (one)"
        " DO UPDATE SET partitions = excluded.partitions, topics = excluded.topics",
        (count.number, list(count.topics)),
    )


def settle(conninfo: str, found: PartitionCount, closed_before: float, unread: Unread) -> None:
    """Accept the number of partitions of the topics. If it differs from that of the stored state,
    this state must be drained: then the new number is noted, and partitions that are no more are
    forgotten. Raises `StoreError`, and what `unread` raises.

    Traces that were closed after `closed_before`, a Unix time, still wait for late spans.
    """
    try:
        connection = connect(conninfo)
        try:
            migrate(connection)
            with connection.transaction():
                connection.execute(
                    "SELECT pg_advisory_xact_lock(?::integer, 0)", (connection.lock_key("schema"),)
                )
                _settle(connection, found, closed_before, unread)
        finally:
            connection.close()
    except psycopg.Error as error:
        raise StoreError(f"postgres: {error}") from error


def _settle(
    connection: PostgresConnection, found: PartitionCount, closed_before: float, unread: Unread
) -> None:
    stored = connection.execute("SELECT partitions, topics FROM partition_count").fetchone()
    if stored is not None and stored[0] != found.number:
        expected = PartitionCount(stored[0], stored[1] or found.topics)
        # A scorer that still runs cannot commit from here on.
        rows = connection.execute(
            "SELECT partition, offsets FROM partitions ORDER BY partition FOR UPDATE"
        )
        offsets: Offsets = dict(rows.fetchall())
        left = [*_left(connection, offsets, found.number, closed_before)]
        left += _named(unread(expected, offsets), "unread record", "unread records")
        if left:
            raise StoreError(
                f"topics {' and '.join(found.topics)}: found"
                f" {counted(found.number, 'partition')}, expected {expected.number}, with which the"
                " stored state was made, because it has"
                f" {', '.join(left)}: see '{SECTION}' in docs/scaling.md"
            )
        for table in _PER_PARTITION:
            connection.execute(f"DELETE FROM {table} WHERE partition >= ?", (found.number,))
    write(connection, found)


def _left(
    connection: PostgresConnection, partitions: Offsets, found: int, closed_before: float
) -> Iterator[str]:
    """What another number of partitions would tear apart."""
    traces = sum(_open_traces(connection, one, closed_before) for one in partitions)
    yield from _named(traces, "open trace", "open traces")
    for query, one, many in _COUNTED:
        yield from _named(connection.execute(query).fetchone()[0], one, many)
    removed = connection.execute("SELECT count(*) FROM publications WHERE partition >= ?", (found,))
    yield from _named(removed.fetchone()[0], "unread publication", "unread publications")


def _open_traces(connection: PostgresConnection, partition: int, closed_before: float) -> int:
    """The traces that are not read yet, or whose late spans are still waited for."""
    condition = f"WHERE partition = {int(partition)}"
    tables = Tables(connection, lambda table, row, reason: None, condition)
    found = (
        one.snapshot for one in traces_of(tables, map(row_head, heads_of(connection, partition)))
    )
    return sum(
        one.forgotten is None and (one.closed_at is None or one.closed_at > closed_before)
        for one in found
    )


def _named(number: int, one: str, many: str) -> list[str]:
    name = one if number == 1 else many
    return [f"{number} {name}"] if number else []
