"""Scores how many turns a session took. Lower is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Amount
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.sessions.whole_session import WholeSession
from pathgauge.scorers.types import Reference, Score


@dataclass(frozen=True)
class SessionTurns(WholeSession, Amount):
    """The number of turns of a session."""

    name: ClassVar[str] = "session_turns"

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Count the turns. The reference is not used, except in the explanation."""
        found = counted(len(turns), "turn")
        if reference is None or len(reference.turns) == 1:
            return Score(float(len(turns)), None, found)
        details = {"expected": len(reference.turns)}
        explanation = f"{found}, the reference has {len(reference.turns)}"
        return Score(float(len(turns)), None, explanation, details)
