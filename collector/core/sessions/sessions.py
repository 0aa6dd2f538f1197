"""All sessions of one partition that are open or can be opened again.

Memory is bounded: beyond `max_bytes`, ended sessions are forgotten, the oldest first, and then open
ones end early, the one that was quiet longest first. Nothing here knows scores or criteria.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.memory_size import memory_size
from pathgauge.collector.core.sessions.session import (
    CLOSED_BY,
    ConversationId,
    EndedBy,
    KeptTurn,
    Session,
    SessionBounds,
    SessionKey,
    conversation_of,
    session_id,
)
from pathgauge.collector.core.sessions.stored_session import SessionChanges, StoredSession, head
from pathgauge.scorers.types import Invocation

MAX_BYTES = 32 << 20
"""Memory of all sessions, by default."""
_SESSION_BYTES = 1_000
"""Memory of a session beside its turns and its names."""


class Ended(NamedTuple):
    """A session that a result is due for."""

    session: Session
    by: EndedBy


class Placed(NamedTuple):
    """What became of a turn."""

    left: Session | None = None
    """The session that the turn has left, because late spans have changed its conversation, if that
    is empty now.
    """
    is_late: bool = False
    """Whether it was not kept, because its session is forgotten."""


class Sessions:
    """Decides which turn belongs to which session, and when a session ends."""

    def __init__(self, bounds: SessionBounds | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.bounds = bounds or SessionBounds()
        self.max_bytes = max_bytes
        self.size = 0
        """Memory of all sessions, in bytes."""
        self._sessions: OrderedDict[SessionKey, Session] = OrderedDict()
        """The one that changed longest ago comes first."""
        self._current: dict[ConversationId, SessionKey] = {}
        """The session that the next turn of a conversation belongs to."""
        self._of_turn: dict[EvaluationKey, SessionKey] = {}
        self._due: list[tuple[float, SessionKey]] = []
        self._scheduled: dict[SessionKey, float] = {}
        self._changed: dict[SessionKey, None] = {}
        self._changed_turns: dict[EvaluationKey, None] = {}
        self._removed: dict[EvaluationKey, None] = {}
        self._forgotten: dict[SessionKey, None] = {}

    def place(self, turn: KeptTurn, now: float) -> Placed:
        """Add a turn of a conversation, or replace its earlier revision."""
        turn = replace(turn, invocation=_kept(turn.invocation))
        conversation, known = conversation_of(turn.invocation), self._of_turn.get(turn.key)
        left = None
        if known is not None:
            session = self._sessions[known]
            before = session.turns[turn.key]
            if before.revision > turn.revision:
                return Placed()
            if session.conversation == conversation:
                self._correct(session, replace(turn, at=before.at), now)
                return Placed()
            left = self.withdraw(turn.key, now)
        elif turn.revision > 0:
            return Placed(is_late=True)  # it was part of a session that is forgotten
        if conversation is not None:
            self._add(turn, (turn.invocation.tenant, conversation), now)
        return Placed(left)

    def holds(self, key: EvaluationKey, conversation: str | None) -> bool:
        """Whether a turn is in a session of this conversation."""
        known = self._of_turn.get(key)
        return known is not None and self._sessions[known].conversation == conversation

    def add_scores(
        self, key: EvaluationKey, revision: int, scores: Mapping[str, float | None], now: float
    ) -> None:
        """Add scores of judges, which arrive later, to those of the turn."""
        known = self._of_turn.get(key)
        if known is None:
            return
        session = self._sessions[known]
        turn = session.turns[key]
        if turn.revision == revision:
            self._correct(session, replace(turn, scores={**turn.scores, **scores}), now)

    def withdraw(self, key: EvaluationKey, now: float) -> Session | None:
        """Forget a turn that is none any more; returns its session if that is empty now."""
        known = self._of_turn.pop(key, None)
        if known is None:
            return None
        session = self._sessions[known]
        self._resize(session, -memory_size(session.turns.pop(key).invocation))
        self._changed_turns.pop(key, None)
        self._removed[key] = None
        if not session.turns:
            self._forget(session)
            return session
        self._change(session, now)
        return None

    def expire(self, now: float) -> list[Ended]:
        """The sessions that end by `now`, each to be passed to `end`. Ended ones that cannot be
        opened again are forgotten.
        """
        ended = []
        while self._due and self._due[0][0] <= now:
            due_at, key = heapq.heappop(self._due)
            if self._scheduled.get(key) != due_at:
                continue
            session = self._sessions[key]
            del self._scheduled[key]
            if session.is_open:
                ended.append(self._end(session, session.reason(self.bounds, due_at), due_at))
            else:
                self._forget(session)
        return [*ended, *self._end_early(now)]

    def drain(self, now: float) -> list[Ended]:
        """End every session."""
        return [
            self._end(session, "drained", now)
            for session in list(self._sessions.values())
            if session.is_open
        ]

    def deadline(self) -> float | None:
        """The earliest time at which `expire` has something to do."""
        if self.size > self.max_bytes:
            return -math.inf
        while self._due and self._scheduled.get(self._due[0][1]) != self._due[0][0]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def restore(self, stored: StoredSession) -> None:
        """Continue with a session of an earlier process."""
        session = stored.session
        self._sessions[session.key] = session
        for turn in stored.turns:
            session.turns[turn.key] = turn
            self._of_turn[turn.key] = session.key
            self._resize(session, memory_size(turn.invocation))
        self.size += _own_size(session)
        if not session.closed:
            self._current[session.tenant, session.conversation] = session.key
        self._schedule(session)

    def discard(self, traces: Container[tuple[str, str]]) -> None:
        """Forget every session with a turn in these traces, or that is one of them: the store has
        deleted them.
        """
        found = {self._of_turn[key] for key in self._of_turn if key[:2] in traces}
        found |= {key for key in self._sessions if key in traces}
        for key in found:
            self._forget(self._sessions[key])
            self._forgotten.pop(key, None)
        for turn in [turn for turn in self._removed if turn[:2] in traces]:
            del self._removed[turn]

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return bool(self._changed or self._changed_turns or self._removed or self._forgotten)

    def changes(self) -> SessionChanges:
        """What changed since the last call."""
        changes = SessionChanges(
            tuple(head(self._sessions[key]) for key in self._changed),
            tuple(self._turn(key) for key in self._changed_turns),
            tuple(self._removed),
            tuple(self._forgotten),
        )
        self._changed, self._changed_turns = {}, {}
        self._removed, self._forgotten = {}, {}
        return changes

    def _turn(self, key: EvaluationKey) -> tuple[str, KeptTurn]:
        session = self._sessions[self._of_turn[key]]
        return session.id, session.turns[key]

    def _add(self, turn: KeptTurn, conversation: ConversationId, now: float) -> None:
        session = self._session_for(turn, conversation, now)
        session.has_new_turns = True
        self._put(session, turn)
        self._change(session, now, new=True)

    def _session_for(self, turn: KeptTurn, conversation: ConversationId, now: float) -> Session:
        """The session that can take a new turn, or a new one."""
        key = self._current.get(conversation)
        session = None if key is None else self._sessions[key]
        if session is not None and session.is_too_old(self.bounds, now):
            self._close(session)
            session = None
        if session is None:
            session = Session(*conversation, session_id(turn), now, now)
            self._sessions[session.key] = session
            self._current[conversation] = session.key
            self.size += _own_size(session)
        return session

    def _correct(self, session: Session, turn: KeptTurn, now: float) -> None:
        self._resize(session, -memory_size(session.turns[turn.key].invocation))
        self._put(session, turn)
        self._change(session, now)

    def _put(self, session: Session, turn: KeptTurn) -> None:
        session.turns[turn.key] = turn
        self._resize(session, memory_size(turn.invocation))
        self._of_turn[turn.key] = session.key
        self._changed_turns[turn.key] = None
        self._removed.pop(turn.key, None)

    def _change(self, session: Session, now: float, *, new: bool = False) -> None:
        """Have a result follow. A correction does not make an open session wait longer."""
        if not session.is_open:
            session.has_new_turns = new
        if new or not session.is_open or not session.has_new_turns:
            # A turn of another partition may have been read later than it is here.
            session.changed_at = max(session.changed_at, now)
        session.ended_by = None
        if session.limit(self.bounds) is not None:
            self._close(session)
        self._note(session)

    def _end(self, session: Session, by: EndedBy, at: float) -> Ended:
        session.ended_by, session.changed_at = by, at
        session.revision += 1
        if by in CLOSED_BY:
            self._close(session)
        self._note(session)
        return Ended(session, by)

    def _end_early(self, now: float) -> Iterable[Ended]:
        """Free memory: ended sessions first."""
        if self.size <= self.max_bytes:
            return
        for session in [one for one in self._sessions.values() if not one.is_open]:
            self._forget(session)
            if self.size <= self.max_bytes:
                return
        for session in list(self._sessions.values()):
            yield self._end(session, "memory", now)
            self._forget(session)
            if self.size <= self.max_bytes:
                return

    def _close(self, session: Session) -> None:
        session.closed = True
        conversation = session.tenant, session.conversation
        if self._current.get(conversation) == session.key:
            del self._current[conversation]

    def _note(self, session: Session) -> None:
        self._changed[session.key] = None
        self._sessions.move_to_end(session.key)
        self._schedule(session)

    def _schedule(self, session: Session) -> None:
        due_at = session.due_at(self.bounds)
        if self._scheduled.get(session.key) != due_at:
            self._scheduled[session.key] = due_at
            heapq.heappush(self._due, (due_at, session.key))

    def _forget(self, session: Session) -> None:
        self._close(session)
        del self._sessions[session.key]
        self._scheduled.pop(session.key, None)
        self._changed.pop(session.key, None)
        for key in session.turns:
            del self._of_turn[key]
            self._changed_turns.pop(key, None)
        self.size -= session.size + _own_size(session)
        self._forgotten[session.key] = None

    def _resize(self, session: Session, by: int) -> None:
        session.size += by
        self.size += by


def _own_size(session: Session) -> int:
    """Memory of a session beside its turns. The name of its conversation may be long."""
    return _SESSION_BYTES + 2 * len(session.conversation)


def _kept(invocation: Invocation) -> Invocation:
    """The invocation without what no session scorer reads and what takes most of the memory."""
    return replace(invocation, spans=(), tool_schemas={})
