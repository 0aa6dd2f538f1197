"""Finds the result of the session that an answer about a conversation is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.conversations import SessionTimes, session_at
from pathgauge.collector.core.sessions.session import CLOSED_BY, ConversationId, SessionBounds
from pathgauge.collector.store.queries.stored_result import (
    Row,
    StoredResult,
    StoredSession,
    read,
)
from pathgauge.collector.store.sql import Connection, with_keys


class _Session(NamedTuple):
    key: EvaluationKey
    """Of its result."""
    times: SessionTimes


Sessions: TypeAlias = "Mapping[ConversationId, Sequence[_Session]]"


class Clock(NamedTuple):
    """What decides between several sessions of a conversation."""

    now: float
    """Unix seconds."""
    bounds: SessionBounds = SessionBounds()


def sessions_of(connection: Connection, answers: Iterable[Answer]) -> Sessions:
    """The sessions with a result of all conversations that are answered."""
    asked = list(dict.fromkeys(map(_conversation, answers)))
    columns = ", ".join(f"r.{name}" for name in Row._fields)
    found: dict[ConversationId, list[_Session]] = {}
    rows = with_keys(
        connection,
        "tenant, conversation",
        asked,
        f"SELECT {columns} FROM keys CROSS JOIN results AS r"
        " WHERE r.conversation = keys.conversation AND r.tenant = keys.tenant"
        " AND r.conversation <> '' AND r.withdrawn = 0 AND r.verdict <> ''",
    )
    for result in filter(None, (read(Row._make(row)) for row in rows)):
        if result.session is not None:
            session = _Session(result.key, _times(result, result.session))
            key = result.tenant, result.session.conversation_id
            found.setdefault(key, []).append(session)
    return found


def session_of(answer: Answer, sessions: Sessions, clock: Clock) -> EvaluationKey | None:
    """The result that an answer about a conversation is about; `None` while that is not known."""
    found = sessions.get(_conversation(answer), ())
    given_at = clock.now if answer.given_at is None else answer.given_at
    place = session_at([one.times for one in found], given_at, clock.now, clock.bounds)
    return None if place is None else found[place].key


def _conversation(answer: Answer) -> ConversationId:
    return answer.tenant, answer.conversation_id


def _times(result: StoredResult, session: StoredSession) -> SessionTimes:
    begun_at, ended_at = session.begun_at, session.ended_at
    return SessionTimes(
        result.at if begun_at is None else begun_at,
        result.at if ended_at is None else ended_at,
        session.ended_by in CLOSED_BY,
    )
