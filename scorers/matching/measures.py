"""From counts of calls to a value: how many were matched, made and expected comes in, a number from
0 to 1 goes out.

Every measure grows with the matched calls, so a value that is the same for the fewest and the most
of them is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Measure: TypeAlias = Callable[[int, int, int], float | None]
"""`None` where the value is 0/0."""


def exact(matched: int, actual: int, expected: int) -> float:
    """1 when the matched calls are all there are, on both sides."""
    return float(matched == actual == expected)


def complete(matched: int, actual: int, expected: int) -> float:
    """1 when every expected call is matched, whatever else was called."""
    return float(matched == expected)


def contained(matched: int, actual: int, expected: int) -> float:
    """1 when every actual call is matched, whatever else was expected."""
    return float(matched == actual)


def f1(matched: int, actual: int, expected: int) -> float:
    """The harmonic mean of precision and recall; 1 when nothing was expected and nothing was
    called.
    """
    return 2 * matched / (actual + expected) if actual or expected else 1.0


def precision(matched: int, actual: int, expected: int) -> float:
    """The matched share of the actual calls; when none was made, 1 if none was expected."""
    return matched / actual if actual else float(not expected)


def recall(matched: int, actual: int, expected: int) -> float | None:
    """The matched share of the expected calls; when none was expected, 1 if none was made, else
    0/0.
    """
    if expected:
        return matched / expected
    return None if actual else 1.0
