"""Reads what the last owner of a partition has left, when another process claims it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store import Restored
from pathgauge.collector.store.postgres.connection import PostgresConnection
from pathgauge.collector.store.postgres.heads import Head, heads_of, row_head
from pathgauge.collector.store.restore import Tables, pending_of, sessions_of, traces_of, turns_of

_log = structlog.get_logger(__name__)

_CLAIM = """
INSERT INTO partitions (partition, generation, owner) VALUES (?, 1, ?)
ON CONFLICT (partition) DO UPDATE SET generation = partitions.generation + 1, owner = excluded.owner
RETURNING generation, commits, "row", at, offsets
"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A partition as its last owner has left it."""

    generation: int
    """A commit of an earlier generation is refused."""
    commits: int
    purge: int
    """The last purge; what it has removed is not in `restored`."""
    restored: Restored
    """Its counts are those of this partition. Requests that were not processed are in Kafka."""
    offsets: Mapping[str, int]
    """The offset in each topic of the first request that was not processed."""
    heads: Sequence[Head]
    """The requests of the open traces in `restored`."""
    records: Sequence[Row]
    """What all scorers have learnt of agent versions."""


def claim(connection: PostgresConnection, partition: int, owner: str) -> Claimed:
    """Take a partition over. Waits for a commit of its last owner. Raises `psycopg.Error`."""
    with connection.transaction():
        # From here to the end of the transaction no owner can commit, and no purge can begin.
        generation, commits, row, at, offsets = connection.execute(
            _CLAIM, (partition, owner)
        ).fetchone()
        purge = connection.execute("SELECT coalesce(max(id), 0) FROM purges").fetchone()[0]
        connection.execute(
            "UPDATE partitions SET purge = ? WHERE partition = ?", (purge, partition)
        )
        heads = tuple(heads_of(connection, partition))
        tables = Tables(
            connection,
            lambda table, row, reason: quarantine(connection, table, row, reason),
            f"WHERE partition = {int(partition)}",
        )
        restored = Restored(
            row=row,
            last_row=row,
            requests=len(heads),
            at=at,
            traces=tuple(traces_of(tables, map(row_head, heads))),
            turns=tuple(turns_of(tables)),
            sessions=tuple(sessions_of(tables)),
            counts=_rows(
                connection, "SELECT name, state FROM scorer_counts WHERE partition = ?", partition
            ),
            pending=tuple(pending_of(tables)),
        )
        records = records_of(connection)
    return Claimed(generation, commits, purge, restored, offsets, heads, records)


def records_of(connection: PostgresConnection) -> Sequence[Row]:
    """What all scorers have learnt of agent versions."""
    return _rows(connection, "SELECT name, state FROM records ORDER BY name")


def _rows(connection: PostgresConnection, select: str, *values: int) -> tuple[Row, ...]:
    return tuple(
        Row(orjson.loads(name), state) for name, state in connection.execute(select, values)
    )


def quarantine(connection: PostgresConnection, table: str, row: Any, reason: str) -> None:
    """Delete a row that cannot be read, within a transaction."""
    _log.error("row of the database that cannot be read deleted", table=table, row=row, why=reason)
    connection.execute(f"DELETE FROM {table} WHERE id = ?", (row,))
