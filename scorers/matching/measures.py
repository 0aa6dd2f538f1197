"""Measures from 0 to 1, computed from the numbers of matched, actual and expected calls.

Every measure grows with the number of matched calls. So a value that is the same for the smallest
and the largest possible number is certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import TypeAlias

Measure: TypeAlias = Callable[[int, int, int], float | None]
"""`None` where the value is 0/0."""


def mean_of(values: Collection[float]) -> float:
    """The mean of at least one number."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum of finite values may be infinite
        return math.fsum(value / len(values) for value in values)


def ratio(part: float, whole: float, *, if_empty: float) -> float:
    """`part / whole`; `if_empty` if the whole is 0."""
    if not whole:
        return if_empty
    return part / whole


def exact(matched: int, actual: int, expected: int) -> float:
    """1 if all actual and all expected calls are matched."""
    return float(matched == actual == expected)


def complete(matched: int, actual: int, expected: int) -> float:
    """1 if every expected call is matched; other actual calls do not matter."""
    return float(matched == expected)


def contained(matched: int, actual: int, expected: int) -> float:
    """1 if every actual call is matched; other expected calls do not matter."""
    return float(matched == actual)


def f1(matched: int, actual: int, expected: int) -> float:
    """The harmonic mean of precision and recall; 1 if there are no calls on either side."""
    return ratio(2 * matched, actual + expected, if_empty=1.0)


def precision(matched: int, actual: int, expected: int) -> float:
    """The matched share of the actual calls. Without any: 1 if none was expected, else 0."""
    return ratio(matched, actual, if_empty=float(not expected))


def recall(matched: int, actual: int, expected: int) -> float | None:
    """The matched share of the expected calls. Without any: 1 if none was made, else undefined."""
    if expected:
        return matched / expected
    return None if actual else 1.0
