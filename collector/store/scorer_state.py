"""Writes what a scorer needs to continue after a restart: the state of traces, turns, sessions and
pending judgments, and the position in the journal. `restore.py` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from pathgauge.collector.core.pipeline_events import StoredTrace, Withdrawn
from pathgauge.collector.store import Progress, journal, pending_judgments, sessions, turns
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, upsert


def write(connection: Connection, progress: Progress) -> journal.Released:
    """Write everything, in the caller's transaction; returns which journal rows it deleted."""
    write_changes(connection, progress)
    position = [
        ("row", progress.row),
        ("at", progress.at),
        ("crc", checksum(progress.row, progress.at)),
    ]
    upsert(connection, "meta", "name, value", "name", position)
    return journal.release(connection, progress.changes.released_rows)


def write_changes(connection: Connection, progress: Progress) -> None:
    """Write what changed in traces, turns, sessions and pending judgments, in the caller's
    transaction.
    """
    pending_judgments.write(
        connection, progress.changes.judgments_begun, progress.changes.judgments_ended, progress.at
    )
    withdrawn = [event.key for event in progress.outcomes if isinstance(event, Withdrawn)]
    turns.write(connection, progress.changes, withdrawn)
    sessions.write(connection, progress.changes.sessions)
    _write_traces(connection, progress.changes.traces)


def _write_traces(connection: Connection, traces: Iterable[StoredTrace]) -> None:
    rows = []
    for trace in traces:
        snapshot = trace.snapshot
        known = orjson.dumps(
            {
                "rows": snapshot.rows,
                "digests": trace.fingerprints,
                "completed": snapshot.completed,
                "next_reading": snapshot.next_reading,
                "read_entry_agents": snapshot.read_entry_agents,
            }
        ).decode()
        row = (*snapshot.key, snapshot.closed_at, snapshot.forgotten, known)
        rows.append((*row, checksum(*row)))
    upsert(
        connection,
        "traces",
        "tenant, trace_id, closed, forgotten, known, crc",
        "trace_id, tenant",
        rows,
    )
