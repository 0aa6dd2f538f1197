"""Signals that an agent gives by calling a tool: an invocation comes in, whether it gave the
signal, and was to give it, goes out.

A call that was seen is certain; that there was none is known only when the telemetry holds all
calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import check_tool, tools_unknown
from pathgauge.scorers.authoring.ranges import Rate, Share
from pathgauge.scorers.matching.calls import calls_of
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score

ESCALATION_TOOL = "escalate_to_human"


@dataclass(frozen=True)
class SignalTaskComplete(Share):
    """1 when the agent said through a tool that its task is complete, else 0."""

    name: ClassVar[str] = "signal_task_complete"

    tool_name: str = "signal_task_complete"
    """The tool that it has to call."""

    def __post_init__(self) -> None:
        check_tool("tool_name", self.tool_name)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        calls = calls_of(actual, self.tool_name)
        if not calls and (unknown := tools_unknown(actual)):
            return unknown
        return Score(float(bool(calls)), None, _told(self.tool_name, calls), {"calls": calls})


@dataclass(frozen=True)
class Escalation(Share):
    """1 when the agent handed the turn to a human exactly if it should have, else 0."""

    name: ClassVar[str] = "escalation"

    escalation_tool: str = ESCALATION_TOOL
    """The tool by which a turn is handed to a human."""
    expected: bool | None = None
    """Whether turns of which the reference says nothing must, or must not, be escalated; `null`
    does not judge them.
    """

    def __post_init__(self) -> None:
        check_tool("escalation_tool", self.escalation_tool)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn, else against the option."""
        wanted = (
            self.expected if expected is None or expected.escalate is None else expected.escalate
        )
        if wanted is None:
            return Score.not_evaluated(
                "no_reference", "nothing says whether the turn should be escalated"
            )
        calls = calls_of(actual, self.escalation_tool)
        if not calls and (unknown := tools_unknown(actual)):
            return unknown
        line = f"{_told(self.escalation_tool, calls)}, expected {'a call' if wanted else 'none'}"
        return Score(float(bool(calls) == wanted), None, line, {"calls": calls, "expected": wanted})


@dataclass(frozen=True)
class EscalationRate(Rate):
    """1 when the agent handed the turn to a human, else 0: the mean is the share of turns that end
    so.
    """

    name: ClassVar[str] = "escalation_rate"

    escalation_tool: str = ESCALATION_TOOL
    """The tool by which a turn is handed to a human."""

    def __post_init__(self) -> None:
        check_tool("escalation_tool", self.escalation_tool)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        calls = calls_of(actual, self.escalation_tool)
        if not calls and (unknown := tools_unknown(actual)):
            return unknown
        return Score(float(bool(calls)), None, _told(self.escalation_tool, calls), {"calls": calls})


def _told(tool: str, calls: list[int]) -> str:
    times = {0: "was not called", 1: "was called"}.get(len(calls), f"was called {len(calls)} times")
    return f"{listed([tool])} {times}"
