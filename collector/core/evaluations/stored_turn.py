"""What of an open conversation survives a restart: its turns, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pathgauge.collector.core.evaluations.memory_size import memory_size
from pathgauge.collector.core.evaluations.turn import JudgedScore, Turn
from pathgauge.scorers.types import Invocation

UNKNOWN = -1
"""The number of a turn that was stored before numbers were."""


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn of an open conversation, with what is known of its newest evaluation."""

    invocation: Invocation
    at: float
    """When it was read, by the time of conversations."""
    number: int | None = UNKNOWN
    """Index of the turn of the reference that it was evaluated with; `None`: of none."""
    revision: int = 0
    closed_by: str = "root_ended"
    held: bool = False
    """Whether it waits for its first evaluation."""
    dropped_turns: int = 0
    """More than 0: this is not a turn that is kept, but the number of those that are not.
    `invocation` is the newest of them, and is restored with nothing but its ids.
    """
    judged: Mapping[str, JudgedScore] = field(default_factory=dict)
    """What judges said of it, by criterion. Other scorers run again at a restart."""


def stored_of(turn: Turn) -> StoredTurn:
    """What to store of a turn."""
    return StoredTurn(
        turn.invocation,
        turn.at,
        turn.number,
        turn.revision,
        turn.closed_by,
        turn.is_held,
        judged=turn.judged(),
    )


def restored(stored: StoredTurn) -> Turn:
    """A turn without scores, and without the time until which it is held."""
    invocation = stored.invocation
    size = memory_size(invocation)
    return Turn(invocation, size, stored.at, stored.closed_by, stored.number, stored.revision)
