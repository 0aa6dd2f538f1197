"""Trajectory scorers: the tool calls of an invocation and of its reference turn come in, their
agreement goes out.

All of them read one alignment (see `pathgauge.scorers.matching.comparison`) and differ in the
measure they take of it. They share when there is no value:

- `no_reference`: there is no reference turn, or it says nothing about tool calls,
- `tools_not_recorded`: the telemetry says that calls may be missing from it,
- `args_not_recorded`: the value would change with the arguments that were not recorded,
- `too_long`: too many calls, or arguments nested too deep, to be compared while traffic waits,
- `undefined`: the value is 0/0 (recall, where the reference expects no calls).

This module has the metrics of ADK, `pathgauge.scorers.trajectories.vertex` those of Vertex AI.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.options import check_choice, tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import Alignment, TooLongError
from pathgauge.scorers.matching.argument_rules import Rules
from pathgauge.scorers.matching.comparison import (
    ANY_ORDER,
    IN_ORDER,
    RULES,
    Comparison,
    MatchMode,
    Order,
    compare,
)
from pathgauge.scorers.matching.explanations import evidence
from pathgauge.scorers.matching.measures import Measure, complete, exact, f1
from pathgauge.scorers.types import ExpectedCall, Invocation, ReferenceTurn, Score

ParallelCalls = Literal["in_order", "any_order"]
"""Whether calls that one model message asked for must come in the order of the reference, or in
any.
"""


class MatchType(StrEnum):
    """ADK's ways to compare; ADK's numbers 0, 1, 2 and spellings such as `in-order` and `any order`
    are accepted.
    """

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

    comparison: Comparison
    rules: Rules
    alignment: Alignment
    value: float | None
    hoped: float | None
    """The value if all arguments that were not recorded had been the expected ones."""
    explanation: str | None = None
    """If there is more to say than what was matched."""


class TrajectoryScorer(Share, ABC):
    """A scorer of tool calls against reference calls; its subclasses say what they read from the
    comparison.
    """

    needs_reference: ClassVar[bool] = True

    @abstractmethod
    def read(self, comparison: Comparison) -> Reading:
        """Raises `TooLongError` or `RecursionError` when that takes too long."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        if expected is None or expected.tool_calls is None:
            return Score.not_evaluated("no_reference", "no reference for the tool calls")
        try:
            return tools_unknown(actual) or self._compared(
                actual, (expected.tool_calls, *expected.alternatives)
            )
        except TooLongError as error:
            return Score.not_evaluated("too_long", str(error))
        except RecursionError:
            return Score.not_evaluated("too_long", "arguments nested too deep")

    def _compared(
        self, actual: Invocation, trajectories: Sequence[tuple[ExpectedCall, ...]]
    ) -> Score:
        readings = [
            self.read(compare(actual.tool_calls, trajectory)) for trajectory in trajectories
        ]
        best = max(readings, key=_agreement) if len(readings) > 1 else readings[0]
        line, details = evidence(best.comparison, best.rules, best.alignment)
        line = best.explanation or line
        if len(readings) > 1:
            index = next(index for index, reading in enumerate(readings) if reading is best)
            line += (
                f"; alternative {index} agrees best" if index else "; no alternative agrees better"
            )
            details["alternative"] = index
        if any(_worth(reading.hoped) > _worth(best.value) for reading in readings):
            return Score(
                None, "args_not_recorded", f"arguments not recorded; without them {line}", details
            )
        return Score(best.value, "undefined" if best.value is None else None, line, details)


def _worth(value: float | None) -> float:
    return -1.0 if value is None else value


def _agreement(reading: Reading) -> tuple[float, float]:
    """By the value first; among trajectories of the same value, the one that more calls agree with
    explains it best.
    """
    return _worth(reading.value), f1(*reading.alignment.counts)


def aligned(comparison: Comparison, rules: Rules, order: Order, measure: Measure) -> Reading:
    """A measure of the calls that pair off one to one."""
    alignment = comparison.align(rules, order)
    counts, hoped = alignment.counts, alignment.hoped
    # A required pair may cost several optional ones, so with fewer pairs a value in between may be
    # lower than both.
    best = measure(*hoped) if hoped.matched >= counts.matched else math.inf
    return Reading(comparison, rules, alignment, measure(*counts), best)


@dataclass(frozen=True)
class ToolTrajectoryAvgScore(TrajectoryScorer):
    """1 when the calls are the expected ones, else 0: ADK's metric, whose mean over invocations is
    the average score.
    """

    name: ClassVar[str] = "tool_trajectory_avg_score"

    match_type: MatchType = MatchType.EXACT
    """EXACT: the same calls in the same order. IN_ORDER: with others between them. ANY_ORDER: with
    others, in any order.
    """
    ignore_args: bool = False
    """Compare names alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "match_type", MatchType(self.match_type))

    def read(self, comparison: Comparison) -> Reading:
        """As the match type says."""
        rules = RULES["name_only" if self.ignore_args else "name_and_args"]
        order = ANY_ORDER if self.match_type is MatchType.ANY_ORDER else IN_ORDER
        return aligned(
            comparison, rules, order, exact if self.match_type is MatchType.EXACT else complete
        )


@dataclass(frozen=True)
class ToolTrajectoryF1(TrajectoryScorer):
    """Partial credit: the F1 of the matched calls, 2 x matched / (actual + expected)."""

    name: ClassVar[str] = "tool_trajectory_f1"

    match_mode: MatchMode = "name_only"
    """What makes a call the expected one; the required arguments are those that the reference
    gives.
    """
    ordered: bool = True
    """Whether the order of calls counts."""
    parallel_calls: ParallelCalls = "in_order"
    """Whether the order counts, too, of calls that one model message asked for."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))
        check_choice("parallel_calls", self.parallel_calls, get_args(ParallelCalls))

    def read(self, comparison: Comparison) -> Reading:
        """F1 in the match mode."""
        return aligned(
            comparison,
            RULES[self.match_mode],
            Order(self.ordered, self.parallel_calls == "in_order"),
            f1,
        )
