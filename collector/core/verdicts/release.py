"""The verdict on a version over all metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathgauge.collector.core.verdicts.comparison import (
    Comparison,
    Outcome,
    Scores,
    Terms,
    compare,
)


@dataclass(frozen=True, slots=True)
class Release:
    """The verdict, and the comparisons that led to it."""

    outcome: Outcome
    comparisons: Sequence[Comparison]
    """One for each metric, the worst first."""


def decide(scores: Mapping[str, Scores], terms: Terms) -> Release:
    """Compare two versions by all metrics.

    Their intervals hold together with the probability `terms.confidence`: each gets the same share
    of the error, also a metric without scores. So the shares are the same at every look.
    """
    found = [compare(metric, one, terms, len(scores)) for metric, one in scores.items()]
    found.sort(key=lambda one: (_ORDER[one.outcome], one.mean("difference") or 0.0))
    return Release(_overall(found), found)


_ORDER: Mapping[Outcome, int] = {"worse": 0, "undecided": 1, "not_worse": 2, "better": 3}


def _overall(comparisons: Sequence[Comparison]) -> Outcome:
    """Worse in one metric is worse. Any other verdict needs all metrics that the baseline has: an
    agent that became faster may have become so by doing less.
    """
    if any(one.outcome == "worse" for one in comparisons):
        return "worse"
    outcomes = {one.outcome for one in comparisons if one.baseline.scored}
    if not outcomes or "undecided" in outcomes:
        return "undecided"
    return "better" if "better" in outcomes else "not_worse"
