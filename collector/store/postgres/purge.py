"""Removes telemetry and results from the database.

All rows are deleted in one transaction. It locks all partitions, so that no scorer commits at the
same time, and leaves a row in `purges`: a scorer cannot commit before it has read that row, and
forgotten what was purged. So a purged trace does not come back.

Publications that the gauge has not read yet stay: it needs their counts. They hold names and scores
but no content, and are deleted when the gauge has read them, after which it forgets the evaluations
that were purged. What Kafka keeps of the requests is not removed: see `retention.ms` of its topics.
"""

from __future__ import annotations

import time
from collections.abc import Set

import orjson
import psycopg

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import MAX_FINISHED, Purged, Selection, StoreError
from pathgauge.collector.store.postgres.connection import PostgresConnection, connect, milliseconds
from pathgauge.collector.store.postgres.schema import check
from pathgauge.collector.store.schema import name_of, text_of
from pathgauge.scorers.matching.wording import counted

TABLES = (
    *("results", "evidence", "turns", "awaited", "traces", "forwarded", "requests", "feedback"),
    *("sessions", "session_turns", "session_members"),
    "publications",  # those that were read and deleted
)
_WITH_TRACE = (
    *("results", "turns", "traces", "awaited", "evidence", "forwarded", "feedback"),
    *("sessions", "session_turns", "session_members"),
)
_CHOSEN = "(trace_id, tenant) IN (SELECT trace_id, tenant FROM chosen)"
_HAS_RESULT_SINCE = """EXISTS (
  SELECT 1 FROM results AS r
  WHERE r.trace_id = {table}.trace_id AND r.span_id = {table}.span_id
  AND r.tenant = {table}.tenant AND r.revision = 0 AND r.at >= :before
)"""
_IS_EVALUATED = "(body::json ->> 'held') IS DISTINCT FROM 'true'"
_FIRST_IS_OLD = """EXISTS (
  SELECT 1 FROM results AS r
  WHERE r.trace_id = results.trace_id AND r.span_id = results.span_id
  AND r.tenant = results.tenant AND r.revision = 0 AND r.at < :before
)"""
_DROP_MEMBERS = """
DELETE FROM session_members AS m WHERE NOT EXISTS
(SELECT 1 FROM results AS r WHERE r.trace_id = m.session AND r.tenant = m.tenant)
"""
_REST = (
    "PostgreSQL keeps the bytes of removed rows in its files until it uses their space again;"
    " --rewrite, or VACUUM FULL, removes them at once"
)


def purge(
    conninfo: str, selection: Selection, windows_since: float, *, rewrite: bool = False
) -> Purged:
    """Purge the database. Windows may hold evaluations since the Unix time `windows_since`.

    `rewrite` also removes the bytes of the rows from the files of PostgreSQL. Scorers wait
    meanwhile, and it needs as much free space as the tables take. Raises `StoreError` if nothing
    was removed.
    """
    try:
        connection = connect(
            conninfo, {"statement_timeout": "0", "lock_timeout": milliseconds(60.0)}
        )
    except psycopg.Error as error:
        raise StoreError(f"postgres: nothing was removed: {error}") from error
    try:
        check(connection)
        with connection.transaction():
            purged = _remove(connection, selection, windows_since)
    except psycopg.Error as error:
        connection.close()
        raise StoreError(f"postgres: nothing was removed: {error}") from error
    try:
        return _vacuumed(connection, purged, rewrite=rewrite)
    finally:
        connection.close()


def _remove(connection: PostgresConnection, selection: Selection, windows_since: float) -> Purged:
    connection.execute("SELECT partition FROM partitions ORDER BY partition FOR UPDATE")
    connection.execute("LOCK TABLE purges IN EXCLUSIVE MODE")
    _choose(connection, selection)
    of_sessions = _purge_sessions(connection, selection.before)
    requests, held = _purge_requests(connection)
    turns = {key[:2] for key in _purge_open(connection, "turns", selection.before)}
    pending = _purge_open(connection, "awaited", selection.before)
    _purge_feedback(connection, selection)
    finished = _finished(connection, selection.before)
    removed, recent = _purge_results(connection, selection.before, windows_since)
    connection.execute(
        f"DELETE FROM evidence WHERE {_CHOSEN} OR NOT EXISTS (SELECT 1 FROM results AS r WHERE"
        " r.trace_id = evidence.trace_id AND r.span_id = evidence.span_id"
        " AND r.tenant = evidence.tenant)"
    )
    for table in ("traces", "forwarded"):
        connection.execute(f"DELETE FROM {table} WHERE {_CHOSEN}")
    connection.execute("DROP TABLE chosen")
    connection.execute(_DROP_MEMBERS)
    traces = held | turns | of_sessions | {key[:2] for key in pending} | finished
    evaluations = recent | pending
    _tell(connection, traces, evaluations)
    return Purged(requests, removed, traces=frozenset(traces), evaluations=frozenset(evaluations))


def _choose(connection: PostgresConnection, selection: Selection) -> None:
    """Write the selected traces into a temporary table, because there may be millions."""
    connection.execute(
        'CREATE TEMP TABLE chosen (tenant text COLLATE "C", trace_id text COLLATE "C",'
        " PRIMARY KEY (trace_id, tenant))"
    )
    into, end = "INSERT INTO chosen (tenant, trace_id) SELECT DISTINCT", "ON CONFLICT DO NOTHING"
    in_requests = "tenant, trace_id FROM requests, unnest(traces) AS trace_id"
    if selection.before is not None:
        connection.execute(f"{into} {in_requests} WHERE wall < ? {end}", (selection.before,))
    for column in ("trace_id", "tenant"):
        value = getattr(selection, column)
        if value is None:
            continue
        connection.execute(f"{into} {in_requests} WHERE {column} = ? {end}", (value,))
        for table in _WITH_TRACE:
            connection.execute(
                f"{into} tenant, trace_id FROM {table} WHERE {column} = ? AND trace_id <> '' {end}",
                (value,),
            )
    if selection.scenario is not None:
        names = text_of(selection.scenario), name_of(selection.scenario)
        for table in ("results", "turns", "evidence"):
            connection.execute(
                f"{into} tenant, trace_id FROM {table} WHERE scenario IN (?, ?) {end}", names
            )


def _purge_sessions(connection: PostgresConnection, before: float | None) -> set[TraceKey]:
    """Delete the sessions with a turn that is purged, and choose their results; returns what
    pipelines may hold of them.
    """
    has_old_turn = ""
    if before is not None:
        has_old_turn = f" OR NOT {_HAS_RESULT_SINCE.format(table='session_turns')}"
    times = {"before": before}
    found: set[TraceKey] = set(
        connection.execute(
            f"SELECT tenant, session FROM session_turns WHERE {_CHOSEN}{has_old_turn}"
            f" UNION SELECT tenant, trace_id FROM sessions WHERE {_CHOSEN}",
            times,
        )
    )
    for table, column in (("sessions", "trace_id"), ("session_turns", "session")):
        for tenant, session in found:
            connection.execute(
                f"DELETE FROM {table} WHERE tenant = ? AND {column} = ?", (tenant, session)
            )
    is_old = ""
    if before is not None:
        is_old = (
            " OR EXISTS (SELECT 1 FROM results AS r WHERE r.trace_id = session_members.trace_id"
            " AND r.tenant = session_members.tenant AND r.at < :before)"
        )
    connection.execute(
        "INSERT INTO chosen (tenant, trace_id) SELECT DISTINCT tenant, session FROM"
        f" session_members WHERE {_CHOSEN}{is_old} ON CONFLICT DO NOTHING",
        times,
    )
    return found


def _purge_requests(connection: PostgresConnection) -> tuple[int, set[TraceKey]]:
    """Forget where the traces are in Kafka; returns how many requests held any, and the traces."""
    found = connection.execute(
        'SELECT partition, "row", tenant, array_agg(trace_id) FROM requests,'
        " unnest(traces) AS trace_id"
        " WHERE (trace_id, tenant) IN (SELECT trace_id, tenant FROM chosen)"
        ' GROUP BY partition, "row", tenant'
    ).fetchall()
    for partition, row, _, traces in found:
        connection.execute(
            "UPDATE requests SET traces = ARRAY(SELECT trace_id FROM unnest(traces) AS trace_id"
            ' WHERE trace_id <> ALL(?::text[])) WHERE partition = ? AND "row" = ?',
            (traces, partition, row),
        )
    connection.execute("DELETE FROM requests WHERE traces = '{}'")
    return len(found), {(tenant, trace_id) for _, _, tenant, traces in found for trace_id in traces}


def _purge_open(
    connection: PostgresConnection, table: str, before: float | None
) -> set[EvaluationKey]:
    """Delete turns of open conversations, or evaluations that wait for judges. Each was stored
    together with its result, whose time counts. A turn that waits for its first evaluation has no
    result yet: the time of its requests counts.
    """
    purged = f"WHERE {_CHOSEN}"
    if before is not None:
        is_evaluated = f"AND {_IS_EVALUATED}" if table == "turns" else ""
        purged += f" OR NOT {_HAS_RESULT_SINCE.format(table=table)} {is_evaluated}"
    keys: set[EvaluationKey] = set(
        connection.execute(
            f"SELECT tenant, trace_id, span_id FROM {table} {purged}", {"before": before}
        )
    )
    connection.execute(f"DELETE FROM {table} {purged}", {"before": before})
    return keys


def _finished(connection: PostgresConnection, before: float | None) -> set[TraceKey]:
    """Some traces of which only results, evidence or feedback are deleted."""
    found: set[TraceKey] = set(
        connection.execute(
            "SELECT tenant, trace_id FROM chosen UNION"
            " SELECT tenant, trace_id FROM results WHERE at < :before LIMIT :limit",
            {"before": before, "limit": MAX_FINISHED},
        )
    )
    return found


def _purge_feedback(connection: PostgresConnection, selection: Selection) -> None:
    """Delete what people said of the traces, and of their conversations."""
    connection.execute(
        f"DELETE FROM feedback WHERE {_CHOSEN} OR at < :before OR tenant = :tenant"
        " OR (conversation <> '' AND (tenant, conversation) IN (SELECT r.tenant,"
        " r.body::json ->> 'conversation' FROM results AS r JOIN chosen USING (trace_id, tenant)))",
        {"before": selection.before, "tenant": selection.tenant},
    )


def _purge_results(
    connection: PostgresConnection, before: float | None, windows_since: float
) -> tuple[int, frozenset[EvaluationKey]]:
    """Delete results; returns their number, and the evaluations that windows may still hold."""
    # No time is before NULL. A later revision goes with the first one.
    purged = f"({_CHOSEN} OR at < :before OR revision > 0 AND {_FIRST_IS_OLD})"
    times = {"before": before, "since": windows_since}
    recent = connection.execute(
        f"SELECT tenant, trace_id, span_id FROM results WHERE {purged} AND at >= :since", times
    )
    evaluations: frozenset[EvaluationKey] = frozenset(recent)
    return connection.execute(f"DELETE FROM results WHERE {purged}", times).rowcount, evaluations


def _tell(
    connection: PostgresConnection, traces: Set[TraceKey], evaluations: Set[EvaluationKey]
) -> None:
    """Leave word for scorers and the gauge."""
    [purge] = connection.execute(
        "INSERT INTO purges (wall, publication, traces, evaluations) VALUES"
        " (?, (SELECT coalesce(max(id), 0) FROM publications), ?::jsonb, ?::jsonb) RETURNING id",
        (time.time(), _json(traces), _json(evaluations)),
    ).fetchone()
    connection.execute("UPDATE partitions SET purge = ?", (purge,))


def _json(keys: Set[TraceKey] | Set[EvaluationKey]) -> str:
    return orjson.dumps(sorted(keys)).decode()


def _vacuumed(connection: PostgresConnection, purged: Purged, *, rewrite: bool) -> Purged:
    unfinished = [] if rewrite else [_REST]
    try:
        for table in TABLES:
            connection.execute(f"VACUUM {'FULL' if rewrite else ''} {table}")
        unread = connection.execute("SELECT count(*) FROM publications").fetchone()[0]
    except psycopg.Error as error:
        unfinished, unread = [str(error)], 0
    if unread:
        publications = counted(unread, "publication")
        unfinished.append(f"the gauge has not read {publications}, which may name it")
    return Purged(
        purged.requests,
        purged.results,
        unfinished="; ".join(unfinished) or None,
        traces=purged.traces,
        evaluations=purged.evaluations,
    )
