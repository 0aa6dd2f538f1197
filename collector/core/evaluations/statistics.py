"""What remains of many numbers when they are forgotten: numbers come in one by one, their count,
mean and spread go out.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection
from typing import NamedTuple


class RunningStatistics(NamedTuple):
    """Count, mean, and sum of the squared distances from the mean."""

    samples: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @property
    def variance(self) -> float:
        """The unbiased one; of a single number, or of none, 0."""
        return self.squares / (self.samples - 1) if self.samples > 1 else 0.0

    def plus(self, value: float) -> RunningStatistics:
        """With one number more; finite whatever the number is, as long as it is finite itself."""
        return RunningStatistics(*plus(*self, value))


def plus(samples: float, mean: float, squares: float, value: float) -> tuple[int, float, float]:
    """`RunningStatistics.plus` where a tuple a number is too slow."""
    more = int(samples) + 1
    moved = mean + (value / more - mean / more)
    return more, moved, min(squares + (value - mean) * (value - moved), sys.float_info.max)


def moments_of(values: Collection[float]) -> RunningStatistics:
    """Those of at least one number, as exactly as floats have them."""
    mean = mean_of(values)
    return RunningStatistics(
        len(values),
        mean,
        min(sum((value - mean) * (value - mean) for value in values), sys.float_info.max),
    )


def mean_of(values: Collection[float]) -> float:
    """The mean of at least one number."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum of finite values may be none
        return math.fsum(value / len(values) for value in values)
