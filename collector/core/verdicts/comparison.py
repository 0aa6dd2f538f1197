"""Compares two versions by one metric: pairs within each scenario, one interval over all of them.

The difference is the mean over all pairs, so each scenario weighs as much as it has pairs. A change
of the mix of scenarios alone makes no difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pathgauge.collector.core.verdicts.confidence import Differences, Interval
from pathgauge.collector.core.verdicts.pairing import pairs
from pathgauge.collector.core.verdicts.scale import Measure, Scale, mean

Outcome = Literal["better", "not_worse", "worse", "undecided"]
Reason = Literal[
    "no_scores",
    "no_scores_of_version",
    "no_scores_of_baseline",
    "no_shared_scenario",
    "too_few_pairs",
]

_DIGITS = 12
"""Equal differences have rounding errors, and are counted together."""


class Stratum(NamedTuple):
    """Scores that are compared with each other only."""

    tenant: str
    scenario: str
    scale: Scale
    measured_by: tuple[str, ...] = ()
    """Scorer, judge and reference."""


@dataclass(slots=True)
class Side:
    """How many results of a version have a score."""

    scored: int = 0
    not_scored: int = 0


@dataclass(slots=True)
class Scores:
    """The scores of one metric, in the order of time."""

    measure: Measure
    values: dict[Stratum, list[tuple[bool, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Each with whether it is the candidate's."""
    candidate: Side = field(default_factory=Side)
    baseline: Side = field(default_factory=Side)

    def add(self, stratum: Stratum, value: float | None, *, is_candidate: bool) -> None:
        """Add a result, later than those before, or earlier than those before if `reverse` is
        called at the end; `None` if it has no score.
        """
        side = self.candidate if is_candidate else self.baseline
        if value is None:
            side.not_scored += 1
        else:
            side.scored += 1
            self.values[stratum].append((is_candidate, value))

    def add_pair(self, stratum: Stratum, candidate: float | None, baseline: float | None) -> None:
        """Add two scores of one invocation, which form a pair if both exist."""
        is_pair = candidate is not None and baseline is not None
        for value, side in ((candidate, self.candidate), (baseline, self.baseline)):
            if is_pair:
                self.add(stratum, value, is_candidate=side is self.candidate)
            elif value is None:
                side.not_scored += 1
            else:
                side.scored += 1

    def reverse(self) -> None:
        """Bring scores that were added newest first into the order of time."""
        for values in self.values.values():
            values.reverse()


@dataclass(frozen=True, slots=True)
class Terms:
    """When a difference is large enough, and how certain it must be."""

    confidence: float = 0.95
    """Probability that all intervals always hold."""
    margin: float = 0.05
    """Not worse: certainly worse by less than this."""
    min_effect: float = 0.0
    """Better or worse: certainly by more than this."""

    def outcome(self, found: Interval) -> Outcome:
        """What an interval says."""
        if found.high < -self.min_effect:
            return "worse"
        if found.low > self.min_effect:
            return "better"
        return "not_worse" if found.low > -self.margin else "undecided"


@dataclass(frozen=True, slots=True)
class ScenarioDifference:
    """The pairs of one scenario."""

    tenant: str
    scenario: str
    pairs: int
    difference: float
    candidate: float
    """Mean score."""
    baseline: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two versions by one metric."""

    metric: str
    outcome: Outcome
    reason: Reason | None
    """Why it is undecided."""
    measure: Measure
    interval: Interval
    scenarios: Sequence[ScenarioDifference]
    """The worst first."""
    candidate: Side
    baseline: Side

    @property
    def pairs(self) -> int:
        """In all scenarios."""
        return sum(one.pairs for one in self.scenarios)

    def mean(self, name: Literal["difference", "candidate", "baseline"]) -> float | None:
        """The mean over all pairs; `None` without one."""
        if not self.scenarios:
            return None
        total: float = sum(getattr(one, name) * one.pairs for one in self.scenarios)
        return total / self.pairs


def compare(metric: str, scores: Scores, terms: Terms, metrics: int) -> Comparison:
    """Compare by one of several `metrics`, which share the probability of an error."""
    counted: Counter[float] = Counter()
    scenarios = []
    for stratum, values in scores.values.items():
        found = list(pairs(values))
        if not found:
            continue
        each = [round(stratum.scale.difference(pair), _DIGITS) for pair in found]
        counted.update(each)
        scenarios.append(
            ScenarioDifference(
                stratum.tenant,
                stratum.scenario,
                len(found),
                mean(each),
                mean([mean(pair.candidate) for pair in found]),
                mean([mean(pair.baseline) for pair in found]),
            )
        )
    differences = Differences()
    for difference, times in counted.items():
        differences.add(difference, times)
    found_interval = differences.interval((1 - terms.confidence) / metrics)
    outcome = terms.outcome(found_interval)
    return Comparison(
        metric,
        outcome,
        _reason(scores, bool(counted)) if outcome == "undecided" else None,
        scores.measure,
        found_interval,
        sorted(scenarios, key=lambda one: (one.difference, -one.pairs)),
        scores.candidate,
        scores.baseline,
    )


def _reason(scores: Scores, has_pairs: bool) -> Reason:
    if has_pairs:
        return "too_few_pairs"
    match bool(scores.candidate.scored), bool(scores.baseline.scored):
        case False, False:
            return "no_scores"
        case False, True:
            return "no_scores_of_version"
        case True, False:
            return "no_scores_of_baseline"
    return "no_shared_scenario"
