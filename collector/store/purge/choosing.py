"""Finds the traces that a purge removes. It only reads, so senders do not wait for it."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator

from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import Selection, journal
from pathgauge.collector.store.journal import RowHead
from pathgauge.collector.store.schema import name_of, text_of

_WITH_TRACE = (
    *("results", "turns", "traces", "awaited", "evidence", "feedback"),
    *("sessions", "session_turns", "session_members"),
)
# Each step is one look into an index; DISTINCT would read all of it.
TENANTS = """
WITH RECURSIVE tenants (tenant) AS (
  SELECT min(tenant) FROM results UNION ALL
  SELECT (SELECT min(tenant) FROM results WHERE tenant > tenants.tenant) FROM tenants
  WHERE tenants.tenant IS NOT NULL
)
SELECT tenant FROM tenants WHERE tenant IS NOT NULL
"""
OF_SCENARIO = (
    "SELECT DISTINCT tenant, trace_id FROM results WHERE tenant = ? AND scenario IN (?, ?)"
)
_OLD = "SELECT DISTINCT tenant, trace_id FROM results WHERE revision = 0 AND at < ?"


def of_trace(table: str) -> str:
    """The statement that finds the tenants with rows of a trace."""
    return f"SELECT DISTINCT tenant, trace_id FROM {table} WHERE trace_id = ?"


def of_tenant(table: str) -> str:
    """The statement that finds the traces of a tenant. Feedback may be about a conversation alone,
    which is no trace.
    """
    return f"SELECT DISTINCT tenant, trace_id FROM {table} WHERE tenant = ? AND trace_id <> ''"


def choose(connection: sqlite3.Connection, selection: Selection) -> Iterator[TraceKey]:
    """The traces that are removed as a whole; some more than once."""
    for head in journal.heads(connection, sys.maxsize):
        if not isinstance(head, int):
            yield from _of_request(head, selection)
    if selection.trace_id is not None:
        for table in _WITH_TRACE:
            yield from connection.execute(of_trace(table), (selection.trace_id,))
    if selection.tenant is not None:
        for table in _WITH_TRACE:
            yield from connection.execute(of_tenant(table), (selection.tenant,))
    if selection.scenario is not None:
        yield from _of_scenario(connection, selection.scenario)
        names = text_of(selection.scenario), name_of(selection.scenario)
        for table in ("turns", "evidence"):
            yield from connection.execute(
                f"SELECT DISTINCT tenant, trace_id FROM {table} WHERE scenario IN (?, ?)", names
            )


def selected(connection: sqlite3.Connection, selection: Selection) -> Iterator[TraceKey]:
    """The traces that a purge selects by their results."""
    if selection.scenario is not None:
        yield from _of_scenario(connection, selection.scenario)
    if selection.before is not None:
        yield from connection.execute(_OLD, (selection.before,))


def held(connection: sqlite3.Connection) -> set[TraceKey]:
    """All traces of which anything is stored, except for results and evidence."""
    found: set[TraceKey] = set()
    for head in journal.heads(connection, sys.maxsize):
        if not isinstance(head, int):
            found.update((head.tenant, trace_id) for trace_id in head.traces)
    for table in ("turns", "traces", "awaited", "session_turns", "sessions"):
        found.update(connection.execute(f"SELECT DISTINCT tenant, trace_id FROM {table}"))
    return found


def _of_request(head: RowHead, selection: Selection) -> Iterator[TraceKey]:
    is_old = selection.before is not None and head.wall < selection.before
    is_whole = is_old or head.tenant == selection.tenant
    for trace_id in head.traces:
        if is_whole or trace_id == selection.trace_id:
            yield head.tenant, trace_id


def _of_scenario(connection: sqlite3.Connection, scenario: str) -> Iterator[TraceKey]:
    names = text_of(scenario), name_of(scenario)
    for (tenant,) in connection.execute(TENANTS).fetchall():
        yield from connection.execute(OF_SCENARIO, (tenant, *names))
