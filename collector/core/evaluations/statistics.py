"""The sample standard deviation of scores, which may be enormous numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection

from pathgauge.scorers.matching.measures import mean_of


def deviation_of(values: Collection[float]) -> float:
    """The sample standard deviation of at least one finite number, as exact as floats allow; 0 with
    one, and finite always.
    """
    if len(values) < 2:
        return 0.0
    mean = mean_of(values)
    squares = sum((value - mean) * (value - mean) for value in values)
    return math.sqrt(min(squares, sys.float_info.max) / (len(values) - 1))
