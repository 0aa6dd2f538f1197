"""Turns numbers without an upper limit, such as seconds and tokens, into scores from 0 to 1.

The score of a number is the share of last week's numbers that were worse. Its mean is 0.5 while
nothing changes, whatever the distribution, so no extreme number counts for more than any other
number that is worse than nearly all of last week's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pathgauge.collector.core.drift.histogram import Histogram, Ranks
from pathgauge.collector.core.drift.policy import DAY_S, HOUR_S, DriftPolicy
from pathgauge.scorers.types import Json

BASELINE = 0.48
"""The baseline for these scores, if enough numbers of last week are known."""

_DEVIATIONS_OF_MEAN = math.sqrt(2 * math.log(1 / 0.02) / 12)
"""A bound at 98 % for the mean of uniform numbers, times the root of how many there are."""


class Quantiles:
    """Last week's numbers, and those of the present week.

    The first day with enough numbers stands in for a week until there is one.
    """

    __slots__ = ("_hour", "_hours", "_last_week", "_started", "_this_week")

    def __init__(self) -> None:
        self._this_week = Histogram()
        self._last_week: Ranks | None = None
        self._started = 0.0
        """When the first number of the present week came."""
        self._hour = -1
        self._hours = 0
        """Hours of the present week with at least one number."""

    @property
    def highest_baseline(self) -> float:
        """The baseline, lower if the ranks come from few numbers and may all be too high."""
        if self._last_week is None:
            return BASELINE
        return min(BASELINE, 0.5 - _DEVIATIONS_OF_MEAN / math.sqrt(self._last_week.samples))

    @property
    def mean(self) -> float | None:
        """Mean of last week's numbers."""
        return None if self._last_week is None else self._last_week.mean

    def score(self, number: float, *, higher_is_better: bool) -> float | None:
        """The share of last week's numbers that were worse; `None` without a last week."""
        if self._last_week is None:
            return None
        rank = self._last_week.rank(number)
        return rank if higher_is_better else 1 - rank

    def number(self, score: float, *, higher_is_better: bool) -> float | None:
        """Last week's number with this score."""
        if self._last_week is None:
            return None
        return self._last_week.at(score if higher_is_better else 1 - score)

    def add(self, number: float, now: float, policy: DriftPolicy) -> None:
        """Add a number. Time must not run backwards."""
        known = self._this_week.samples
        if known >= policy.min_scores and self._hours >= policy.min_hours:
            self._roll_over(now, policy)
        if not self._this_week.samples:
            self._started = now
        hour = int(now // HOUR_S)
        if hour != self._hour:
            self._hour, self._hours = hour, self._hours + 1
        self._this_week.add(number)

    def _roll_over(self, now: float, policy: DriftPolicy) -> None:
        complete = now - self._started >= policy.learn_days * DAY_S
        if complete or self._last_week is None:
            self._last_week = self._this_week.ranks()
        if complete:
            self._this_week, self._hours, self._hour = Histogram(), 0, -1

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        last_week = None if self._last_week is None else self._last_week.state()
        return [self._this_week.state(), last_week, self._started, self._hour, self._hours]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Quantiles:
        """Quantiles that continue from a `state`."""
        this_week, last_week, started, hour, hours = state
        quantiles = cls()
        quantiles._this_week = Histogram.restored(this_week)
        quantiles._last_week = None if last_week is None else Ranks.restored(last_week)
        quantiles._started, quantiles._hour, quantiles._hours = started, hour, hours
        return quantiles
