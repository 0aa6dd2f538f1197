"""Vertex AI's trajectory metrics.

Calls are compared by name and arguments. `pathgauge.scorers.trajectories.adk` lists the cases
without a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_choice, check_tool
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import calls_of
from pathgauge.scorers.matching.comparison import ANY_ORDER, IN_ORDER, RULES, Comparison, Members
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.measures import Measure, complete, exact, precision, recall
from pathgauge.scorers.trajectories.adk import Reading, TrajectoryScorer, aligned
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score

Duplicates = Literal["membership", "multiset"]
"""Whether repeated calls all count if the other side has the call once (`membership`), or each only
as often as the other side has it (`multiset`).
"""

_RULES = RULES["name_and_args"]


@dataclass(frozen=True)
class TrajectoryExactMatch(TrajectoryScorer):
    """1 if the calls are the expected ones in the same order, else 0."""

    name: ClassVar[str] = "trajectory_exact_match"
    binary: ClassVar[bool] = True

    def read(self, comparison: Comparison) -> Reading:
        """All calls match, in order."""
        return aligned(comparison, _RULES, IN_ORDER, exact)


@dataclass(frozen=True)
class TrajectoryInOrderMatch(TrajectoryScorer):
    """1 if all expected calls were made in their order, with any others between them, else 0."""

    name: ClassVar[str] = "trajectory_in_order_match"
    binary: ClassVar[bool] = True

    def read(self, comparison: Comparison) -> Reading:
        """All expected calls match, in order."""
        return aligned(comparison, _RULES, IN_ORDER, complete)


@dataclass(frozen=True)
class TrajectoryAnyOrderMatch(TrajectoryScorer):
    """1 if all expected calls were made, in any order and with any others, else 0."""

    name: ClassVar[str] = "trajectory_any_order_match"
    binary: ClassVar[bool] = True

    def read(self, comparison: Comparison) -> Reading:
        """All expected calls match, in any order."""
        return aligned(comparison, _RULES, ANY_ORDER, complete)


@dataclass(frozen=True)
class TrajectoryPrecision(TrajectoryScorer):
    """The share of the actual calls that the reference also has, in any order."""

    name: ClassVar[str] = "trajectory_precision"

    duplicates: Duplicates = "membership"
    """How to count repetitions of a call that the reference has once. `membership`: each counts.
    `multiset`: one counts.
    """

    def __post_init__(self) -> None:
        check_choice("duplicates", self.duplicates, get_args(Duplicates))

    def read(self, comparison: Comparison) -> Reading:
        """Matched calls divided by actual calls."""
        if self.duplicates == "multiset":
            return aligned(comparison, _RULES, ANY_ORDER, precision)
        explanation = "{0} of {1} calls are in the reference"
        return _members_reading(comparison, attrgetter("actual"), precision, explanation)


@dataclass(frozen=True)
class TrajectoryRecall(TrajectoryScorer):
    """The share of the expected calls that were made, in any order."""

    name: ClassVar[str] = "trajectory_recall"

    duplicates: Duplicates = "membership"
    """How a call that was made once counts if the reference repeats it. `membership`: all of these
    expected calls were made. `multiset`: one of them was made.
    """

    def __post_init__(self) -> None:
        check_choice("duplicates", self.duplicates, get_args(Duplicates))

    def read(self, comparison: Comparison) -> Reading:
        """Matched calls divided by expected calls."""
        if self.duplicates == "multiset":
            return aligned(comparison, _RULES, ANY_ORDER, recall)
        explanation = "{0} of {2} expected calls were made"
        return _members_reading(comparison, attrgetter("found"), recall, explanation)


@dataclass(frozen=True)
class TrajectorySingleToolUse(Share):
    """1 if the tool was called at least once, else 0."""

    name: ClassVar[str] = "trajectory_single_tool_use"
    binary: ClassVar[bool] = True

    tool_name: str
    """The tool to look for."""

    def __post_init__(self) -> None:
        check_tool("tool_name", self.tool_name)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if unknown := tools_unknown(actual):
            return unknown
        tool = tool_name(self.tool_name)
        calls = len(calls_of(actual, tool))
        times = {0: "was not called", 1: "was called"}.get(calls, f"was called {calls} times")
        return Score(float(calls > 0), None, f"{tool} {times}", {"calls": calls})


def _members_reading(
    comparison: Comparison, side: Callable[[Members], int], measure: Measure, explanation: str
) -> Reading:
    """A measure of the calls of one side that appear on the other, no matter how often.
    `explanation` formats the matched, actual and expected counts.
    """
    alignment = comparison.align(_RULES, ANY_ORDER)
    actual = alignment.counts.actual
    counts, best_case = (
        (side(members), actual, members.expected) for members in comparison.members(_RULES)
    )
    return Reading(
        comparison,
        _RULES,
        alignment,
        measure(*counts),
        measure(*best_case),
        explanation.format(*counts),
    )
