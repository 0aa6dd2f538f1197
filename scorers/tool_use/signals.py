"""Scores whether an agent gave a signal by calling a tool: task complete, or escalation.

A recorded call is certain. Its absence is known only if the telemetry has all tool calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_tool
from pathgauge.scorers.authoring.ranges import Rate, Share
from pathgauge.scorers.matching.calls import calls_of
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

ESCALATION_TOOL = "escalate_to_human"


@dataclass(frozen=True)
class SignalTaskComplete(Share):
    """1 if the agent signalled through a tool that its task is complete, else 0."""

    name: ClassVar[str] = "signal_task_complete"

    tool_name: str = "signal_task_complete"
    """The tool that gives the signal."""

    def __post_init__(self) -> None:
        check_tool("tool_name", self.tool_name)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        return _called(actual, self.tool_name)


@dataclass(frozen=True)
class Escalation(Share):
    """1 if the agent handed the turn to a human exactly when it should have, else 0."""

    name: ClassVar[str] = "escalation"
    binary: ClassVar[bool] = True

    escalation_tool: str = ESCALATION_TOOL
    """The tool that hands a turn to a human."""
    expected: bool | None = None
    """Whether a turn must be escalated when its reference does not say so. With `null`, such turns
    are not evaluated.
    """

    def __post_init__(self) -> None:
        check_tool("escalation_tool", self.escalation_tool)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Compare with the reference turn, or with the option if the turn does not say."""
        wanted = self.expected
        if expected is not None and expected.escalate is not None:
            wanted = expected.escalate
        if wanted is None:
            return Score.not_evaluated(
                "no_reference", "nothing says whether the turn should be escalated"
            )
        called = _called(actual, self.escalation_tool)
        if called.value is None:
            return called
        explanation = f"{called.explanation}, expected {'a call' if wanted else 'none'}"
        details: dict[str, Json] = {**called.details, "expected": wanted}
        return Score(float(bool(called.value) == wanted), None, explanation, details)


@dataclass(frozen=True)
class EscalationRate(Rate):
    """1 if the agent handed the turn to a human, else 0; the mean is the share of such turns."""

    name: ClassVar[str] = "escalation_rate"
    binary: ClassVar[bool] = True

    escalation_tool: str = ESCALATION_TOOL
    """The tool that hands a turn to a human."""

    def __post_init__(self) -> None:
        check_tool("escalation_tool", self.escalation_tool)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        return _called(actual, self.escalation_tool)


def _called(actual: Invocation, tool: str) -> Score:
    """1 if the tool was called, else 0."""
    calls = calls_of(actual, tool)
    if not calls and (unknown := tools_unknown(actual)):
        return unknown
    times = {0: "was not called", 1: "was called"}.get(len(calls), f"was called {len(calls)} times")
    return Score(float(bool(calls)), None, f"{listed([tool])} {times}", {"calls": calls})
