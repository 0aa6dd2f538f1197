"""Scores the tool calls of a whole session against those of a multi-turn reference.

Turn by turn, an agent that does in its third turn what the reference has in the second fails twice.
Over the session, only which calls were made, and in which order, counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, TypeVar

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.comparison import MatchMode
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.sessions.whole_session import WholeSession
from pathgauge.scorers.trajectories.adk import ParallelCalls, ToolTrajectoryF1
from pathgauge.scorers.types import (
    ExpectedCall,
    Flag,
    Invocation,
    Reference,
    ReferenceTurn,
    Score,
    ToolCall,
)

MAX_ALTERNATIVES = 64
"""Trajectories of a session that are compared, if its turns have alternatives."""

_Call = TypeVar("_Call", ExpectedCall, ToolCall)


@dataclass(frozen=True)
class SessionToolTrajectory(WholeSession, Share):
    """The F1 of the tool calls of all turns together, 2 x matched / (actual + expected)."""

    name: ClassVar[str] = "session_tool_trajectory"
    needs_reference: ClassVar[bool] = True

    match_mode: MatchMode = "name_only"
    """What must be equal for a call to match: its name, or also its arguments. The required
    arguments are those of the reference.
    """
    ordered: bool = True
    """Whether the order of calls counts."""
    parallel_calls: ParallelCalls = "in_order"
    """Whether the order also counts for calls that one model message requested."""

    def __post_init__(self) -> None:
        self._scorer()

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Join the calls of all turns on both sides, and compare them as those of one turn."""
        if reference is None:
            return Score.not_evaluated("no_reference", "no reference for the session")
        without = [number for number, turn in enumerate(reference.turns) if turn.tool_calls is None]
        if without:
            which = ", ".join(map(str, without[:5]))
            text = f"no reference for the tool calls of turn {which} (from 0)"
            return Score.not_evaluated("no_reference", text)
        count = math.prod(1 + len(turn.alternatives) for turn in reference.turns)
        if count > MAX_ALTERNATIVES:
            text = f"{count} combinations of alternatives; at most {MAX_ALTERNATIVES}"
            return Score.not_evaluated("too_long", text)
        actual = joined_invocation([turn.invocation for turn in turns])
        return self._scorer().score(actual, _joined_turn(reference.turns))

    def _scorer(self) -> ToolTrajectoryF1:
        return ToolTrajectoryF1(self.match_mode, self.ordered, self.parallel_calls)


def joined_invocation(invocations: Sequence[Invocation]) -> Invocation:
    """One invocation with the calls of all, and with every flag that one of them has."""
    flags = frozenset[Flag]().union(*(one.flags for one in invocations))
    calls = _joined([one.tool_calls for one in invocations])
    return replace(invocations[0], tool_calls=calls, flags=flags)


def _joined_turn(turns: Iterable[ReferenceTurn]) -> ReferenceTurn:
    choices = [(turn.tool_calls or (), *turn.alternatives) for turn in turns]
    first, *others = [_joined(chosen) for chosen in product(*choices)]
    return ReferenceTurn(tool_calls=first, alternatives=tuple(others))


def _joined(parts: Sequence[Sequence[_Call]]) -> tuple[_Call, ...]:
    """The calls in order. Groups of different turns stay different."""
    calls: list[_Call] = []
    offset = 0
    for part in parts:
        groups = [call.group for call in part if call.group is not None]
        calls += [
            call if call.group is None else replace(call, group=call.group + offset)
            for call in part
        ]
        offset += max(groups, default=-1) + 1
    return tuple(calls)
