"""A confidence interval for the mean of differences, valid at every time of looking.

A fixed share `b` of a capital is bet on each difference d, from -1 to 1. After n differences the
capital is the product of all `1 + b d`. If e is the expected difference of a pair, given all pairs
before it, the product of `(1 + b d) / (1 + b e)` is a martingale: it ever exceeds 1 / error with a
probability of at most `error` (Ville's inequality). The logarithm is concave, so the product of all
`1 + b e` is at most `(1 + b m) ** n` for the mean m of the e. A mean m for which the capital
exceeds `(1 + b m) ** n / error` is therefore refuted, at whatever n, and however the expectations
of scenarios differ or change. The mean over several `b` has the same property, and no `b` has to be
chosen for an unknown difference.

Nothing else is assumed: no distribution, no number of samples. The order of the pairs has no effect
on the products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

BETS = (0.02, 0.035, 0.06, 0.10, 0.18, 0.32, 0.56, 0.95)
_HALVINGS = 30


class Interval(NamedTuple):
    """Ends of a confidence interval."""

    low: float
    high: float


class Differences:
    """The differences of pairs."""

    __slots__ = ("_against", "_for", "pairs")

    def __init__(self) -> None:
        self.pairs = 0
        self._for = [0.0] * len(BETS)
        """Logarithms of the capital that was bet on positive differences, by bet."""
        self._against = [0.0] * len(BETS)

    def add(self, difference: float, times: int = 1) -> None:
        """Add pairs with this difference, from -1 to 1."""
        self.pairs += times
        for place, bet in enumerate(BETS):
            self._for[place] += times * math.log1p(bet * difference)
            self._against[place] += times * math.log1p(-bet * difference)

    def interval(self, error: float) -> Interval:
        """The interval for the expected mean. It ever leaves it out with a probability of at most
        `error`, half of it on each side.
        """
        return Interval(
            self._lowest(self._for, error / 2),
            -self._lowest(self._against, error / 2),
        )

    def refutes(self, mean: float, error: float) -> bool:
        """Whether the interval leaves out this mean."""
        return self._is_too_low(self._for, mean, error / 2) or self._is_too_low(
            self._against, -mean, error / 2
        )

    def _lowest(self, capital: Sequence[float], error: float) -> float:
        """The least mean that is not refuted."""
        low, high = -1.0, 1.0
        if not self._is_too_low(capital, low, error):
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self._is_too_low(capital, middle, error):
                low = middle
            else:
                high = middle
        return low

    def _is_too_low(self, capital: Sequence[float], mean: float, error: float) -> bool:
        gains = [
            one - self.pairs * math.log1p(bet * mean)
            for bet, one in zip(BETS, capital, strict=True)
        ]
        most = max(gains)
        total = most + math.log(sum(math.exp(gain - most) for gain in gains))
        return total > math.log(len(BETS) / error)
