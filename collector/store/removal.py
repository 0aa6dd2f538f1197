"""Deletes results and trace states that are not needed any more, or take too much space.

Each function works in the caller's transaction and deletes a limited number of rows, because
senders wait meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathgauge.collector.store import session_members
from pathgauge.collector.store.sql import Connection

_RESULT_BYTES = 300
"""What a result takes beside its body, in the table and its indexes."""
_STATE_BYTES = 250
"""The same for the state of a trace."""
_IS_OVER = "(closed < :oldest OR forgotten IS NOT NULL OR :oldest IS NULL)"
"""Whether a trace has no row in the journal, whose oldest row arrived at `oldest`."""


def drop_old_results(connection: Connection, before: float, max_rows: int) -> int:
    """Delete results older than the Unix time `before`; returns how many."""
    doomed = "SELECT id FROM results WHERE at < ? ORDER BY at LIMIT ?"
    return _drop_results(connection, doomed, (before, max_rows))


def drop_oldest_results(connection: Connection, size: int, max_rows: int) -> int:
    """Delete the oldest results, until they free `size` bytes; returns how many."""
    rows = 0
    for (length,) in connection.execute(
        "SELECT length(CAST(body AS BLOB)) FROM results ORDER BY at LIMIT ?", (max_rows,)
    ):
        rows += 1
        size -= length + _RESULT_BYTES
        if size <= 0:
            break
    return _drop_results(connection, "SELECT id FROM results ORDER BY at LIMIT ?", (rows,))


def drop_superseded_results(connection: Connection, first: int, last: int) -> int:
    """Delete results with these keys that are neither the first nor the newest revision; returns
    how many. Only earlier versions have stored such results.
    """
    return connection.execute(
        "DELETE FROM results WHERE id BETWEEN ? AND ? AND revision > 0 AND EXISTS"
        " (SELECT 1 FROM results AS newer WHERE newer.trace_id = results.trace_id"
        " AND newer.span_id = results.span_id AND newer.tenant = results.tenant"
        " AND newer.revision > results.revision)",
        (first, last),
    ).rowcount


def drop_trace_states(connection: Connection, kept_traces: int, max_rows: int) -> int:
    """Delete the states of traces without journal rows, except the newest `kept_traces`; returns
    how many.
    """
    newest = connection.execute("SELECT max(id) FROM traces").fetchone()[0] or 0
    return _drop_states(connection, newest - kept_traces, max_rows)


def drop_large_trace_states(connection: Connection, max_bytes: int, max_rows: int) -> int:
    """Delete the oldest states of traces without journal rows, so that all states together take no
    more than `max_bytes`; returns how many.
    """
    [last] = connection.execute(
        "SELECT max(id) FROM (SELECT id, sum(length(known) + ?) OVER (ORDER BY id DESC) AS size"
        " FROM traces) AS sizes WHERE size > ?",
        (_STATE_BYTES, max_bytes),
    ).fetchone()
    return _drop_states(connection, last or 0, max_rows)


def _drop_results(connection: Connection, doomed: str, values: Sequence[float]) -> int:
    """Delete the results whose keys a query finds, and what is stored as long as they are."""
    sessions = session_members.of_results(connection, doomed, values)
    dropped = connection.execute(f"DELETE FROM results WHERE id IN ({doomed})", values).rowcount
    session_members.drop(connection, sessions)
    return dropped


def _drop_states(connection: Connection, up_to: int, max_rows: int) -> int:
    first = connection.execute("SELECT at FROM journal ORDER BY id LIMIT 1").fetchone()
    return connection.execute(
        "DELETE FROM traces WHERE id IN (SELECT id FROM traces WHERE id <= :up_to"
        f" AND {_IS_OVER} ORDER BY id LIMIT :max_rows)",
        {"up_to": up_to, "oldest": first and first[0], "max_rows": max_rows},
    ).rowcount
