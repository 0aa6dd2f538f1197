"""Vertex AI's trajectory metrics: the tool calls of an invocation and of its reference turn come
in, their agreement goes out.

Calls are compared by name and arguments. See `pathgauge.scorers.trajectories.adk` for when there is
no value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.options import check_choice, check_tool, tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.comparison import ANY_ORDER, IN_ORDER, RULES, Comparison, Members
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.measures import Measure, complete, exact, precision, recall
from pathgauge.scorers.trajectories.adk import Reading, TrajectoryScorer, aligned
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score

Duplicates = Literal["membership", "multiset"]
"""Whether a call counts as soon as it appears on the other side, or only as often as it appears
there.
"""

_RULES = RULES["name_and_args"]


@dataclass(frozen=True)
class TrajectoryExactMatch(TrajectoryScorer):
    """1 when the calls are the expected ones in the same order, else 0."""

    name: ClassVar[str] = "trajectory_exact_match"

    def read(self, comparison: Comparison) -> Reading:
        """In order, and nothing else."""
        return aligned(comparison, _RULES, IN_ORDER, exact)


@dataclass(frozen=True)
class TrajectoryInOrderMatch(TrajectoryScorer):
    """1 when all expected calls were made in their order, whatever stands between them, else 0."""

    name: ClassVar[str] = "trajectory_in_order_match"

    def read(self, comparison: Comparison) -> Reading:
        """In order."""
        return aligned(comparison, _RULES, IN_ORDER, complete)


@dataclass(frozen=True)
class TrajectoryAnyOrderMatch(TrajectoryScorer):
    """1 when all expected calls were made, in any order and with any others, else 0."""

    name: ClassVar[str] = "trajectory_any_order_match"

    def read(self, comparison: Comparison) -> Reading:
        """In any order."""
        return aligned(comparison, _RULES, ANY_ORDER, complete)


@dataclass(frozen=True)
class TrajectoryPrecision(TrajectoryScorer):
    """The share of the calls that the reference has too, in any order."""

    name: ClassVar[str] = "trajectory_precision"

    duplicates: Duplicates = "membership"
    """`membership`: a call that the reference has once may be repeated. `multiset`: it counts once.
    """

    def __post_init__(self) -> None:
        check_choice("duplicates", self.duplicates, get_args(Duplicates))

    def read(self, comparison: Comparison) -> Reading:
        """Matched of actual calls."""
        if self.duplicates == "multiset":
            return aligned(comparison, _RULES, ANY_ORDER, precision)
        return _appearing(
            comparison, attrgetter("actual"), precision, "{0} of {1} calls are in the reference"
        )


@dataclass(frozen=True)
class TrajectoryRecall(TrajectoryScorer):
    """The share of the expected calls that were made, in any order."""

    name: ClassVar[str] = "trajectory_recall"

    duplicates: Duplicates = "membership"
    """`membership`: a call made once answers its duplicates in the reference too. `multiset`: it
    answers one.
    """

    def __post_init__(self) -> None:
        check_choice("duplicates", self.duplicates, get_args(Duplicates))

    def read(self, comparison: Comparison) -> Reading:
        """Matched of expected calls."""
        if self.duplicates == "multiset":
            return aligned(comparison, _RULES, ANY_ORDER, recall)
        return _appearing(
            comparison, attrgetter("found"), recall, "{0} of {2} expected calls were made"
        )


@dataclass(frozen=True)
class TrajectorySingleToolUse(Share):
    """1 when the tool was called at least once, else 0."""

    name: ClassVar[str] = "trajectory_single_tool_use"

    tool_name: str
    """The tool to look for."""

    def __post_init__(self) -> None:
        check_tool("tool_name", self.tool_name)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        wanted = tool_name(self.tool_name)
        calls = sum(tool_name(call.name) == wanted for call in actual.tool_calls)
        times = {0: "was not called", 1: "was called"}.get(calls, f"was called {calls} times")
        return tools_unknown(actual) or Score(
            float(calls > 0), None, f"{wanted} {times}", {"calls": calls}
        )


def _appearing(
    comparison: Comparison, side: Callable[[Members], int], measure: Measure, line: str
) -> Reading:
    """A measure of the calls of one side that appear on the other; one call may answer several."""
    alignment = comparison.align(_RULES, ANY_ORDER)
    actual = alignment.counts.actual
    counts, hoped = (
        (side(members), actual, members.expected) for members in comparison.members(_RULES)
    )
    return Reading(
        comparison, _RULES, alignment, measure(*counts), measure(*hoped), line.format(*counts)
    )
