"""The mean that scores are compared with, learned from the scores themselves.

It is lower than the mean of recent scores by a margin, so that the usual variation is no evidence.
It follows a rise at once and a decline slowly: otherwise it would follow scores that get worse
little by little, and nobody would be told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pathgauge.collector.core.drift.daily_scores import DailyScores, Totals
from pathgauge.collector.core.drift.policy import WEEK_S, DriftPolicy
from pathgauge.scorers.types import Json

_DEVIATIONS = 3
_CERTAINTY = math.log(1 / 0.02)
"""The chance that the true mean is below the lower bound is 2 %."""


class Baseline:
    """The baseline of one stream of scores between 0 and 1, where more is better."""

    __slots__ = ("_learned_at", "scores", "value")

    def __init__(self) -> None:
        self.scores = DailyScores()
        self.value: float | None = None
        """`None` before enough scores."""
        self._learned_at = -math.inf

    def add(self, score: float, now: float, policy: DriftPolicy) -> None:
        """Add a score. The baseline is learned again when an hour has ended."""
        if self.scores.advance(now, policy):
            self._learn(now, policy)
        self.scores.add(score)

    def hold(self, now: float) -> None:
        """Pass time during an alarm, without learning from its scores."""
        if self.value is not None:
            self._learned_at = max(self._learned_at, now)

    def mean_before(self, samples: int, mean: float) -> float | None:
        """Mean of the known scores without the latest ones, of which number and mean are given."""
        totals = self.scores.totals()
        earlier = totals.samples - samples
        if earlier <= 0:
            return None
        return min(1.0, max(0.0, (totals.total - samples * mean) / earlier))

    def _learn(self, now: float, policy: DriftPolicy) -> None:
        totals = self.scores.ended_hours()
        if totals.samples < policy.min_scores or totals.hours < policy.min_hours:
            return
        value = learned(totals, policy.margin)
        if self.value is not None:
            weeks = max(0.0, now - self._learned_at) / WEEK_S
            value = max(value, self.value - policy.max_fall_per_week * weeks)
        self.value, self._learned_at = value, now

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        learned_at = None if self.value is None else self._learned_at
        return [self.value, learned_at, self.scores.state()]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Baseline:
        """A baseline that continues from a `state`."""
        value, learned_at, scores = state
        baseline = cls()
        baseline.value = value
        baseline._learned_at = -math.inf if learned_at is None else learned_at
        baseline.scores = DailyScores.restored(scores)
        return baseline


def learned(totals: Totals, margin: float) -> float:
    """The baseline for scores like these. It is below their mean by a margin or by the variation
    between hours, whichever is larger, and not above a lower bound of the true mean.
    """
    mean = min(1.0, totals.mean)
    below = max(0.0, mean - max(margin, _DEVIATIONS * totals.deviation_of_hours))
    if totals.samples * _divergence(mean, below) >= _CERTAINTY:
        return below  # the bound is higher: no need to find it
    return min(below, lower_bound(totals.samples, mean))


def lower_bound(samples: float, mean: float) -> float:
    """The Chernoff bound: the true mean of scores between 0 and 1 is lower with a probability of at
    most 2 %.
    """
    limit = _CERTAINTY / samples
    low, high = 0.0, mean
    for _ in range(40):
        middle = (low + high) / 2
        if _divergence(mean, middle) > limit:
            low = middle
        else:
            high = middle
    return low


def _divergence(mean: float, other: float) -> float:
    """Kullback-Leibler divergence of two Bernoulli distributions."""
    if other <= 0:
        return math.inf
    divergence = mean * math.log(mean / other) if mean > 0 else 0.0
    if mean < 1:
        divergence += (1 - mean) * math.log((1 - mean) / (1 - other))
    return divergence
