"""What processes leave for each other in the database: forwarded turns, and purges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store.postgres.connection import PostgresConnection

MAX_ROWS = 1_000
MAX_BYTES = 8 << 20
"""Forwarded turns that are read at once."""
_FORWARDED = """
SELECT id, source, body FROM (
  SELECT *, sum(octet_length(body)) OVER (ORDER BY id) AS size, row_number() OVER (ORDER BY id) AS n
  FROM (SELECT id, source, body FROM forwarded WHERE target = ? AND id <> ALL(?) ORDER BY id
    LIMIT ?) AS waiting
) AS sized WHERE size <= ? OR n = 1 ORDER BY id
"""


class Forwarded(NamedTuple):
    """A turn that another partition has forwarded; `store.forwarded_turns` decodes its body."""

    id: int
    source: int
    body: bytes


class Purge(NamedTuple):
    """Data was removed that other processes may hold in memory."""

    id: int
    publication: int
    """The gauge applies it after this publication."""
    traces: frozenset[TraceKey]
    """Traces of which nothing more is taken, as in `pathgauge.collector.store.Purged`."""
    evaluations: frozenset[EvaluationKey]
    """Evaluations that sinks may hold."""


def forwarded_to(
    connection: PostgresConnection, partition: int, taken: Iterable[int]
) -> Sequence[Forwarded]:
    """Some turns for a partition, without those that were `taken`. Those of one source are in their
    order.
    """
    found = connection.execute(_FORWARDED, (partition, list(taken), MAX_ROWS, MAX_BYTES))
    return [Forwarded._make(row) for row in found]


def others_reached(connection: PostgresConnection, partition: int) -> float:
    """The time of the partition that is furthest behind, without this one. What it forwards later
    was read after that.
    """
    found: float = connection.execute(
        "SELECT coalesce(min(at), 'infinity') FROM partitions WHERE partition <> ?", (partition,)
    ).fetchone()[0]
    return found


def has_forwarded(connection: PostgresConnection, partition: int, taken: Iterable[int]) -> bool:
    """Whether there are turns for a partition beside those that were `taken`."""
    return bool(
        connection.execute(
            "SELECT EXISTS (SELECT 1 FROM forwarded WHERE target = ? AND id <> ALL(?))",
            (partition, list(taken)),
        ).fetchone()[0]
    )


def is_purged(connection: PostgresConnection, trace: TraceKey) -> bool:
    """Whether a trace was purged in the last days."""
    text = orjson.dumps([trace]).decode()
    found = connection.execute(
        "SELECT 1 FROM purges WHERE traces @> CAST(? AS jsonb) LIMIT 1", (text,)
    )
    return found.fetchone() is not None


def purges_after(connection: PostgresConnection, purge: int) -> Sequence[Purge]:
    """The purges after this one, in their order."""
    found = connection.execute(
        "SELECT id, publication, traces, evaluations FROM purges WHERE id > ? ORDER BY id", (purge,)
    )
    return [
        Purge(
            number,
            publication,
            frozenset((tenant, trace_id) for tenant, trace_id in traces),
            frozenset((tenant, trace_id, span_id) for tenant, trace_id, span_id in evaluations),
        )
        for number, publication, traces, evaluations in found
    ]
