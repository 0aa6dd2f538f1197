"""The writes of a scorer that SQLite has no counterpart of, in the caller's transaction."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import orjson
import structlog

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.pipeline_events import ForwardedTurn, PublishedEvent
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store.forwarded_turns import encode
from pathgauge.collector.store.postgres.connection import PostgresConnection

_log = structlog.get_logger(__name__)

RESULTS_LOCK = "results"
TURNS_LOCK = "turns"
_TURN_LOCKS = 256
KEY_MASK = (1 << 31) - 1
"""The part of a key of a result that an advisory lock can have."""

_SHOW_KEYS = f"""
SELECT pg_advisory_xact_lock_shared(?::integer, (last_value & {KEY_MASK})::integer)
FROM results_id_seq
"""
"""Shows other sessions below which key no result of this transaction will be."""
_PUBLISH = """
WITH written AS (INSERT INTO publications (body) VALUES (?) RETURNING id)
SELECT set_config('pathgauge.publication', id::text, true) FROM written
"""
_MERGE_RECORDS = """
INSERT INTO records AS r (name, state) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET state = (
  SELECT array_agg(greatest(a, b) ORDER BY place)
  FROM unnest(r.state, excluded.state) WITH ORDINALITY AS both_states (a, b, place)
)
"""
"""Scorers learn different things of the same agent version: the latest hour and all records."""


def begin(connection: PostgresConnection, publication: bytes | None) -> None:
    """Prepare the transaction for results, and write what it publishes. Results name the
    publication that tells the gauge of them.
    """
    connection.execute(_SHOW_KEYS, (connection.lock_key(RESULTS_LOCK),))
    if publication is None:
        connection.execute("SELECT set_config('pathgauge.publication', '', true)")
    else:
        connection.execute(_PUBLISH, (publication,))


def lock_turns(connection: PostgresConnection, outcomes: Iterable[PublishedEvent]) -> None:
    """Wait for other scorers that write evaluations of the same turns: each of two transactions at
    the same time would take its revision for the newest one.
    """
    invocations = (one.invocation for one in outcomes if isinstance(one, Evaluation))
    turns = (one.trace_id for one in invocations if one.conversation_id is not None)
    # Always in the same order: two scorers must not wait for each other.
    for number in sorted({zlib.crc32(trace_id.encode()) % _TURN_LOCKS for trace_id in turns}):
        connection.execute(
            "SELECT pg_advisory_xact_lock(?::integer, ?::integer)",
            (connection.lock_key(TURNS_LOCK), number),
        )


def counts(connection: PostgresConnection, rows: Iterable[Row]) -> None:
    """Write the present values of counts of the partition; `None` deletes one."""
    for key, state in rows:
        name = orjson.dumps(list(key)).decode()
        if state is None:
            connection.execute(
                "DELETE FROM scorer_counts WHERE name = ?"
                " AND partition = current_setting('pathgauge.partition')::integer",
                (name,),
            )
        else:
            connection.execute(
                "INSERT INTO scorer_counts (name, state) VALUES (?, ?)"
                " ON CONFLICT (partition, name) DO UPDATE SET state = excluded.state",
                (name, list(map(float, state))),
            )


def records(connection: PostgresConnection, rows: Iterable[Row]) -> None:
    """Add what was learnt of agent versions to what others have learnt. Forgotten versions are
    deleted.
    """
    # Always in the same order: two scorers must not wait for each other.
    for name, state in sorted((orjson.dumps(list(key)).decode(), state) for key, state in rows):
        if state is None:
            connection.execute("DELETE FROM records WHERE name = ?", (name,))
        else:
            connection.execute(_MERGE_RECORDS, (name, list(map(float, state))))


def forwarded(connection: PostgresConnection, source: int, turns: Iterable[ForwardedTurn]) -> None:
    """Forward turns, each to its partition or to all others."""
    for turn in turns:
        tenant, trace_id, _ = turn.key
        try:
            body = encode(turn)
        except Exception:  # a value of a sender must not affect the other turns
            _log.exception("a turn cannot be forwarded", trace_id=trace_id)
            continue
        if turn.target is not None:
            connection.execute(
                "INSERT INTO forwarded (target, body, tenant, trace_id) VALUES (?, ?, ?, ?)",
                (turn.target, body, tenant, trace_id),
            )
            continue
        connection.execute(
            "INSERT INTO forwarded (target, body, tenant, trace_id)"
            " SELECT partition, ?::bytea, ?::text, ?::text FROM partitions WHERE partition <> ?",
            (body, tenant, trace_id, source),
        )


def drop_states(connection: PostgresConnection, partition: int, kept: int) -> None:
    """Delete the states of traces without requests, except the newest `kept`."""
    connection.execute(
        "DELETE FROM traces WHERE partition = ? AND id <= (SELECT id FROM traces"
        " WHERE partition = ? ORDER BY id DESC OFFSET ? LIMIT 1) AND (forgotten IS NOT NULL"
        " OR closed < coalesce((SELECT at FROM requests WHERE partition = ?"
        " ORDER BY \"row\" LIMIT 1), 'infinity'))",
        (partition, partition, kept, partition),
    )


def consumed(connection: PostgresConnection, ids: Sequence[int]) -> None:
    """Delete forwarded turns that were processed."""
    if ids:
        connection.execute("DELETE FROM forwarded WHERE id = ANY(?)", (list(ids),))
