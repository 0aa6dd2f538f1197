"""Scores how closely an agent follows the expected steps.

Optional calls that were not made are not steps. Calls that may come in any order are sorted into
the order in which the agent made them. `pathgauge.scorers.trajectories.adk` lists the cases without
a value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.matching.alignment import Alignment, positions
from pathgauge.scorers.matching.comparison import (
    ANY_ORDER,
    IN_ORDER,
    RULES,
    Comparison,
    MatchMode,
    align,
)
from pathgauge.scorers.matching.distances import edit_distance
from pathgauge.scorers.matching.measures import ratio
from pathgauge.scorers.matching.wording import counted, one_line
from pathgauge.scorers.trajectories.adk import Reading, TrajectoryScorer
from pathgauge.scorers.trajectories.detailed import DetailedScorer
from pathgauge.scorers.types import Json

Similarity = Literal["levenshtein", "osa", "lcs"]


@dataclass(frozen=True)
class StepEfficiency(TrajectoryScorer):
    """Expected calls divided by actual calls, at most 1; less if the agent took needless steps."""

    name: ClassVar[str] = "step_efficiency"

    def read(self, comparison: Comparison) -> Reading:
        """Which tools were called does not matter. Undefined if nothing was called."""
        alignment = comparison.align(RULES["name_only"], ANY_ORDER)
        _, actual, expected = alignment.counts
        value = min(1.0, expected / actual) if actual else None
        explanation = f"{counted(actual, 'call')} where {expected} were expected"
        return Reading(comparison, RULES["name_only"], alignment, value, value, explanation)


@dataclass(frozen=True)
class TrajectorySimilarity(TrajectoryScorer):
    """Similarity of the two sequences of tools: 1 if they are equal, less for each edit that turns
    one into the other.
    """

    name: ClassVar[str] = "trajectory_similarity"

    measure: Similarity = "levenshtein"
    """`levenshtein`: 1 - edits / length of the longer sequence. `osa`: the same, with a swap of
    neighbours as one edit. `lcs`: calls in common / length of the longer sequence.
    """

    def __post_init__(self) -> None:
        check_choice("measure", self.measure, get_args(Similarity))

    def read(self, comparison: Comparison) -> Reading:
        """Compare names; 1 if nothing was expected and nothing was called."""
        alignment = comparison.align(RULES["name_only"], IN_ORDER)
        matched, actual, expected = alignment.counts
        longer = max(actual, expected)
        if self.measure == "lcs":
            same = matched
            calls = counted(matched, "call")
            explanation = f"{calls} in common, in order, of {actual} made and {expected} expected"
        else:
            steps = [comparison.expected.names[j] for j in _steps(comparison, alignment)]
            edits = edit_distance(comparison.actual.names, steps, swaps=self.measure == "osa")
            same = longer - edits
            calls = counted(actual, "call")
            explanation = f"edit distance {edits} between {calls} and {expected} expected ones"
        value = ratio(same, longer, if_empty=1.0)
        return Reading(comparison, RULES["name_only"], alignment, value, value, explanation)


@dataclass(frozen=True)
class FirstDivergence(DetailedScorer):
    """The share of the expected steps that the agent took before its first unexpected step."""

    name: ClassVar[str] = "first_divergence"

    match_mode: MatchMode = "name_only"
    """What must be equal for a call to match: its name, or also its arguments."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))

    def read(self, comparison: Comparison) -> tuple[Reading, Mapping[str, Json]]:
        """The length of the common prefix. Without expected steps: 1 if nothing was called, else 0.

        The detail `divergence` is the first unexpected call, by index and name, or `None`.
        """
        rules = RULES[self.match_mode]
        alignment = comparison.align(rules, IN_ORDER)
        steps = _steps(comparison, alignment)
        certain, possible = self._common_prefix(comparison, alignment, steps)
        if steps:
            value, best_case = certain / len(steps), possible / len(steps)
        else:
            value = best_case = float(not comparison.actual.calls)
        if not _fixed(comparison) and self._uncertain(comparison):
            # Other arguments might lead to other steps, with a higher or a lower value.
            best_case = 1.0 if value < 1 else math.inf
        explanation = _explanation(comparison, steps, certain)
        reading = Reading(comparison, rules, alignment, value, best_case, explanation)
        return reading, {"divergence": _divergence(comparison, steps, certain)}

    def _common_prefix(
        self, comparison: Comparison, alignment: Alignment, steps: Sequence[int]
    ) -> tuple[int, int]:
        """How many calls at the start are certainly the expected ones, and how many may be."""
        pairs = set(alignment.pairs)
        length, certain = 0, None
        for at, step in zip(range(len(comparison.actual.calls)), steps, strict=False):
            same = (at, step) in pairs or self._same(comparison, at, step)
            if same is False:
                break
            if same is None and certain is None:
                certain = length
            length += 1
        return length if certain is None else certain, length

    def _uncertain(self, comparison: Comparison) -> bool:
        """Whether arguments that are compared were not recorded."""
        actual, expected = comparison.actual, comparison.expected
        selective = expected.requirements(RULES[self.match_mode]).selective
        unknown = (
            name
            for name, call in zip(actual.names, actual.calls, strict=True)
            if call.arguments is None
        )
        return any(expected.named.get(name, 0) & selective for name in unknown)

    def _same(self, comparison: Comparison, call: int, step: int) -> bool | None:
        """Whether a call is the expected one; `None` if that depends on arguments that were not
        recorded.
        """
        if comparison.actual.names[call] != comparison.expected.names[step]:
            return False
        alone = align(
            [comparison.actual.calls[call]], [comparison.expected.calls[step]], self.match_mode
        )
        if not alone.pairs and alone.best_case.matched:
            return None
        return bool(alone.pairs)


def _steps(comparison: Comparison, alignment: Alignment) -> list[int]:
    """The expected calls, without optional ones that were not made. Calls that may come in any
    order are in the order of the actual calls, missing ones last.
    """
    expected = comparison.expected
    if _fixed(comparison):
        return list(range(len(expected.calls)))
    made, missing = {j: i for i, j in alignment.pairs}, set(alignment.missing)
    steps: list[int] = []
    for block in expected.blocks:
        inside = [j for j in positions(block) if j in made or j in missing]
        steps += sorted(inside, key=lambda j: made.get(j, math.inf))
    return steps


def _fixed(comparison: Comparison) -> bool:
    """Whether the steps do not depend on the actual calls."""
    expected = comparison.expected
    return not expected.optional and len(expected.blocks) == len(expected.calls)


def _tools_at(
    comparison: Comparison, steps: Sequence[int], at: int
) -> tuple[str | None, str | None]:
    """The actual and the expected tool at a position; `None` beyond the end."""
    actual, expected = comparison.actual.names, [comparison.expected.names[j] for j in steps]
    return next(iter(actual[at:]), None), next(iter(expected[at:]), None)


def _divergence(comparison: Comparison, steps: Sequence[int], at: int) -> Json:
    actual, expected = _tools_at(comparison, steps, at)
    if actual is None and expected is None:
        return None
    divergence: dict[str, Json] = {"actual": None, "expected": None}
    if actual is not None:
        divergence["actual"] = [at, actual]
    if expected is not None:
        divergence["expected"] = [steps[at], expected]
    return divergence


def _explanation(comparison: Comparison, steps: Sequence[int], agreeing: int) -> str:
    actual, expected = _tools_at(comparison, steps, agreeing)
    explanation = "no steps expected"
    if steps:
        explanation = f"the first {agreeing} of {len(steps)} steps agree"
    if actual is None and expected is None:
        return explanation
    if expected is None:
        return one_line(f"{explanation}; then {actual}")
    if actual == expected:
        return one_line(f"{explanation}; then {actual} with other arguments")
    return one_line(f"{explanation}; then {actual or 'nothing'} instead of {expected}")
