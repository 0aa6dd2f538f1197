"""Cohen's kappa of two raters who say pass or fail, with bounds that hold for few pairs.

The usual interval, kappa plus and minus two standard errors, is far too short when pairs are few or
nearly all runs pass: for 28 agreements of 30 where people never said fail, its length is zero. The
bounds here invert the likelihood ratio test: a kappa lies between them if some pair of raters
with this kappa explains the pairs nearly as well as the best pair of raters does.

The quantile is that of 99.5 %, because the test is only approximate for few pairs. So the bounds
contain the true kappa in at least 95 of any 100 cases: `tests/core/feedback` computes the share for
10 pairs, and simulates 10 to 300.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

_QUANTILE = 7.879
"""Of the chi-squared distribution with one degree of freedom, at 0.995."""
_GOLDEN = (math.sqrt(5) - 1) / 2
_SEARCH_STEPS = 24
_BOUND_STEPS = 14
"""Halvings: the bounds are exact to 0.0001."""
_TINY = 1e-12
_CACHED = 4_096


class Table(NamedTuple):
    """How often both, one or none of the two said pass."""

    both: int = 0
    people_only: int = 0
    criterion_only: int = 0
    neither: int = 0

    @property
    def pairs(self) -> int:
        """The number of runs that both have judged."""
        return sum(self)


class Agreement(NamedTuple):
    """Kappa and its bounds."""

    kappa: float
    lower: float
    upper: float


@lru_cache(_CACHED)
def agreement(table: Table) -> Agreement | None:
    """`None` if kappa is undefined: all verdicts of both are the same, as chance alone gives."""
    kappa = kappa_of(table)
    if kappa is None:
        return None
    least = _log_likelihood(table, [count / table.pairs for count in table]) - _QUANTILE / 2
    return Agreement(kappa, _bound(table, kappa, -1.0, least), _bound(table, kappa, 1.0, least))


def kappa_of(table: Table) -> float | None:
    """The share of agreement beyond chance."""
    if not table.pairs:
        return None
    people = table.both + table.people_only
    criterion = table.both + table.criterion_only
    # Twice the product of counts stays exact, so that a constant rater gives 0 and not -1e-16.
    chance = (people + criterion) * table.pairs - 2 * people * criterion
    if not chance:
        return None
    return 1 - (table.people_only + table.criterion_only) * table.pairs / chance


def _bound(table: Table, inside: float, outside: float, least: float) -> float:
    """The kappa towards `outside` at which the pairs become too unlikely."""
    if best_log_likelihood(table, outside) >= least:
        return outside
    for _ in range(_BOUND_STEPS):
        middle = (inside + outside) / 2
        if best_log_likelihood(table, middle) >= least:
            inside = middle
        else:
            outside = middle
    return outside


def best_log_likelihood(table: Table, kappa: float) -> float:
    """The log likelihood of the pairs under those two raters with this kappa that explain them
    best.

    Two raters are given by the sum and the difference of their shares of passed runs. For a fixed
    kappa the share of disagreements follows from both, so two searches, one in the other, find the
    maximum.
    """
    excess = 1 - kappa
    low, high = (2 - 2 / excess, 2 / excess) if excess > 1 else (0.0, 2.0)
    return _maximum(lambda total: _best_of_total(table, excess, total), low, high)


def _best_of_total(table: Table, excess: float, total: float) -> float:
    base = excess * (total - total * total / 2)
    limit = min(total, 2 - total)
    if base > limit + _TINY:
        return -math.inf
    widest = limit
    if excess > 0:
        widest = min(widest, math.sqrt(max(0.0, 2 * (limit - base) / excess)))
        root = 1 - excess * excess * (2 * total - total * total)
        if root >= 0:
            widest = min(widest, (1 - math.sqrt(root)) / excess)
    else:
        widest = 0.0

    def explained(difference: float) -> float:
        apart = base + excess * difference * difference / 2
        shares = [
            (total - apart) / 2,
            (apart + difference) / 2,
            (apart - difference) / 2,
            1 - (total + apart) / 2,
        ]
        return _log_likelihood(table, shares)

    return _maximum(explained, -widest, widest)


def _log_likelihood(table: Table, shares: list[float]) -> float:
    found = 0.0
    for count, share in zip(table, shares, strict=True):
        if count:
            if share <= 0:
                return -math.inf
            found += count * math.log(share)
        elif share < -_TINY:
            return -math.inf
    return found


def _maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """The largest value of a function with one peak, by golden sections."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    best = max(function(low), function(high), at_left, at_right)
    for _ in range(_SEARCH_STEPS):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return max(best, at_left, at_right)
