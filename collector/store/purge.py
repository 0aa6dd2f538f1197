"""Removes telemetry and results, so that no byte of them stays in the database.

All rows are deleted in one transaction, then the file is rewritten. A crash before the end of the
transaction leaves everything. A crash after it leaves bytes in unused pages; the next purge removes
them, whatever it selects.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import Purged, Selection, journal
from pathgauge.collector.store.journal import DamagedError, Packer
from pathgauge.collector.store.schema import name_of, text_of
from pathgauge.collector.store.sql import Connection, delete, insert

_INTO_CHOSEN = "INSERT OR IGNORE INTO chosen (tenant, trace_id)"
_CHOSEN = "(trace_id, tenant) IN (SELECT trace_id, tenant FROM chosen)"
_HAS_RESULT_SINCE = """EXISTS (
  SELECT 1 FROM results AS r
  WHERE r.trace_id = {table}.trace_id AND r.span_id = {table}.span_id
  AND r.tenant = {table}.tenant AND r.revision = 0 AND r.at >= :before
)"""

_ITS_RESULT = """
  SELECT 1 FROM results AS r
  WHERE r.trace_id = evidence.trace_id AND r.span_id = evidence.span_id
  AND r.tenant = evidence.tenant
"""

_FIRST_IS_OLD = """EXISTS (
  SELECT 1 FROM results AS r
  WHERE r.trace_id = results.trace_id AND r.span_id = results.span_id
  AND r.tenant = results.tenant AND r.revision = 0 AND r.at < :before
)"""


@dataclass(slots=True)
class _Index:
    """Which journal rows hold which traces."""

    rows: dict[TraceKey, list[int]] = field(default_factory=dict)
    old: set[TraceKey] = field(default_factory=set)
    """Traces with a record that was stored before the time of the selection."""
    damaged: list[int] = field(default_factory=list)
    """Rows with unknown traces."""


def purge(
    connection: sqlite3.Connection,
    selection: Selection,
    windows_since: float,
    selected: Set[TraceKey] | None = None,
) -> Purged:
    """Purge the database. Windows may hold evaluations since the Unix time `windows_since`.
    `selected` are the traces that the results select, if these are in another database. Raises
    `sqlite3.Error` if nothing was removed.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        purged = _remove(connection, selection, windows_since, selected)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return replace(purged, unfinished=_rewrite_file(connection))


def held(connection: sqlite3.Connection) -> set[TraceKey]:
    """All traces of which anything is stored, except for results and evidence."""
    found: set[TraceKey] = set(_index(connection, None).rows)
    for table in ("turns", "traces", "awaited"):
        found.update(connection.execute(f"SELECT DISTINCT tenant, trace_id FROM {table}"))
    return found


def selected(connection: sqlite3.Connection, selection: Selection) -> Iterator[TraceKey]:
    """The traces that a purge selects by their results."""
    columns, name = "SELECT DISTINCT tenant, trace_id FROM results WHERE", selection.scenario
    if name is not None:
        names = text_of(name), name_of(name)
        yield from connection.execute(f"{columns} scenario IN (?, ?)", names)
    if selection.before is not None:
        yield from connection.execute(f"{columns} revision = 0 AND at < ?", (selection.before,))


def _remove(
    connection: sqlite3.Connection,
    selection: Selection,
    windows_since: float,
    selected: Set[TraceKey] | None,
) -> Purged:
    index = _index(connection, selection.before)
    _choose(connection, selection, index)
    insert(connection, _INTO_CHOSEN, list(selected or ()))
    # Without results, only their owner knows which turns and judgments are old.
    before = selection.before if selected is None else None
    chosen = connection.execute("SELECT tenant, trace_id FROM chosen")
    in_journal = {key for key in chosen if key in index.rows}
    requests = _purge_journal(connection, selection.before, index, in_journal)
    turns = {key[:2] for key in purge_open(connection, "turns", before)}
    pending = purge_open(connection, "awaited", before)
    removed, evaluations = purge_results(connection, selection.before, windows_since)
    connection.execute(f"DELETE FROM evidence WHERE {_CHOSEN} OR NOT EXISTS ({_ITS_RESULT})")
    connection.execute(f"DELETE FROM traces WHERE {_CHOSEN}")
    connection.execute("DELETE FROM quarantine")
    connection.execute("DROP TABLE chosen")
    traces = in_journal | turns | {key[:2] for key in pending}
    return Purged(
        requests,
        removed,
        len(index.damaged),
        traces=frozenset(traces),
        evaluations=evaluations | pending,
    )


def _index(connection: sqlite3.Connection, before: float | None) -> _Index:
    index = _Index()
    for head in journal.heads(connection, sys.maxsize):
        if isinstance(head, int):
            index.damaged.append(head)
            continue
        for key in ((head.tenant, trace_id) for trace_id in head.traces):
            index.rows.setdefault(key, []).append(head.row)
            if before is not None and head.wall < before:
                index.old.add(key)
    return index


def _choose(connection: sqlite3.Connection, selection: Selection, index: _Index) -> None:
    """Write the selected traces into a temporary table, because there may be millions."""
    connection.execute(
        "CREATE TEMP TABLE chosen (tenant TEXT, trace_id TEXT, PRIMARY KEY (trace_id, tenant))"
        " WITHOUT ROWID"
    )
    into = _INTO_CHOSEN
    in_journal = [key for key in index.rows if key in index.old or key[1] == selection.trace_id]
    insert(connection, into, in_journal)
    if selection.trace_id is not None:
        for table in ("results", "turns", "traces", "awaited", "evidence"):
            connection.execute(
                f"{into} SELECT tenant, trace_id FROM {table} WHERE trace_id = ?",
                (selection.trace_id,),
            )
    if selection.scenario is not None:
        for table in ("results", "turns", "evidence"):
            connection.execute(
                f"{into} SELECT tenant, trace_id FROM {table} WHERE scenario IN (?, ?)",
                (text_of(selection.scenario), name_of(selection.scenario)),
            )


def _purge_journal(
    connection: sqlite3.Connection, before: float | None, index: _Index, unwanted: Set[TraceKey]
) -> int:
    """Rewrite requests without the traces. Requests that are unreadable, or hold nothing else, are
    deleted.
    """
    requests = 0
    if before is not None:
        requests = connection.execute("DELETE FROM journal WHERE wall < ?", (before,)).rowcount
    packer, empty = Packer(), list(index.damaged)
    for row in sorted({row for key in unwanted for row in index.rows[key]}):
        for values in journal.fetch(connection, row):
            requests += 1
            try:
                _, at, batch = journal.unpack(values)
            except DamagedError:
                empty.append(row)
                continue
            rest = _without(batch, unwanted)
            if rest.spans or rest.logs or rest.without_trace:
                journal.rewrite(connection, packer.pack(row, at, wall=values[2], batch=rest))
            else:
                empty.append(row)
    delete(connection, "journal", empty)
    return requests


def _without(batch: Batch, unwanted: Set[TraceKey]) -> Batch:
    tenant = batch.origin.tenant
    spans = tuple(span for span in batch.spans if (tenant, span.trace_id) not in unwanted)
    logs = tuple(log for log in batch.logs if (tenant, log.trace_id) not in unwanted)
    body = encode_request(spans or logs, batch.without_trace, batch.own_events)
    sent_as = batch.sent_as or batch.origin.encoding
    return replace(
        batch,
        origin=batch.origin._replace(encoding="protobuf"),
        sent_as=sent_as,
        body=body,
        spans=spans,
        logs=logs,
    )


def purge_open(connection: Connection, table: str, before: float | None) -> set[EvaluationKey]:
    """Delete turns of open conversations, or evaluations that wait for judges. Each was stored
    together with its result, whose time counts.
    """
    purged = f"WHERE {_CHOSEN}"
    if before is not None:
        purged += f" OR NOT {_HAS_RESULT_SINCE.format(table=table)}"
    keys: set[EvaluationKey] = set(
        connection.execute(
            f"SELECT tenant, trace_id, span_id FROM {table} {purged}", {"before": before}
        )
    )
    connection.execute(f"DELETE FROM {table} {purged}", {"before": before})
    return keys


def purge_results(
    connection: Connection, before: float | None, windows_since: float
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


def _rewrite_file(connection: sqlite3.Connection) -> str | None:
    """Remove the bytes in free pages and in the log; returns why that failed, or `None`."""
    try:
        connection.execute("VACUUM")
        busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.Error as error:
        return str(error)
    return "another process reads the database" if busy else None
