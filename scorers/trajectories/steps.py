"""How far an agent keeps to the expected steps: the tool calls of an invocation and of its
reference turn come in, a share goes out.

Optional calls that were not made are no steps. Calls of the reference that may come in any order
are put in the order in which the agent made them. See `pathgauge.scorers.trajectories.adk` for when
there is no value.
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
from pathgauge.scorers.trajectories.adk import Reading, TrajectoryScorer
from pathgauge.scorers.trajectories.detailed import DetailedScorer
from pathgauge.scorers.types import Json

Similarity = Literal["levenshtein", "osa", "lcs"]


@dataclass(frozen=True)
class StepEfficiency(TrajectoryScorer):
    """Expected calls for each call made, at most 1: whether the agent took more steps than needed."""

    name: ClassVar[str] = "step_efficiency"

    def read(self, comparison: Comparison) -> Reading:
        """The tools do not matter; 0/0 when nothing was called."""
        alignment = comparison.align(RULES["name_only"], ANY_ORDER)
        _, actual, expected = alignment.counts
        value = min(1.0, expected / actual) if actual else None
        line = f"{_calls(actual)} where {expected} were expected"
        return Reading(comparison, RULES["name_only"], alignment, value, value, line)


@dataclass(frozen=True)
class TrajectorySimilarity(TrajectoryScorer):
    """How alike the sequences of tools are: 1 when they are the same, less for each edit that turns
    one into the other.
    """

    name: ClassVar[str] = "trajectory_similarity"

    measure: Similarity = "levenshtein"
    """`levenshtein`: 1 - edits / calls of the longer one. `osa`: a swap of neighbours is one edit.
    `lcs`: calls in common / calls.
    """

    def __post_init__(self) -> None:
        check_choice("measure", self.measure, get_args(Similarity))

    def read(self, comparison: Comparison) -> Reading:
        """By names; 1 when nothing was expected and nothing was called."""
        alignment = comparison.align(RULES["name_only"], IN_ORDER)
        matched, actual, expected = alignment.counts
        longer = max(actual, expected)
        if self.measure == "lcs":
            same, line = (
                matched,
                f"{_calls(matched)} in common, in order, of {actual} made and {expected} expected",
            )
        else:
            steps = [comparison.expected.names[j] for j in _steps(comparison, alignment)]
            edits = edit_distance(comparison.actual.names, steps, swaps=self.measure == "osa")
            same, line = (
                longer - edits,
                f"edit distance {edits} between {_calls(actual)} and {expected} expected ones",
            )
        value = same / longer if longer else 1.0
        return Reading(comparison, RULES["name_only"], alignment, value, value, line)


@dataclass(frozen=True)
class FirstDivergence(DetailedScorer):
    """How far the agent got before its first step that was not the expected one, as a share of the
    expected steps.
    """

    name: ClassVar[str] = "first_divergence"

    match_mode: MatchMode = "name_only"
    """What makes a call the expected one."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))

    def look(self, comparison: Comparison) -> tuple[Reading, Mapping[str, Json]]:
        """The common beginning; when nothing was expected, 1 if nothing was called, else 0.

        `divergence`: the first call that is not the expected one, by index and name; `None` when
        all are.
        """
        alignment = comparison.align(RULES[self.match_mode], IN_ORDER)
        steps = _steps(comparison, alignment)
        certain, possible = self._agreeing(comparison, alignment, steps)
        value, hoped = (
            length / len(steps) if steps else float(not comparison.actual.calls)
            for length in (certain, possible)
        )
        if not _fixed(comparison) and self._uncertain(comparison):
            hoped = (
                1.0 if value < 1 else math.inf
            )  # other arguments might make other steps, which agree more, or less
        reading = Reading(
            comparison,
            RULES[self.match_mode],
            alignment,
            value,
            hoped,
            _line(comparison, steps, certain),
        )
        return reading, {"divergence": _divergence(comparison, steps, certain)}

    def _agreeing(
        self, comparison: Comparison, alignment: Alignment, steps: Sequence[int]
    ) -> tuple[int, int]:
        """How many first calls are the expected ones for certain, and how many may be."""
        pairs = set(alignment.pairs)
        length, certain = 0, None
        for place, step in zip(range(len(comparison.actual.calls)), steps, strict=False):
            same = True if (place, step) in pairs else self._same(comparison, place, step)
            if same is False:
                break
            if same is None and certain is None:
                certain = length
            length += 1
        return length if certain is None else certain, length

    def _uncertain(self, comparison: Comparison) -> bool:
        """Whether arguments that are looked at were not recorded."""
        actual, expected = comparison.actual, comparison.expected
        selective = expected.asked(RULES[self.match_mode]).selective
        unknown = (
            name
            for name, call in zip(actual.names, actual.calls, strict=True)
            if call.arguments is None
        )
        return any(expected.named.get(name, 0) & selective for name in unknown)

    def _same(self, comparison: Comparison, call: int, step: int) -> bool | None:
        """Whether a call is the expected one; `None` when that depends on arguments that were not
        recorded.
        """
        if comparison.actual.names[call] != comparison.expected.names[step]:
            return False
        alone = align(
            [comparison.actual.calls[call]], [comparison.expected.calls[step]], self.match_mode
        )
        return True if alone.pairs else None if alone.hoped.matched else False


def _steps(comparison: Comparison, alignment: Alignment) -> list[int]:
    """The expected calls without optional ones that were not made; those that may come in any order
    as they came, missing ones last.
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
    """Whether the steps are the same whatever the agent does."""
    expected = comparison.expected
    return not expected.optional and len(expected.blocks) == len(expected.calls)


def _at(comparison: Comparison, steps: Sequence[int], place: int) -> tuple[str | None, str | None]:
    """The tools that were called and expected there."""
    made = comparison.actual.names
    found = made[place] if place < len(made) else None
    return found, comparison.expected.names[steps[place]] if place < len(steps) else None


def _divergence(comparison: Comparison, steps: Sequence[int], place: int) -> Json:
    found, asked = _at(comparison, steps, place)
    if found is None and asked is None:
        return None
    return {
        "actual": None if found is None else [place, found],
        "expected": None if asked is None else [steps[place], asked],
    }


def _line(comparison: Comparison, steps: Sequence[int], agreeing: int) -> str:
    found, asked = _at(comparison, steps, agreeing)
    line = f"the first {agreeing} of {len(steps)} steps agree" if steps else "no steps expected"
    if asked is None:
        return line if found is None else " ".join(f"{line}; then {found}".split())
    then = (
        f"{found} with other arguments"
        if found == asked
        else f"{found or 'nothing'} instead of {asked}"
    )
    return " ".join(f"{line}; then {then}".split())


def _calls(number: int) -> str:
    return f"{number} call" if number == 1 else f"{number} calls"
