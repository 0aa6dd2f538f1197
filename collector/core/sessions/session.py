"""One session: its turns, and when it ends.

A session ends when it was quiet for `idle`, or for `settle` after its newest turn has signalled the
end, or when it reaches a limit. It is kept for a while afterwards. A new turn opens it again, and a
turn that late spans have changed corrects it: both lead to a revision of its result. A session that
has reached a limit is closed for good, and the next turn of its conversation begins another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.scorers.types import Invocation

EndedBy = Literal["idle", "signal", "turns", "bytes", "age", "memory", "drained"]
"""What ended a session. A closed set, because it is a metric label."""

CLOSED_BY: frozenset[EndedBy] = frozenset({"turns", "bytes", "age", "memory"})
"""After these, no turn opens the session again."""

SessionKey: TypeAlias = "tuple[str, str]"
"""Tenant, and the id of the session, which takes the place of a trace id."""
ConversationId: TypeAlias = "tuple[str, str]"
"""Tenant, conversation id."""


class SessionBounds(NamedTuple):
    """When sessions end, and how large they may be. Times in seconds."""

    idle: float = 1800.0
    """Quiet period after which a session has ended."""
    settle: float = 10.0
    """Quiet period after a signal of the end, and after a correction of an ended session."""
    reopen: float = 21_600.0
    """How long an ended session can be opened again."""
    max_age: float = 86_400.0
    max_turns: int = 200
    max_session_bytes: int = 4 << 20


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn with the newest scores of its criteria."""

    invocation: Invocation
    revision: int
    """Of its evaluation."""
    at: float
    """When it arrived first."""
    scores: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def key(self) -> EvaluationKey:
        """Its identity."""
        return self.invocation.tenant, self.invocation.trace_id, self.invocation.span_id


@dataclass(slots=True)
class Session:
    """One session. The fields are what a restart has to restore."""

    tenant: str
    conversation: str
    id: str
    opened_at: float
    changed_at: float
    """When the last change arrived that its next result has to contain."""
    revision: int = -1
    """Of its newest result; -1 before the first."""
    ended_by: EndedBy | None = None
    """What ended it last; `None` while it is open."""
    closed: bool = False
    """Whether it has reached a limit, so that no turn can be added."""
    has_new_turns: bool = True
    """While it is open: whether it waits for further turns, and not only for corrections."""
    turns: dict[EvaluationKey, KeptTurn] = field(default_factory=dict)
    size: int = 0
    """Memory of the turns, in bytes."""

    @property
    def key(self) -> SessionKey:
        """Its identity."""
        return self.tenant, self.id

    @property
    def is_open(self) -> bool:
        """Whether a result is due."""
        return self.ended_by is None

    def ordered(self) -> Iterator[KeptTurn]:
        """The turns in the order of their start."""
        yield from sorted(self.turns.values(), key=_place)

    def due_at(self, bounds: SessionBounds) -> float:
        """When it ends, or, if it has ended, when it is forgotten."""
        if not self.is_open:
            return self.changed_at + bounds.reopen
        return min(self.changed_at + self._quiet(bounds), self._old_at(bounds))

    def limit(self, bounds: SessionBounds) -> EndedBy | None:
        """The limit that it has reached."""
        if len(self.turns) >= bounds.max_turns:
            return "turns"
        return "bytes" if self.size >= bounds.max_session_bytes else None

    def is_too_old(self, bounds: SessionBounds, now: float) -> bool:
        """Whether no further turn can be added because of its age."""
        return now >= self.opened_at + bounds.max_age

    def reason(self, bounds: SessionBounds, now: float) -> EndedBy:
        """What ends it at `now`."""
        reached = self.limit(bounds)
        if reached is not None:
            return reached
        if self.is_too_old(bounds, now):
            return "age"
        return "signal" if self._signals_end() else "idle"

    def _quiet(self, bounds: SessionBounds) -> float:
        if not self.has_new_turns or self._signals_end():
            return bounds.settle
        return 0.0 if self.closed else bounds.idle

    def _old_at(self, bounds: SessionBounds) -> float:
        """An old session may still be corrected."""
        if self.closed or not self.has_new_turns:
            return math.inf
        return self.opened_at + bounds.max_age

    def _signals_end(self) -> bool:
        newest = max(self.turns.values(), key=_place, default=None)
        return newest is not None and newest.invocation.session_end is not None


def conversation_of(invocation: Invocation) -> str | None:
    """The conversation id in a form that can be stored, so that it is the same after a restart."""
    name = invocation.conversation_id
    return None if name is None else name.encode("utf-8", "replace").decode().replace("\0", "")


def session_id(turn: KeptTurn) -> str:
    """The id of the session that begins with this turn, in the form of a trace id. A turn that late
    spans have moved to another conversation and back can begin a second one.
    """
    invocation = turn.invocation
    moved = (str(turn.revision),) if turn.revision else ()
    parts = (invocation.tenant, invocation.conversation_id or "", *turn.key[1:], *moved)
    text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=16, person=b"session").hexdigest()


def result_key(session: SessionKey) -> EvaluationKey:
    """The identity of the result of a session."""
    tenant, name = session
    return tenant, name, name[:16]


def _place(turn: KeptTurn) -> tuple[int, str, str]:
    invocation = turn.invocation
    return invocation.start_ns or 0, invocation.span_id, invocation.trace_id
