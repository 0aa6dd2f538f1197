"""Scores how well an agent selects its tools.

The order of calls does not matter, and each call counts once: an agent that calls the expected tool
in a loop has made one correct choice and many wrong ones. `pathgauge.scorers.trajectories.adk`
lists the cases without a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import ClassVar, get_args

from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.matching.alignment import Alignment, Counts
from pathgauge.scorers.matching.comparison import ANY_ORDER, RULES, Comparison, MatchMode
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.measures import f1, precision, ratio, recall
from pathgauge.scorers.trajectories.adk import Reading, TrajectoryScorer, aligned
from pathgauge.scorers.trajectories.detailed import DetailedScorer
from pathgauge.scorers.types import Json


@dataclass(frozen=True)
class ToolPrecision(TrajectoryScorer):
    """The share of the actual calls that were expected. Each expected call counts once."""

    name: ClassVar[str] = "tool_precision"

    match_mode: MatchMode = "name_only"
    """What must be equal for a call to match: its name, or also its arguments."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))

    def read(self, comparison: Comparison) -> Reading:
        """Matched calls divided by actual calls."""
        return aligned(comparison, RULES[self.match_mode], ANY_ORDER, precision)


@dataclass(frozen=True)
class ToolRecall(TrajectoryScorer):
    """The share of the expected calls that were made. Each actual call counts once."""

    name: ClassVar[str] = "tool_recall"

    match_mode: MatchMode = "name_only"
    """What must be equal for a call to match: its name, or also its arguments."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))

    def read(self, comparison: Comparison) -> Reading:
        """Matched calls divided by expected calls."""
        return aligned(comparison, RULES[self.match_mode], ANY_ORDER, recall)


@dataclass(frozen=True)
class ToolSelectionAccuracy(TrajectoryScorer):
    """The share of correct tool choices: matched calls divided by actual or expected calls,
    whichever are more.
    """

    name: ClassVar[str] = "tool_selection_accuracy"

    def read(self, comparison: Comparison) -> Reading:
        """Compare names, in any order."""
        return aligned(comparison, RULES["name_only"], ANY_ORDER, _accuracy)


@dataclass(frozen=True)
class PerToolF1(DetailedScorer):
    """The mean of the F1 of each tool; a rarely called tool weighs as much as a frequent one."""

    name: ClassVar[str] = "per_tool_f1"

    def read(self, comparison: Comparison) -> tuple[Reading, Mapping[str, Json]]:
        """Compare names, in any order; 1 if nothing was expected and nothing was called. The detail
        `tools` has the measures and counts per tool.
        """
        alignment = comparison.align(RULES["name_only"], ANY_ORDER)
        tools = _by_tool(comparison, alignment)
        values = {tool: f1(*counts) for tool, counts in tools.items()}
        value = ratio(fsum(values.values()), len(values), if_empty=1.0)
        wrong = sorted((tool for tool in values if values[tool] < 1), key=values.__getitem__)
        correct = len(values) - len(wrong)
        explanation = f"the calls of {correct} of {len(values)} tools are the expected ones"
        if wrong:
            explanation += f"; not those of {listed(wrong)}"
        reading = Reading(comparison, RULES["name_only"], alignment, value, value, explanation)
        return reading, {"tools": {tool: _measures(counts) for tool, counts in tools.items()}}


def _accuracy(matched: int, actual: int, expected: int) -> float:
    """The matched share of the longer side; 1 if both are empty."""
    return ratio(matched, max(actual, expected), if_empty=1.0)


def _by_tool(comparison: Comparison, alignment: Alignment) -> dict[str, Counts]:
    actual, expected = comparison.actual.names, comparison.expected.names
    matched = Counter(expected[j] for _, j in alignment.pairs)
    missing = Counter(expected[j] for j in alignment.missing)
    unexpected = Counter(actual[i] for i in alignment.unexpected)
    tools = sorted({*matched, *missing, *unexpected})
    return {
        tool: Counts(matched[tool], matched[tool] + unexpected[tool], matched[tool] + missing[tool])
        for tool in tools
    }


def _measures(counts: Counts) -> Json:
    """Precision and recall are `None` where they are 0/0."""
    return {
        "precision": precision(*counts) if counts.actual else None,
        "recall": recall(*counts),
        "f1": f1(*counts),
        **counts._asdict(),
    }
