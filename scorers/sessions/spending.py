"""Scores what a whole session took: tokens, and US dollars. Lower is better.

If a turn has no value, the session has none: a sum without it would look better than the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Amount
from pathgauge.scorers.cost.cost import Cost
from pathgauge.scorers.cost.usage import TotalTokens
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.sessions.whole_session import WholeSession, reference_of
from pathgauge.scorers.types import Invocation, Json, Reference, ReferenceTurn, Score


@dataclass(frozen=True)
class SessionTokens(WholeSession, Amount):
    """Input and output tokens of all turns."""

    name: ClassVar[str] = "session_tokens"

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Add up the tokens of the turns. The reference is not used."""
        tokens = TotalTokens()
        return _sum(turns, lambda actual: tokens.score(actual, None), "tokens")


@dataclass(frozen=True)
class SessionCost(Cost):
    """US dollars that the tokens of all turns cost."""

    name: ClassVar[str] = "session_cost"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """The score of a session with this turn alone."""
        return self.score_session((SessionTurn(actual),), reference_of(actual, expected))

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Add up the cost of the turns. The reference is not used."""
        return _sum(turns, lambda actual: Cost.score(self, actual, None), "USD")


def _sum(turns: Sequence[SessionTurn], score: Callable[[Invocation], Score], unit: str) -> Score:
    values: list[float] = []
    for number, turn in enumerate(turns):
        one = score(turn.invocation)
        if one.value is None:
            reason = one.reason or "incomplete"
            return Score.not_evaluated(reason, f"turn {number} (from 0): {one.explanation}")
        values.append(one.value)
    total = math.fsum(values)
    details: dict[str, Json] = {"turns": values}
    return Score(total, None, f"{total:.6g} {unit} in {counted(len(values), 'turn')}", details)
