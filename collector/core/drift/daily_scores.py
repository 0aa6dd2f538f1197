"""Mean and variation of the scores of the last days, in constant memory.

Scores vary between hours by more than chance: other users, other questions, a provider under load.
Analysis of variance tells how much, from six sums over the hours. So hours need not be kept.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pathgauge.collector.core.drift.policy import DAY_S, HOUR_S, MAX_BACK_S, DriftPolicy
from pathgauge.scorers.types import Json


class Totals(NamedTuple):
    """Sums over the scores of whole hours."""

    hours: float = 0.0
    """With at least one score."""
    samples: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    between: float = 0.0
    """Sum over the hours of total * total / samples."""
    sizes: float = 0.0
    """Sum over the hours of samples * samples."""

    def plus(self, other: Iterable[float]) -> Totals:
        """The sums over both."""
        return Totals(*(one + more for one, more in zip(self, other, strict=True)))

    @property
    def mean(self) -> float:
        """Mean of all scores; at least one is needed."""
        return self.total / self.samples

    @property
    def deviation_of_hours(self) -> float:
        """Standard deviation of the hourly mean beyond what is expected by chance."""
        if self.hours < 2:
            return 0.0
        overall = self.total * self.total / self.samples
        single = self.samples - self.hours
        if single >= self.hours:
            noise = max(0.0, self.squares - self.between) / single
        else:  # with about one score an hour, the variation within hours is unknown
            noise = max(0.0, self.squares - overall) / (self.samples - 1)
        weight = self.samples - self.sizes / self.samples
        excess = self.between - overall - noise * (self.hours - 1)
        return math.sqrt(excess / weight) if excess > 0 and weight > 0 else 0.0


def _hour(samples: float, total: float, squares: float) -> Totals:
    return Totals(1, samples, total, squares, total * total / samples, samples * samples)


class DailyScores:
    """The scores of at most `max_learn_days` days and of today. Time must not run backwards."""

    __slots__ = ("_days", "_hour", "_samples", "_squares", "_total")

    def __init__(self) -> None:
        self._days: dict[int, array[float]] = {}
        """By day since 1970, oldest first."""
        self._hour = -1
        self._samples = 0
        self._total = 0.0
        self._squares = 0.0

    def advance(self, now: float, policy: DriftPolicy) -> bool:
        """Drop what is too old; returns whether an hour with scores has ended."""
        hour = int(now // HOUR_S)
        if now < self._hour * HOUR_S - MAX_BACK_S:  # the clock was wrong; its hour goes on as now
            self._hour = hour
        if hour <= self._hour or not self._samples:
            self._hour = max(hour, self._hour)
            return False
        day = self._hour * HOUR_S // DAY_S
        ended = _hour(self._samples, self._total, self._squares)
        self._days[day] = array("d", ended.plus(self._days.get(day, Totals())))
        self._hour, self._samples, self._total, self._squares = hour, 0, 0.0, 0.0
        self._forget(int(now // DAY_S), policy)
        return True

    def add(self, score: float) -> None:
        """Add a score at the time of the last `advance`."""
        self._samples += 1
        self._total += score
        self._squares += score * score

    def ended_hours(self) -> Totals:
        """The sums over all hours but the present one."""
        return Totals(*map(sum, zip(*self._days.values(), strict=True)))

    def totals(self) -> Totals:
        """The sums over all hours."""
        totals = self.ended_hours()
        if self._samples:
            totals = totals.plus(_hour(self._samples, self._total, self._squares))
        return totals

    def _forget(self, today: int, policy: DriftPolicy) -> None:
        """Keep no more days than a baseline is learned from."""
        samples = 0.0
        for day in sorted(self._days, reverse=True):
            age = today - day
            enough = samples >= policy.enough_scores
            if age > policy.max_learn_days or (age > policy.learn_days and enough):
                del self._days[day]
            else:
                samples += self._days[day][1]

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        days = [[day, *sums] for day, sums in self._days.items()]
        return [self._hour, self._samples, self._total, self._squares, days]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> DailyScores:
        """The scores of a `state`."""
        scores = cls()
        scores._hour, scores._samples, scores._total, scores._squares, days = state
        scores._days = {int(day): array("d", sums) for day, *sums in days}
        return scores
