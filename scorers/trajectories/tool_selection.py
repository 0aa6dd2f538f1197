"""Which tools an agent picks: the tool calls of an invocation and of its reference turn come in,
how well they were chosen goes out.

The order of calls means nothing here, and each call counts once: an agent that calls the expected
tool in a loop has made one good choice and many bad ones. See `pathgauge.scorers.trajectories.adk`
for when there is no value.
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
from pathgauge.scorers.matching.measures import f1, precision, recall
from pathgauge.scorers.trajectories.adk import Reading, TrajectoryScorer, aligned
from pathgauge.scorers.trajectories.detailed import DetailedScorer
from pathgauge.scorers.types import Json


@dataclass(frozen=True)
class ToolPrecision(TrajectoryScorer):
    """The share of the calls that were expected, each expected call counting once."""

    name: ClassVar[str] = "tool_precision"

    match_mode: MatchMode = "name_only"
    """What makes a call the expected one."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))

    def read(self, comparison: Comparison) -> Reading:
        """Matched of actual calls."""
        return aligned(comparison, RULES[self.match_mode], ANY_ORDER, precision)


@dataclass(frozen=True)
class ToolRecall(TrajectoryScorer):
    """The share of the expected calls that were made, each call answering one."""

    name: ClassVar[str] = "tool_recall"

    match_mode: MatchMode = "name_only"
    """What makes a call the expected one."""

    def __post_init__(self) -> None:
        check_choice("match_mode", self.match_mode, get_args(MatchMode))

    def read(self, comparison: Comparison) -> Reading:
        """Matched of expected calls."""
        return aligned(comparison, RULES[self.match_mode], ANY_ORDER, recall)


@dataclass(frozen=True)
class ToolSelectionAccuracy(TrajectoryScorer):
    """The share of right choices of a tool: matched calls of the calls made or expected, whichever
    are more.
    """

    name: ClassVar[str] = "tool_selection_accuracy"

    def read(self, comparison: Comparison) -> Reading:
        """By names, in any order."""
        return aligned(comparison, RULES["name_only"], ANY_ORDER, _accuracy)


@dataclass(frozen=True)
class PerToolF1(DetailedScorer):
    """The mean over tools of the F1 of their calls, so that a tool called once weighs as much as
    one called often.
    """

    name: ClassVar[str] = "per_tool_f1"

    def look(self, comparison: Comparison) -> tuple[Reading, Mapping[str, Json]]:
        """By names, in any order; 1 when nothing was expected and nothing was called. `tools`: the
        measures and counts of each.
        """
        alignment = comparison.align(RULES["name_only"], ANY_ORDER)
        tools = _by_tool(comparison, alignment)
        values = {tool: f1(*counts) for tool, counts in tools.items()}
        value = fsum(values.values()) / len(values) if values else 1.0
        low = sorted((tool for tool in values if values[tool] < 1), key=values.__getitem__)
        line = f"the calls of {len(values) - len(low)} of {len(values)} tools are the expected ones"
        if low:
            line += f"; not those of {listed(low)}"
        reading = Reading(comparison, RULES["name_only"], alignment, value, value, line)
        return reading, {"tools": {tool: _measured(counts) for tool, counts in tools.items()}}


def _accuracy(matched: int, actual: int, expected: int) -> float:
    """The matched share of the longer side; 1 when both are empty."""
    return matched / max(actual, expected) if actual or expected else 1.0


def _by_tool(comparison: Comparison, alignment: Alignment) -> dict[str, Counts]:
    made, asked = comparison.actual.names, comparison.expected.names
    matched = Counter(asked[j] for _, j in alignment.pairs)
    missing = Counter(asked[j] for j in alignment.missing)
    unexpected = Counter(made[i] for i in alignment.unexpected)
    tools = sorted({*matched, *missing, *unexpected})
    return {
        tool: Counts(matched[tool], matched[tool] + unexpected[tool], matched[tool] + missing[tool])
        for tool in tools
    }


def _measured(counts: Counts) -> Json:
    """Precision and recall are `None` for 0/0."""
    of_actual = precision(*counts) if counts.actual else None
    return {
        "precision": of_actual,
        "recall": recall(*counts),
        "f1": f1(*counts),
        **counts._asdict(),
    }
