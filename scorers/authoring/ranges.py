"""Ranges of values, and when a value meets a threshold.

A scorer inherits its range and direction from one of the classes. The gauges, the gate and the
rules all compare with `meets`, so that they agree on values that differ only by rounding.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pathgauge.scorers.types import Scorer


class Share:
    """From 0 to 1, and more is better: a share, or 1 for a check that holds and 0 for one that does
    not.
    """

    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False


class Rate(Share):
    """From 0 to 1, and less is better."""

    higher_is_better: ClassVar[bool] = False


class Amount:
    """From 0 on, and less is better: seconds, tokens, calls."""

    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = math.inf
    higher_is_better: ClassVar[bool] = False
    needs_reference: ClassVar[bool] = False


TOLERANCE = 1e-9
"""A mean of n equal scores may fall short of them by rounding; a threshold met up to this much is
met.
"""


def meets(scorer: Scorer, value: float, threshold: float) -> bool:
    """Whether a value of `scorer` is as good as the threshold, or better, in the scorer's
    direction.
    """
    margin = value - threshold if scorer.higher_is_better else threshold - value
    return margin >= -TOLERANCE


def in_range(scorer: Scorer, value: float) -> bool:
    """Whether a value is one that `scorer` may give: finite, and between its ends."""
    return math.isfinite(value) and scorer.low - TOLERANCE <= value <= scorer.high + TOLERANCE
