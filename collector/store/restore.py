"""Reads what the last process left in the store. Damaged rows are passed to `quarantine`.

Bodies of the journal are not read here, because each row lists its traces in a separate column. So
the start takes seconds and little memory even with gigabytes of journal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
import structlog

from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.pipeline_events import StoredTrace
from pathgauge.collector.core.sessions.session import KeptTurn, Session
from pathgauge.collector.core.sessions.stored_session import StoredSession
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import TraceKey, TraceSnapshot
from pathgauge.collector.store import (
    Restored,
    journal,
    outbox,
    pending_judgments,
    sessions,
    turns,
)
from pathgauge.collector.store.journal import RowHead
from pathgauge.collector.store.purge import mark
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, each

_log = structlog.get_logger(__name__)

Quarantine = Callable[[str, int, str], None]
"""Moves a damaged row to the quarantine: table, key, reason."""


@dataclass(slots=True)
class _JournalRows:
    """The rows of one trace in the journal, and the times of the first and the last one."""

    first: float
    last: float = 0.0
    rows: list[int] = field(default_factory=list)


class _StoredState(NamedTuple):
    """What the last process knew about one trace."""

    closed: float | None
    forgotten: str | None
    rows: tuple[int, ...]
    completed: bool
    next_reading: float
    read_entry_agents: int
    fingerprints: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables to read, and what happens to damaged rows."""

    connection: Connection
    quarantine: Quarantine
    condition: str = ""
    """Which of the rows are read, such as `WHERE partition = 3`."""

    def rows(
        self, table: str, columns: str, rest: str = "", values: Sequence[object] = ()
    ) -> Iterator[tuple[int, list[Any]]]:
        """The keys and columns of rows with a valid checksum."""
        damaged = []
        try:
            for row, *written, crc in each(
                self.connection,
                f"SELECT id, {columns}, crc FROM {table} {self.condition} {rest}",
                values,
            ):
                if crc == checksum(*written):
                    yield row, written
                else:
                    damaged.append(row)
        finally:
            for row in damaged:
                self.quarantine(table, row, "checksum")


def restore(connection: sqlite3.Connection, quarantine: Quarantine) -> Restored:
    """Read everything except results and the bodies of the journal."""
    tables = Tables(connection, quarantine)
    requests, request_bytes = journal.count(connection)
    last_row, last_at = newest(tables)
    row, at = position(connection, last_row, last_at)
    return Restored(
        row=row,
        last_row=max(row, last_row),
        requests=requests,
        request_bytes=request_bytes,
        at=max(at, last_at),
        traces=tuple(traces_of(tables, journal.heads(connection, row))),
        turns=tuple(turns_of(tables)),
        sessions=tuple(sessions_of(tables)),
        counts=tuple(counts_of(tables)),
        pending=tuple(pending_of(tables)),
        published=outbox.published(connection),
        received=outbox.received(connection),
        is_purging=mark.read(connection) is not None,
    )


def newest(tables: Tables) -> tuple[int, float]:
    """Number and time of the last valid row of the journal. Damaged rows after it are quarantined,
    because new rows get their numbers.
    """
    damaged, newest = [], (0, 0.0)
    for head in journal.newest_heads(tables.connection):
        if not isinstance(head, int):
            newest = head.row, head.at
            break
        damaged.append(head)
    for row in damaged:
        tables.quarantine("journal", row, "checksum")
    return newest


def position(connection: Connection, last_row: int, last_at: float) -> tuple[int, float]:
    """The last row that was processed, and the running time that was reached."""
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    row, at = meta.get("row", 0), meta.get("at", 0.0)
    if "row" in meta and meta.get("crc") != checksum(row, at):
        # All traces of the journal are scored in any case. But it is unknown which requests were
        # counted, and no request may be counted twice.
        _log.error(
            "the position in the journal is damaged; uncounted requests stay uncounted",
            requests=last_row,
        )
        return last_row, last_at
    if not journal.is_possible(at):
        _log.error("the stored running time is damaged; it continues at the newest request", at=at)
        return row, last_at
    return row, at


def traces_of(tables: Tables, heads: Iterable[RowHead | int]) -> Iterator[StoredTrace]:
    """The traces whose states are stored, and those of the requests that were processed: `heads`
    in order, of a damaged request only its row.
    """
    in_journal: dict[TraceKey, _JournalRows] = {}
    damaged = []
    for head in heads:
        if isinstance(head, int):
            damaged.append(head)
            continue
        for trace_id in head.traces:
            trace = in_journal.setdefault((head.tenant, trace_id), _JournalRows(head.at))
            trace.last = head.at
            trace.rows.append(head.row)
    states = dict(_states(tables))
    for row in damaged:
        tables.quarantine("journal", row, "checksum")
    for key, state in states.items():
        yield _stored_trace(key, in_journal.pop(key, None), state)
    for key, trace in in_journal.items():
        yield StoredTrace(TraceSnapshot(key, tuple(trace.rows), trace.first, trace.last), {})


def _stored_trace(
    key: TraceKey, in_journal: _JournalRows | None, state: _StoredState
) -> StoredTrace:
    present = in_journal or _JournalRows(0.0)
    forgotten = state.forgotten
    closed = state.closed
    if forgotten is None and not set(state.rows) <= set(present.rows):
        forgotten = "late"  # its rows were deleted, except those that other traces still need
    if forgotten is None and present.rows and present.rows[-1] > max(state.rows, default=0):
        closed = None  # more spans arrived after it was read
    snapshot = TraceSnapshot(
        key,
        tuple(present.rows),
        present.first,
        present.last,
        closed,
        forgotten,
        completed=state.completed,
        next_reading=state.next_reading,
        read_entry_agents=state.read_entry_agents,
    )
    return StoredTrace(snapshot, state.fingerprints)


def _states(tables: Tables) -> Iterator[tuple[TraceKey, _StoredState]]:
    for _, (tenant, trace_id, closed, forgotten, text) in tables.rows(
        "traces", "tenant, trace_id, closed, forgotten, known", "ORDER BY id"
    ):
        known = orjson.loads(text)
        fingerprints = {
            span_id: (fingerprint, revision)
            for span_id, (fingerprint, revision) in known["digests"].items()
        }
        state = _StoredState(
            closed,
            forgotten,
            tuple(known["rows"]),
            known["completed"],
            known.get("next_reading", 0.0),  # not written by earlier versions
            known.get("read_entry_agents", 0),
            fingerprints,
        )
        yield (tenant, trace_id), state


def turns_of(tables: Tables) -> Iterator[StoredTurn]:
    """The turns of open conversations, in the order of their arrival."""
    unreadable = []
    for row, columns in tables.rows("turns", turns.COLUMNS, "ORDER BY at, id"):
        try:
            yield turns.read(columns)
        except ValueError:  # written by another version
            unreadable.append(row)
    for row in unreadable:
        tables.quarantine("turns", row, "unreadable")


def sessions_of(tables: Tables) -> Iterator[StoredSession]:
    """The sessions with their turns, the one that changed longest ago first."""
    turns_found: list[tuple[str, KeptTurn]] = []
    heads: list[Session] = []
    unreadable = []
    for row, columns in tables.rows("session_turns", sessions.TURN_COLUMNS, "ORDER BY id"):
        try:
            turns_found.append((columns[1], sessions.read_turn(columns)))
        except (TypeError, ValueError):  # written by another version
            unreadable.append(("session_turns", row))
    for row, columns in tables.rows("sessions", sessions.COLUMNS, "ORDER BY id"):
        try:
            heads.append(sessions.read(columns))
        except ValueError:
            unreadable.append(("sessions", row))
    for table, row in unreadable:
        tables.quarantine(table, row, "unreadable")
    yield from sessions.joined(heads, turns_found)


def pending_of(tables: Tables) -> Iterator[PendingJudgment]:
    """The evaluations that wait for judges, the oldest first."""
    unreadable = []
    for row, columns in tables.rows("awaited", pending_judgments.COLUMNS, "ORDER BY at, id"):
        try:
            pending = pending_judgments.read(columns)
            pending.invocation()
        except (TypeError, ValueError):  # written by another version
            unreadable.append(row)
        else:
            yield pending
    for row in unreadable:
        tables.quarantine("awaited", row, "unreadable")


def counts_of(tables: Tables) -> Iterator[Row]:
    """Counts and everything else with a name and numbers."""
    for _, (name, state) in tables.rows("counts", "name, state"):
        yield Row(orjson.loads(name), orjson.loads(state))
