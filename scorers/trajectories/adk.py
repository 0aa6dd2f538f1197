"""The basis of all trajectory scorers, and the metrics of ADK.

Trajectory scorers compare the tool calls of an invocation with those of its reference turn. All use
the same alignment (see `pathgauge.scorers.matching.comparison`) and differ in the measure. They
have no value in the same cases:

- `no_reference`: there is no reference turn, or it does not mention tool calls,
- `tools_not_recorded`: a flag says that calls may be missing from the telemetry,
- `args_not_recorded`: the value depends on arguments that were not recorded,
- `too_long`: too many calls, or arguments nested too deep, to compare while traffic waits,
- `undefined`: the value is 0/0 (recall if the reference expects no calls).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_choice
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
"""Whether calls that one model message requested must come in the order of the reference, or in any
order.
"""


class MatchType(StrEnum):
    """ADK's match types. ADK's numbers 0, 1, 2 and spellings such as `in-order` and `any order` are
    accepted.
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
    """The result of a scorer for one reference trajectory."""

    comparison: Comparison
    rules: Rules
    alignment: Alignment
    value: float | None
    best_case: float | None
    """The value if all arguments that were not recorded had been the expected ones."""
    explanation: str | None = None
    """Replaces the default explanation, which lists matched, missing and unexpected calls."""


class TrajectoryScorer(Share, ABC):
    """Scores tool calls against reference calls. Subclasses define the measure in `read`."""

    needs_reference: ClassVar[bool] = True

    @abstractmethod
    def read(self, comparison: Comparison) -> Reading:
        """Measure one comparison. Raises `TooLongError` or `RecursionError` if it is too large."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        if expected is None or expected.tool_calls is None:
            return Score.not_evaluated("no_reference", "no reference for the tool calls")
        if unknown := tools_unknown(actual):
            return unknown
        try:
            return self._score(actual, (expected.tool_calls, *expected.alternatives))
        except TooLongError as error:
            return Score.not_evaluated("too_long", str(error))
        except RecursionError:
            return Score.not_evaluated("too_long", "arguments nested too deep")

    def _score(self, actual: Invocation, trajectories: Sequence[tuple[ExpectedCall, ...]]) -> Score:
        """The score against the best of several alternative trajectories."""
        readings = [
            self.read(compare(actual.tool_calls, trajectory)) for trajectory in trajectories
        ]
        index = max(range(len(readings)), key=lambda i: _agreement(readings[i]))
        best = readings[index]
        explanation, details = evidence(best.comparison, best.rules, best.alignment)
        explanation = best.explanation or explanation
        if len(readings) > 1:
            details["alternative"] = index
            which = f"alternative {index} agrees best" if index else "no alternative agrees better"
            explanation += f"; {which}"
        if any(_comparable(reading.best_case) > _comparable(best.value) for reading in readings):
            return Score.not_evaluated(
                "args_not_recorded",
                f"arguments not recorded; without them {explanation}",
                **details,
            )
        if best.value is None:
            return Score.not_evaluated("undefined", explanation, **details)
        return Score(best.value, None, explanation, details)


def _comparable(value: float | None) -> float:
    return -1.0 if value is None else value


def _agreement(reading: Reading) -> tuple[float, float]:
    """The value first. Among equal values, the trajectory that more calls agree with gives the
    better explanation.
    """
    return _comparable(reading.value), f1(*reading.alignment.counts)


def aligned(comparison: Comparison, rules: Rules, order: Order, measure: Measure) -> Reading:
    """A measure of the calls that are paired one to one."""
    alignment = comparison.align(rules, order)
    counts, best_case = alignment.counts, alignment.best_case
    # One required pair may displace several optional ones. With fewer pairs in the best case, the
    # value for other arguments may be lower than both values, so no value is certain.
    best = measure(*best_case) if best_case.matched >= counts.matched else math.inf
    return Reading(comparison, rules, alignment, measure(*counts), best)


@dataclass(frozen=True)
class ToolTrajectoryAvgScore(TrajectoryScorer):
    """1 if the calls are the expected ones, else 0. ADK's metric: its mean over invocations is the
    average score.
    """

    name: ClassVar[str] = "tool_trajectory_avg_score"
    binary: ClassVar[bool] = True

    match_type: MatchType = MatchType.EXACT
    """EXACT: the same calls in the same order. IN_ORDER: others are allowed between them.
    ANY_ORDER: others are allowed, in any order.
    """
    ignore_args: bool = False
    """Compare only names."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "match_type", MatchType(self.match_type))

    def read(self, comparison: Comparison) -> Reading:
        """Compare by the match type."""
        rules = RULES["name_only" if self.ignore_args else "name_and_args"]
        match self.match_type:
            case MatchType.EXACT:
                return aligned(comparison, rules, IN_ORDER, exact)
            case MatchType.IN_ORDER:
                return aligned(comparison, rules, IN_ORDER, complete)
            case MatchType.ANY_ORDER:
                return aligned(comparison, rules, ANY_ORDER, complete)


@dataclass(frozen=True)
class ToolTrajectoryF1(TrajectoryScorer):
    """Partial credit: the F1 of the matched calls, 2 x matched / (actual + expected)."""

    name: ClassVar[str] = "tool_trajectory_f1"

    match_mode: MatchMode = "name_only"
    """What must be equal for a call to match: its name, or also its arguments. The required
    arguments are those of the reference.
    """
    ordered: bool = True
    """Whether the order of calls counts."""
    parallel_calls: ParallelCalls = "in_order"
    """Whether the order also counts for calls that one model message requested."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))
        check_choice("parallel_calls", self.parallel_calls, get_args(ParallelCalls))

    def read(self, comparison: Comparison) -> Reading:
        """F1 in the match mode."""
        order = Order(self.ordered, self.parallel_calls == "in_order")
        return aligned(comparison, RULES[self.match_mode], order, f1)
