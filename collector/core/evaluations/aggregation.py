"""Judges many scores together: a mean, a share of passes, pass@k or pass^k, with a confidence
interval.

Some limits mean nothing for one invocation: "19 of 20 routings are right", "at most 15 % of the
runs are escalated". A criterion with an `Aggregation` gives no verdict on an invocation. Its
threshold applies to all scores of a scenario, of an agent, or of everything.

The verdict compares the estimate. The interval tells how far the truth may be from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pathgauge.collector.core.evaluations.statistics import deviation_of
from pathgauge.scorers.authoring.ranges import TOLERANCE, meets
from pathgauge.scorers.matching.measures import mean_of
from pathgauge.scorers.types import Scorer

Over = Literal["scenario", "agent", "suite"]
"""Which scores are judged together. `suite`: those of all agents and scenarios."""
OVER: tuple[Over, ...] = get_args(Over)

Measure = Literal["mean", "share", "pass@k", "pass^k"]
MEASURES: tuple[Measure, ...] = get_args(Measure)

Z_95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How a criterion sums up scores.

    `pass@k` is the probability that at least one of k runs of a scenario passes, `pass^k` that all
    k pass. Both are estimated without bias from n >= k runs of each scenario (Chen et al. 2021,
    arXiv:2107.03374, and Yao et al. 2024, arXiv:2406.12045), and averaged over the scenarios.
    """

    over: Over
    measure: Measure = "mean"
    each: float | None = None
    """The threshold that one invocation must meet to pass, in the scale of the scorer. `None`: the
    best score. Unused for a mean.
    """
    k: int = 1

    @property
    def of_runs(self) -> bool:
        """Whether it is about repeated runs of one scenario."""
        return self.measure in ("pass@k", "pass^k")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The summary of the scores of one scenario, agent or suite."""

    value: float
    low: float
    """The lower bound of the 95 % confidence interval."""
    high: float
    samples: int
    """Number of scores."""
    deviation: float
    """Sample standard deviation of the scores; 0 with one score."""


def aggregate(
    aggregation: Aggregation, scorer: Scorer, scores: Mapping[str, Sequence[float]]
) -> Aggregate | None:
    """Sum up the scores of each scenario. `None` without scores, or if no scenario has k runs."""
    values = [value for of_scenario in scores.values() for value in of_scenario]
    if not values:
        return None
    deviation = deviation_of(values)
    if aggregation.measure == "mean":
        mean = mean_of(values)
        low, high = mean_interval(mean, deviation, len(values), scorer)
        return Aggregate(mean, low, high, len(values), deviation)
    if aggregation.measure == "share":
        share = _passes(aggregation, scorer, values) / len(values)
        return Aggregate(share, *_wilson(share, len(values)), len(values), deviation)
    return _of_runs(aggregation, scorer, scores, deviation)


def verdict(
    aggregation: Aggregation, scorer: Scorer, threshold: float, value: float
) -> Literal["passed", "failed"]:
    """Compare an aggregate with its threshold. More passes are better, whatever the direction of
    the scorer.
    """
    if aggregation.measure == "mean":
        passed = meets(scorer, value, threshold)
    else:
        passed = value - threshold >= -TOLERANCE
    return "passed" if passed else "failed"


def is_below(aggregation: Aggregation, scorer: Scorer, threshold: float, value: float) -> bool:
    """Whether one score pulls an aggregate to the wrong side of its threshold."""
    each = threshold if aggregation.measure == "mean" else _each(aggregation, scorer)
    return not meets(scorer, value, each)


def _of_runs(
    aggregation: Aggregation,
    scorer: Scorer,
    scores: Mapping[str, Sequence[float]],
    deviation: float,
) -> Aggregate | None:
    k, estimates, bounds, runs = aggregation.k, [], [], 0
    for values in scores.values():
        if len(values) < k:
            continue
        runs += len(values)
        passes = _passes(aggregation, scorer, values)
        estimates.append(_run_estimate(aggregation.measure, len(values), passes, k))
        interval = _wilson(passes / len(values), len(values))
        bounds.append([_power(aggregation.measure, bound, k) for bound in interval])
    if not estimates:
        return None
    mean = mean_of(estimates)
    if len(estimates) == 1:
        low, high = bounds[0]
    else:
        low, high = _wilson(mean, len(estimates))
    return Aggregate(mean, min(low, mean), max(high, mean), runs, deviation)


def _passes(aggregation: Aggregation, scorer: Scorer, values: Sequence[float]) -> int:
    each = _each(aggregation, scorer)
    return sum(meets(scorer, value, each) for value in values)


def _each(aggregation: Aggregation, scorer: Scorer) -> float:
    if aggregation.each is not None:
        return aggregation.each
    return scorer.high if scorer.higher_is_better else scorer.low


def _run_estimate(measure: Measure, runs: int, passes: int, k: int) -> float:
    if measure == "pass^k":
        return math.comb(passes, k) / math.comb(runs, k)
    return 1 - math.comb(runs - passes, k) / math.comb(runs, k)


def _power(measure: Measure, share: float, k: int) -> float:
    return share**k if measure == "pass^k" else 1 - (1 - share) ** k


def mean_interval(
    mean: float, deviation: float, samples: int, scorer: Scorer
) -> tuple[float, float]:
    """The 95 % confidence interval of a mean.

    Wilson's interval for a bounded score: its variance is at most that of a share with the same
    mean. Otherwise the normal approximation.
    """
    width = scorer.high - scorer.low
    if math.isfinite(width) and width > 0:
        low, high = _wilson(min(1.0, max(0.0, (mean - scorer.low) / width)), samples)
        return scorer.low + low * width, scorer.low + high * width
    distance = Z_95 * deviation / math.sqrt(samples)
    return max(scorer.low, mean - distance), min(scorer.high, mean + distance)


def _wilson(share: float, samples: int) -> tuple[float, float]:
    """Wilson's score interval of a share."""
    spread = Z_95 * Z_95 / samples
    middle = (share + spread / 2) / (1 + spread)
    half = Z_95 * math.sqrt(share * (1 - share) / samples + spread / (4 * samples)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
