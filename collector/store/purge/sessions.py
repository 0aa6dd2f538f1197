"""Deletes sessions with any of their turns: what is left of one would still tell of the trace that
is purged. Of an open session, further turns begin another one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store.purge.removed import Removed, ResultRow, key_of, remove_results

_OPEN_OF_TRACES = """
SELECT t.tenant, t.session FROM purging CROSS JOIN session_turns AS t
ON t.trace_id = purging.trace_id AND +t.tenant = purging.tenant WHERE purging.id <= :last
UNION SELECT t.tenant, t.trace_id FROM purging CROSS JOIN sessions AS t
ON t.trace_id = purging.trace_id AND +t.tenant = purging.tenant WHERE purging.id <= :last
"""
_FINISHED_OF_TRACES = """
SELECT m.tenant, m.session FROM purging CROSS JOIN session_members AS m
ON m.trace_id = purging.trace_id AND +m.tenant = purging.tenant WHERE purging.id <= :last
UNION SELECT m.tenant, m.session FROM purging CROSS JOIN session_members AS m
ON m.session = purging.trace_id AND +m.tenant = purging.tenant WHERE purging.id <= :last
"""
_OLD_OPEN = """
SELECT DISTINCT o.tenant, o.session FROM session_turns AS o WHERE NOT EXISTS
(SELECT 1 FROM results AS t WHERE t.trace_id = o.trace_id AND t.span_id = o.span_id
AND +t.tenant = o.tenant AND t.revision = 0 AND t.at >= ?)
"""


def remove_of_traces(
    connection: sqlite3.Connection, removed: Removed, windows_since: float, last: int
) -> None:
    """Delete the sessions of the traces up to the key `last` of `purging`."""
    _remove_open(connection, removed, connection.execute(_OPEN_OF_TRACES, {"last": last}))
    found = connection.execute(_FINISHED_OF_TRACES, {"last": last}).fetchall()
    _remove_finished(connection, removed, windows_since, found)


def remove_with(
    connection: sqlite3.Connection,
    removed: Removed,
    windows_since: float,
    results: Sequence[ResultRow],
) -> None:
    """Delete the results of sessions that are made of any of these results, or are one of them."""
    traces = dict.fromkeys((tenant, trace_id) for _, tenant, trace_id, _, _ in results)
    found: dict[TraceKey, None] = {}
    for tenant, trace_id in traces:
        rows = connection.execute(
            "SELECT tenant, session FROM session_members WHERE trace_id = ? AND tenant = ?"
            " UNION SELECT tenant, session FROM session_members WHERE session = ? AND tenant = ?",
            (trace_id, tenant, trace_id, tenant),
        )
        found.update(((tenant, session), None) for tenant, session in rows)
    _remove_finished(connection, removed, windows_since, found)


def remove_old(connection: sqlite3.Connection, removed: Removed, before: float) -> None:
    """Delete the sessions with a turn whose result was stored before this Unix time."""
    _remove_open(connection, removed, connection.execute(_OLD_OPEN, (before,)))


def _remove_open(
    connection: sqlite3.Connection, removed: Removed, sessions: Iterable[tuple[str, str]]
) -> None:
    found = [(tenant, session) for tenant, session in sessions]
    removed.traces.update(found)
    for table, column in (("sessions", "trace_id"), ("session_turns", "session")):
        connection.executemany(f"DELETE FROM {table} WHERE tenant = ? AND {column} = ?", found)


def _remove_finished(
    connection: sqlite3.Connection,
    removed: Removed,
    windows_since: float,
    sessions: Iterable[TraceKey],
) -> None:
    for tenant, session in sessions:
        of_session = (session, tenant)
        awaited = connection.execute(
            "SELECT tenant, trace_id, span_id FROM awaited WHERE trace_id = ? AND tenant = ?",
            of_session,
        )
        removed.add_open("awaited", map(key_of, awaited.fetchall()))
        rows = connection.execute(
            "SELECT id, tenant, trace_id, span_id, at FROM results"
            " WHERE trace_id = ? AND +tenant = ?",
            of_session,
        ).fetchall()
        remove_results(connection, removed, windows_since, rows)
        for table in ("awaited", "evidence"):
            connection.execute(f"DELETE FROM {table} WHERE trace_id = ? AND tenant = ?", of_session)
        connection.execute(
            "DELETE FROM session_members WHERE session = ? AND tenant = ?", of_session
        )
