"""Ranges of values, and the comparison with thresholds.

A scorer inherits its range and direction from one of the classes. The gauges, the gate and the
rules all use `meets`, so they agree on values that differ only by rounding.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pathgauge.scorers.types import Scorer


class Share:
    """From 0 to 1, higher is better: a share, or a check with 1 for passed and 0 for failed.

    A check has `binary`, a class attribute or a property that is true: no value is between.
    """

    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False


class Rate(Share):
    """From 0 to 1, lower is better."""

    higher_is_better: ClassVar[bool] = False


class Amount:
    """From 0 up, lower is better: seconds, tokens, calls."""

    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = math.inf
    higher_is_better: ClassVar[bool] = False
    needs_reference: ClassVar[bool] = False


TOLERANCE = 1e-9
"""The mean of n equal scores may be lower by a rounding error. A threshold missed by no more than
this is met.
"""


def meets(scorer: Scorer, value: float, threshold: float) -> bool:
    """Whether a value is at least as good as the threshold, in the direction of the scorer."""
    if scorer.higher_is_better:
        return value - threshold >= -TOLERANCE
    return threshold - value >= -TOLERANCE


def worst(scorer: Scorer) -> float | None:
    """The worst value that a scorer can give; `None` if its range has no end there, as that of
    seconds.
    """
    end = scorer.low if scorer.higher_is_better else scorer.high
    return end if math.isfinite(end) else None


def is_binary(scorer: Scorer) -> bool:
    """Whether the scorer says that its values are 0 and 1 only."""
    return bool(getattr(scorer, "binary", False))


def in_range(scorer: Scorer, value: float) -> bool:
    """Whether a value is finite and in the range of the scorer."""
    return math.isfinite(value) and scorer.low - TOLERANCE <= value <= scorer.high + TOLERANCE
