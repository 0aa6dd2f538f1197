"""The requests of a partition that are still needed: where each one is in Kafka, and which traces
it holds. The requests themselves stay in Kafka.

Rows are numbered by the scorer, in the order in which it has read the requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pathgauge.collector.store.journal import RowHead
from pathgauge.collector.store.postgres.connection import PostgresConnection
from pathgauge.collector.store.sql import Connection, insert

_COLUMNS = '"row", topic, "offset", at, wall, tenant, traces'


class Head(NamedTuple):
    """A request without its records."""

    row: int
    topic: str
    offset: int
    at: float
    """When it arrived, in running time."""
    wall: float
    """The same in Unix seconds."""
    tenant: str
    traces: Sequence[str]
    """Hex ids of the traces that have records in it."""


def write(connection: Connection, heads: Sequence[Head], released: Sequence[int]) -> None:
    """Add requests, and delete released ones, in the caller's transaction."""
    gone = frozenset(released)
    rows = [(*head[:-1], list(head.traces)) for head in heads if head.row not in gone]
    insert(connection, f"INSERT INTO requests ({_COLUMNS})", rows)
    if released:
        connection.execute(
            "DELETE FROM requests WHERE partition = current_setting('pathgauge.partition')::integer"
            ' AND "row" = ANY(?)',
            (list(released),),
        )


def heads_of(connection: PostgresConnection, partition: int) -> Iterator[Head]:
    """The requests of a partition, in their order."""
    return map(
        Head._make,
        connection.stream(
            f'SELECT {_COLUMNS} FROM requests WHERE partition = ? ORDER BY "row"', (partition,)
        ),
    )


def row_head(head: Head) -> RowHead:
    """The part of it that the state of traces is restored from."""
    return RowHead(head.row, head.at, head.wall, head.tenant, tuple(head.traces))
