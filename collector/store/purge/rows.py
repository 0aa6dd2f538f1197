"""Deletes what is stored about traces, some traces or results in each transaction.

Every statement begins with few rows and finds the others by an index.
"""

from __future__ import annotations

import sqlite3

from pathgauge.collector.store.purge import sessions
from pathgauge.collector.store.purge.mark import Mark
from pathgauge.collector.store.purge.removed import Removed, key_of, remove_results
from pathgauge.collector.store.sql import delete


def _json(column: str, name: str) -> str:
    """A member of an object; NULL in a damaged row, which must not keep the others from removal."""
    return f"CASE WHEN json_valid({column}) THEN json_extract({column}, '$.{name}') END"


# The `+` keeps SQLite from an index that begins with the tenant, of whom there may be only one.
_OF_TRACES = """
SELECT {columns} FROM purging CROSS JOIN {table} AS t
ON t.trace_id = purging.trace_id AND +t.tenant = purging.tenant WHERE purging.id <= ?
"""
_OF_KEY = "t.id, t.tenant, t.trace_id, t.span_id"
_CONVERSATIONS = f"""
SELECT DISTINCT t.tenant, {_json("t.body", "conversation")} AS conversation FROM purging
CROSS JOIN results AS t ON t.trace_id = purging.trace_id AND +t.tenant = purging.tenant
WHERE purging.id <= ? AND conversation IS NOT NULL
"""
_COLUMNS = {"turns": _OF_KEY, "awaited": _OF_KEY, "results": f"{_OF_KEY}, t.at"}
_SAME_RESULT = "t.trace_id = o.trace_id AND t.span_id = o.span_id AND +t.tenant = o.tenant"
OLD_RESULTS = f"""
WITH o AS (SELECT id, tenant, trace_id, span_id, revision, at FROM results WHERE at < ?
  ORDER BY at LIMIT ?)
SELECT id, tenant, trace_id, span_id, at FROM o UNION
SELECT t.id, t.tenant, t.trace_id, t.span_id, t.at FROM o CROSS JOIN results AS t
ON {_SAME_RESULT} WHERE o.revision = 0
"""
_OLD_EVIDENCE = f"""
SELECT id FROM evidence AS o WHERE at < ? AND NOT EXISTS
(SELECT 1 FROM results AS t WHERE {_SAME_RESULT})
"""
OPEN = ("turns", "awaited")
"""Turns of open conversations, and evaluations that wait for judges. Each was stored together with
its result, whose time counts. A turn that waits for its first evaluation has no result yet: the
time of its requests counts.
"""
_OLD_OPEN = f"""
SELECT id, tenant, trace_id, span_id FROM {{table}} AS o WHERE NOT EXISTS
(SELECT 1 FROM results AS t WHERE {_SAME_RESULT} AND t.revision = 0 AND t.at >= ?)
"""
_IS_EVALUATED = f"{_json('body', 'held')} IS NOT 1"


def of_traces(table: str) -> str:
    """The statement that finds the rows of the traces up to a key of `purging`."""
    return _OF_TRACES.format(table=table, columns=_COLUMNS.get(table, "t.id"))


def remove_traces(
    connection: sqlite3.Connection, removed: Removed, windows_since: float, max_traces: int
) -> bool:
    """Delete everything about some traces, except for the journal; `False` if there are no more."""
    [last] = connection.execute(
        "SELECT max(id) FROM (SELECT id FROM purging ORDER BY id LIMIT ?)", (max_traces,)
    ).fetchone()
    if last is None:
        return False
    for table in OPEN:
        rows = connection.execute(of_traces(table), (last,)).fetchall()
        removed.add_open(table, (key_of(key) for _, *key in rows))
        delete(connection, table, (row for row, *_ in rows))
    _remove_said_of_conversations(connection, last)
    sessions.remove_of_traces(connection, removed, windows_since, last)
    rows = connection.execute(of_traces("results"), (last,)).fetchall()
    remove_results(connection, removed, windows_since, rows)
    for table in ("evidence", "traces", "feedback"):
        found = connection.execute(of_traces(table), (last,)).fetchall()
        delete(connection, table, (row for (row,) in found))
    removed.add_finished(
        connection.execute(
            "SELECT tenant, trace_id FROM purging WHERE id <= ? ORDER BY id", (last,)
        )
    )
    connection.execute("DELETE FROM purging WHERE id <= ?", (last,))
    return True


def _remove_said_of_conversations(connection: sqlite3.Connection, last: int) -> None:
    """Delete what people said of the conversations of these traces: it is about them, too."""
    has_any = "SELECT 1 FROM feedback WHERE conversation <> '' LIMIT 1"
    if connection.execute(has_any).fetchone() is None:
        return
    found = connection.execute(_CONVERSATIONS, (last,)).fetchall()
    connection.executemany(
        "DELETE FROM feedback WHERE tenant = ? AND conversation = ? AND conversation <> ''", found
    )


def remove_old_results(
    connection: sqlite3.Connection,
    purge: Mark,
    removed: Removed,
    windows_since: float,
    max_rows: int,
) -> bool:
    """Delete some old results, with their later revisions; `False` if there are no more."""
    if purge.before is None or not purge.with_results:
        return False
    rows = connection.execute(OLD_RESULTS, (purge.before, max_rows)).fetchall()
    sessions.remove_with(connection, removed, windows_since, rows)
    remove_results(connection, removed, windows_since, rows)
    removed.add_finished(key_of(key)[:2] for _, *key, _ in rows)
    connection.executemany(
        f"DELETE FROM evidence AS o WHERE tenant = ? AND trace_id = ? AND span_id = ?"
        f" AND NOT EXISTS (SELECT 1 FROM results AS t WHERE {_SAME_RESULT})",
        [key_of(key) for _, *key, _ in rows],
    )
    return bool(rows)


def remove_rest(connection: sqlite3.Connection, purge: Mark, removed: Removed) -> None:
    """Delete what is old without a result, and all that was set aside."""
    connection.execute("DELETE FROM quarantine")
    if purge.tenant is not None:
        connection.execute(
            "DELETE FROM feedback WHERE tenant = ? AND at < ?", (purge.tenant, purge.before)
        )
    if purge.before is None or not purge.with_results:
        return
    for table in OPEN:
        select = _OLD_OPEN.format(table=table)
        if table == "turns":
            select += f"AND {_IS_EVALUATED}"
        rows = connection.execute(select, (purge.before,)).fetchall()
        removed.add_open(table, (key_of(key) for _, *key in rows))
        delete(connection, table, (row for row, *_ in rows))
    sessions.remove_old(connection, removed, purge.before)
    found = connection.execute(_OLD_EVIDENCE, (purge.before,)).fetchall()
    delete(connection, "evidence", (row for (row,) in found))
    connection.execute("DELETE FROM feedback WHERE at < ?", (purge.before,))
