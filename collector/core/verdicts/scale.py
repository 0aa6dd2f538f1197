"""What a difference of two scores is, from -1 to 1; positive is better.

Scores with a range differ by a share of it. Amounts without an upper end, such as seconds and
tokens, have no such share, and their means depend on a few extreme values. They are only compared:
the difference is the probability that the candidate is better, less that of the opposite. Amounts
that differ by less than `TOLERANCE` are equal: nobody wants to stop a release because every answer
takes a millisecond longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.verdicts.pairing import Pair

Measure = Literal["mean", "order"]
"""`mean`: differences are shares of the range. `order`: shares of comparisons won."""

TOLERANCE = 0.1
"""Of the larger of two amounts."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The range and direction of a metric."""

    low: float
    high: float
    higher_is_better: bool

    @property
    def measure(self) -> Measure:
        """How values are compared."""
        return "mean" if math.isfinite(self.high - self.low) else "order"

    def difference(self, pair: Pair) -> float:
        """How much better the candidate is in this pair."""
        sign = 1 if self.higher_is_better else -1
        if self.measure == "mean":
            width = self.high - self.low
            return sign * max(-1.0, min(1.0, (mean(pair.candidate) - mean(pair.baseline)) / width))
        won = [_order(one, other) for one in pair.candidate for other in pair.baseline]
        return sign * sum(won) / len(won)


def scale_of(criterion: Criterion) -> Scale:
    """The scale of a criterion's scores."""
    scorer = criterion.scorer
    return Scale(scorer.low, scorer.high, scorer.higher_is_better)


def mean(values: Sequence[float]) -> float:
    """The mean of some values."""
    return sum(values) / len(values)


def _order(one: float, other: float) -> int:
    if abs(one - other) <= TOLERANCE * max(abs(one), abs(other)):
        return 0
    return 1 if one > other else -1
