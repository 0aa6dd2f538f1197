"""Scores whether a session was resolved, as the agent or its application has signalled.

The signal is the attribute `pathgauge.session.end`, which `docs/sessions.md` describes. Some agents
call a tool instead.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_texts, check_tool
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import calls_of
from pathgauge.scorers.matching.wording import short
from pathgauge.scorers.session_protocol import ENDED, SessionTurn
from pathgauge.scorers.sessions.whole_session import WholeSession
from pathgauge.scorers.types import Reference, Score


@dataclass(frozen=True)
class SessionResolved(WholeSession, Share):
    """1 if the last signal of how a session ended says that it was resolved, else 0; without such
    a signal, there is no value.
    """

    name: ClassVar[str] = "session_resolved"
    binary: ClassVar[bool] = True

    resolved: tuple[str, ...] = field(default=("resolved",))
    """The outcomes that mean it was resolved, regardless of case."""
    tool_name: str | None = None
    """A tool whose call in any turn also means that the session was resolved."""
    without_signal: float | None = None
    """The value of a session without a signal: 0, 1, or `null` for none."""

    def __post_init__(self) -> None:
        check_texts("resolved", self.resolved)
        if not self.resolved:
            raise ValueError("resolved: found an empty list, expected an outcome")
        if self.tool_name is not None:
            check_tool("tool_name", self.tool_name)
        if self.without_signal not in (None, 0, 1):
            raise ValueError(f"without_signal: found {self.without_signal}, expected 0, 1 or null")

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Look for the last signal. The reference is not used."""
        resolved = {one.casefold() for one in self.resolved}
        outcome = _last_outcome(turns, {ENDED} - resolved)
        if outcome is not None:
            is_resolved = outcome.casefold() in resolved
            explanation = f"the session ended with {short(outcome)}"
            return Score(float(is_resolved), None, explanation, {"outcome": outcome})
        if self.tool_name is not None:
            called = [
                number
                for number, turn in enumerate(turns)
                if calls_of(turn.invocation, self.tool_name)
            ]
            if called:
                explanation = f"{short(self.tool_name)} was called"
                return Score(1.0, None, explanation, {"turns": called})
            unknown = [tools_unknown(turn.invocation) for turn in turns]
            if missing := next((one for one in unknown if one is not None), None):
                return missing
        if self.without_signal is None:
            return Score.not_evaluated("not_applicable", "no turn signalled how the session ended")
        return Score(float(self.without_signal), None, "no turn signalled how the session ended")


def _last_outcome(turns: Sequence[SessionTurn], unnamed: Set[str]) -> str | None:
    """How the session ended, as the last signal says that says it."""
    signals = [turn.invocation.session_end for turn in turns if turn.invocation.session_end]
    return next((one for one in reversed(signals) if one not in unnamed), None)
