"""Trajectory scorers: the tool calls of an invocation and of its reference turn come in, their agreement goes out.

All of them read one alignment (see `scorers.comparison`) and differ in the measure they take of it. They share when there
is no value:

- `no_reference`: there is no reference turn, or it says nothing about tool calls,
- `tools_not_recorded`: the telemetry says that calls may be missing from it,
- `args_not_recorded`: the value would change with the arguments that were not recorded,
- `too_long`: too many calls, or arguments nested too deep, to be compared while traffic waits,
- `undefined`: the value is 0/0 (recall, where the reference expects no calls).

This module has the metrics of ADK, `scorers.vertex` those of Vertex AI.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple, get_args

from scorers.alignment import Alignment, TooLongError, load_matching
from scorers.comparison import Comparison, MatchMode, compare
from scorers.evidence import details, explanation
from scorers.measures import Measure, complete, exact, f1
from scorers.types import ExpectedCall, Flag, Invocation, ReferenceTurn, Score

_INCOMPLETE: frozenset[Flag] = frozenset({"no_tool_spans", "dropped_spans"})


class MatchType(StrEnum):
    """ADK's ways to compare; ADK's numbers 0, 1, 2 and spellings such as `in-order` and `any order` are accepted."""

    EXACT = "EXACT"
    IN_ORDER = "IN_ORDER"
    ANY_ORDER = "ANY_ORDER"

    @classmethod
    def _missing_(cls, value: object) -> MatchType | None:
        if isinstance(value, str):
            return cls.__members__.get(value.strip().upper().replace("-", "_").replace(" ", "_"))
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(cls):
            return list(cls)[value]
        return None


class Reading(NamedTuple):
    """What a scorer makes of a comparison."""

    alignment: Alignment
    value: float | None
    hoped: float | None
    """The value if all arguments that were not recorded had been the expected ones."""
    explanation: str


class TrajectoryScorer(ABC):
    """A scorer of tool calls against reference calls; its subclasses say what they read from the comparison."""

    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = True

    @abstractmethod
    def read(self, comparison: Comparison) -> Reading:
        """Raises `TooLongError` or `RecursionError` when that takes too long."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        if expected is None or expected.tool_calls is None:
            return Score.not_evaluated("no_reference", "no reference for the tool calls")
        try:
            return tools_unknown(actual) or self._compared(actual, expected.tool_calls)
        except TooLongError as error:
            return Score.not_evaluated("too_long", str(error))
        except RecursionError:
            return Score.not_evaluated("too_long", "arguments nested too deep, or too long a chain of calls of one tool")

    def _compared(self, actual: Invocation, expected: tuple[ExpectedCall, ...]) -> Score:
        comparison = compare(actual.tool_calls, expected)
        reading = self.read(comparison)
        evidence = details(reading.alignment, comparison.actual_names, comparison.expected_names)
        if reading.value != reading.hoped:
            return Score(None, "args_not_recorded", f"arguments not recorded; without them {reading.explanation}", evidence)
        if reading.value is None:
            return Score(None, "undefined", reading.explanation, evidence)
        return Score(reading.value, None, reading.explanation, evidence)


def aligned(comparison: Comparison, mode: MatchMode, *, ordered: bool, measure: Measure) -> Reading:
    """A measure of the calls that pair off one to one."""
    alignment = comparison.align(mode, ordered=ordered)
    actual, expected = alignment.actual, alignment.expected
    line = explanation(alignment, comparison.actual_names, comparison.expected_names)
    return Reading(alignment, measure(alignment.matched, actual, expected), measure(alignment.at_most, actual, expected), line)


@dataclass(frozen=True)
class ToolTrajectoryAvgScore(TrajectoryScorer):
    """1 when the calls are the expected ones, else 0: ADK's metric, whose mean over invocations is the average score."""

    name: ClassVar[str] = "tool_trajectory_avg_score"

    match_type: MatchType = MatchType.EXACT
    """EXACT: the same calls in the same order. IN_ORDER: with others between them. ANY_ORDER: with others, in any order."""
    ignore_args: bool = False
    """Compare names alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "match_type", MatchType(self.match_type))

    def read(self, comparison: Comparison) -> Reading:
        """As the match type says."""
        mode: MatchMode = "name_only" if self.ignore_args else "name_and_args"
        measure = exact if self.match_type is MatchType.EXACT else complete
        return aligned(comparison, mode, ordered=self.match_type is not MatchType.ANY_ORDER, measure=measure)


@dataclass(frozen=True)
class ToolTrajectoryF1(TrajectoryScorer):
    """Partial credit: the F1 of the matched calls, 2 x matched / (actual + expected)."""

    name: ClassVar[str] = "tool_trajectory_f1"

    match_mode: MatchMode = "name_only"
    """What makes a call the expected one; the required arguments are those that the reference gives."""
    ordered: bool = True
    """Whether the order of calls counts."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))
        if not self.ordered and self.match_mode == "name_and_required_args":
            load_matching()

    def read(self, comparison: Comparison) -> Reading:
        """F1 in the match mode."""
        return aligned(comparison, self.match_mode, ordered=self.ordered, measure=f1)


def tools_unknown(actual: Invocation) -> Score | None:
    """The score of an invocation whose telemetry may lack tool calls; `None` when it has them all."""
    lacking = sorted(_INCOMPLETE & actual.flags)
    if not lacking:
        return None
    return Score.not_evaluated("tools_not_recorded", f"tool calls may be missing from the telemetry: {', '.join(lacking)}")


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise `ValueError` for an option whose value is none of the choices."""
    if value not in choices:
        raise ValueError(f"{option}: found {value!r}, expected one of {', '.join(choices)}")
