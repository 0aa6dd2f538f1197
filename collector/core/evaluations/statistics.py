"""Mean and variance of a stream of numbers, without keeping the numbers (Welford's algorithm)."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection
from typing import NamedTuple

from pathgauge.scorers.matching.measures import mean_of


class RunningStatistics(NamedTuple):
    """Count, mean, and sum of the squared distances from the mean."""

    samples: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @property
    def variance(self) -> float:
        """The unbiased variance; 0 with fewer than two numbers."""
        return self.squares / (self.samples - 1) if self.samples > 1 else 0.0

    def plus(self, value: float) -> RunningStatistics:
        """The statistics with one more number. They stay finite for every finite number."""
        return RunningStatistics(*plus(*self, value))


def plus(samples: float, mean: float, squares: float, value: float) -> tuple[int, float, float]:
    """`RunningStatistics.plus` without the named tuple, for hot paths."""
    more = int(samples) + 1
    moved = mean + (value / more - mean / more)
    return more, moved, min(squares + (value - mean) * (value - moved), sys.float_info.max)


def statistics_of(values: Collection[float]) -> RunningStatistics:
    """The statistics of at least one number, as exact as floats allow."""
    mean = mean_of(values)
    squares = sum((value - mean) * (value - mean) for value in values)
    return RunningStatistics(len(values), mean, min(squares, sys.float_info.max))


def deviation_of(values: Collection[float]) -> float:
    """The sample standard deviation of at least one number; 0 with one."""
    return math.sqrt(statistics_of(values).variance)
