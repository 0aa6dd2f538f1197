"""When a value meets a threshold: a scorer, its value and a threshold come in, the answer goes out; the same rule wherever it is asked."""

from __future__ import annotations

import math

from scorers.types import Scorer

TOLERANCE = 1e-9
"""A mean of n equal scores may fall short of them by rounding; a threshold met up to this much is met."""


def meets(scorer: Scorer, value: float, threshold: float) -> bool:
    """Whether a value of `scorer` is as good as the threshold, or better, in the scorer's direction."""
    margin = value - threshold if scorer.higher_is_better else threshold - value
    return margin >= -TOLERANCE


def in_range(scorer: Scorer, value: float) -> bool:
    """Whether a value is one that `scorer` may give: finite, and between its ends."""
    return math.isfinite(value) and scorer.low - TOLERANCE <= value <= scorer.high + TOLERANCE
