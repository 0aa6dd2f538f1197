"""Checks the thresholds of criteria against the scores that runs have.

A gauge shows the mean of a window. Where that mean varies by chance across the threshold, an alert
says nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result
from pathgauge.collector.offline.linting.findings import Level
from pathgauge.scorers.matching.wording import counted

MIN_SCORES = 10
_QUANTILE = 1.96
"""Of the normal distribution: 95 of 100 windows are inside."""


def criteria_findings(
    evaluations: Sequence[Evaluation], window: int
) -> Iterator[tuple[Level, str, str]]:
    """Criteria that never have a value, that all runs miss, and whose threshold is in the noise."""
    by_criterion: dict[str, list[Result]] = {}
    for one in evaluations:
        for result in one.results:
            by_criterion.setdefault(result.criterion.name, []).append(result)
    for results in by_criterion.values():
        criterion = results[-1].criterion
        if criterion.threshold is not None:
            yield from _of_criterion(criterion, criterion.threshold, results, window)


def _of_criterion(
    criterion: Criterion, threshold: float, results: Sequence[Result], window: int
) -> Iterator[tuple[Level, str, str]]:
    name, runs = criterion.name, counted(len(results), "run")
    values = [result.score.value for result in results if result.score.value is not None]
    if not values:
        reasons = Counter(str(result.score.reason or "error") for result in results)
        yield "note", "never_evaluated", f"{name} has a value for 0 of {runs}: {_most(reasons)}"
        return
    if all(result.verdict == "failed" for result in results):
        yield "problem", "always_failed", f"{name} is missed by all {runs}"
        return
    is_of_mean = criterion.aggregation is None or criterion.aggregation.measure == "mean"
    if len(values) < MIN_SCORES or not is_of_mean:
        return
    deviation = stdev(values)
    error = _QUANTILE * deviation / math.sqrt(window)
    mean = fmean(values)
    if deviation > 0 and abs(mean - threshold) <= error:
        text = (
            f"the threshold {threshold:g} of {name} is within the noise: means of {window} runs are"
            f" {mean:.3g} ± {error:.2g}"
        )
        yield "note", "within_noise", text


def _most(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
