"""Stores the sessions that are open or can be opened again, and their turns with their content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson
import structlog

from pathgauge.collector.core.documents.adapters import adapter
from pathgauge.collector.core.evaluations.invocation_json import from_json, to_json
from pathgauge.collector.core.sessions.session import KeptTurn, Session
from pathgauge.collector.core.sessions.stored_session import SessionChanges, StoredSession
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, upsert

_log = structlog.get_logger(__name__)

COLUMNS = "tenant, trace_id, at, known"
TURN_COLUMNS = "tenant, session, trace_id, span_id, at, body"


def write(connection: Connection, changes: SessionChanges) -> None:
    """Write what changed in sessions, in the caller's transaction."""
    if not changes:
        return
    connection.executemany(
        "DELETE FROM session_turns WHERE tenant = ? AND trace_id = ? AND span_id = ?",
        list(changes.removed_turns),
    )
    for table, column in (("sessions", "trace_id"), ("session_turns", "session")):
        connection.executemany(
            f"DELETE FROM {table} WHERE tenant = ? AND {column} = ?", list(changes.forgotten)
        )
    upsert(
        connection,
        "sessions",
        f"{COLUMNS}, crc",
        "trace_id, tenant",
        list(map(_row, changes.sessions)),
    )
    upsert(
        connection,
        "session_turns",
        f"{TURN_COLUMNS}, crc",
        "trace_id, span_id, tenant",
        list(_turn_rows(changes.turns)),
    )


def read(columns: Sequence[Any]) -> Session:
    """The session in a row with a valid checksum. Raises `ValueError` if another version has
    written it.
    """
    return adapter(Session).validate_json(columns[-1])


def read_turn(columns: Sequence[Any]) -> KeptTurn:
    """The turn in a row with a valid checksum. Raises as `read` does."""
    *_, at, body = columns
    known, _, content = body.partition("\n")
    revision, scores = orjson.loads(known)
    return KeptTurn(from_json(content.encode()), revision, at, scores)


def joined(
    sessions: Iterable[Session], turns: Iterable[tuple[str, KeptTurn]]
) -> Iterator[StoredSession]:
    """The sessions with their turns, the one that changed longest ago first. One that has lost all
    its turns to damage is left out.
    """
    of_session: dict[tuple[str, str], list[KeptTurn]] = {}
    for name, turn in turns:
        of_session.setdefault((turn.invocation.tenant, name), []).append(turn)
    for session in sorted(sessions, key=lambda one: one.changed_at):
        if found := of_session.get(session.key):
            yield StoredSession(session, tuple(found))


def shifted(columns: Sequence[Any], by: float) -> list[Any]:
    """The columns of a session with other running times, for another store."""
    tenant, trace_id, at, known = columns
    session = adapter(Session).validate_json(known)
    moved = replace(session, opened_at=session.opened_at + by, changed_at=session.changed_at + by)
    return [tenant, trace_id, at + by, adapter(Session).dump_json(moved).decode()]


def _row(session: Session) -> tuple[Any, ...]:
    known = adapter(Session).dump_json(session).decode()
    row = (session.tenant, session.id, session.changed_at, known)
    return (*row, checksum(*row))


def _turn_rows(turns: Iterable[tuple[str, KeptTurn]]) -> Iterator[tuple[Any, ...]]:
    for name, turn in turns:
        try:
            yield _turn_row(name, turn)
        except Exception:  # a value of a sender must not affect the other turns
            _log.exception("a turn cannot be stored", trace_id=turn.invocation.trace_id)


def _turn_row(name: str, turn: KeptTurn) -> tuple[Any, ...]:
    tenant, trace_id, span_id = turn.key
    known = orjson.dumps([turn.revision, dict(turn.scores)])
    body = (known + b"\n" + to_json(turn.invocation)).decode()
    row = (tenant, name, trace_id, span_id, turn.at, body)
    return (*row, checksum(*row))
