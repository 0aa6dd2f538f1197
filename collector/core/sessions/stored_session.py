"""What the store keeps of sessions: the sessions themselves, and their turns one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.sessions.session import KeptTurn, Session, SessionKey


@dataclass(frozen=True, slots=True)
class SessionChanges:
    """What changed in sessions since the last commit."""

    sessions: tuple[Session, ...] = ()
    """Sessions that changed, without their turns."""
    turns: tuple[tuple[str, KeptTurn], ...] = ()
    """Turns that changed, each with the id of its session."""
    removed_turns: tuple[EvaluationKey, ...] = ()
    forgotten: tuple[SessionKey, ...] = ()
    """Sessions that cannot be opened again. Their turns are forgotten with them."""

    def __bool__(self) -> bool:
        return bool(self.sessions or self.turns or self.removed_turns or self.forgotten)


NO_CHANGES = SessionChanges()


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session of an earlier process."""

    session: Session
    turns: tuple[KeptTurn, ...]


def head(session: Session) -> Session:
    """A copy without the turns."""
    return replace(session, turns={}, size=0)
