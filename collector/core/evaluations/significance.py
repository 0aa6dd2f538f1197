"""Are recent scores worse than those before, or is it chance? Two `RunningStatistics` come in, a p-value goes
out.

The p-value is the probability of a fall at least as large when nothing has changed, hence
one-sided. It is the larger one of two t-tests, Student's and Welch's: each finds too many falls
when the smaller side is the one that varies less, or more, and scores of good agents are nearly
constant until they fall. Sides that do not vary at all have no t-test; the smallest p-value that a
permutation test of so many samples could give stands in, and nothing is ever below it.
"""

from __future__ import annotations

import math
from sys import float_info

from pathgauge.collector.core.evaluations.statistics import RunningStatistics

LEAST_SAMPLES = 5
"""With fewer on a side neither test means anything."""

_NEGLIGIBLE = 1e-9
"""Differences so small beside the means are those of rounding."""


def p_value(
    current: RunningStatistics,
    baseline: RunningStatistics,
    *,
    higher_is_better: bool,
    least_samples: int = LEAST_SAMPLES,
) -> float | None:
    """How likely a change for the worse as large as this is by chance; `None` with fewer than
    `least_samples` on a side.
    """
    if min(current.samples, baseline.samples) < max(least_samples, LEAST_SAMPLES):
        return None
    fall = baseline.mean - current.mean if higher_is_better else current.mean - baseline.mean
    if not math.isfinite(fall) or float_info.max in (current.squares, baseline.squares):
        return None
    rounding = _NEGLIGIBLE * max(abs(current.mean), abs(baseline.mean))
    if abs(fall) <= rounding:
        fall = 0.0
    least = 1 / math.comb(current.samples + baseline.samples, current.samples)
    errors = _student(current, baseline), _welch(current, baseline)
    if min(error for error, _ in errors) <= rounding:
        return least if fall > 0 else 1.0
    return max(least, *(survival(fall / error, freedom) for error, freedom in errors))


def _student(one: RunningStatistics, other: RunningStatistics) -> tuple[float, float]:
    """Standard error and degrees of freedom when both sides vary alike."""
    freedom = one.samples + other.samples - 2
    variance = one.squares / freedom + other.squares / freedom
    return math.sqrt(variance / one.samples + variance / other.samples), freedom


def _welch(one: RunningStatistics, other: RunningStatistics) -> tuple[float, float]:
    """The same when each side varies in its own way."""
    first, second = one.variance / one.samples, other.variance / other.samples
    both = first + second
    if both == 0:
        return 0.0, 1.0
    return math.sqrt(both), 1 / (
        (first / both) ** 2 / (one.samples - 1) + (second / both) ** 2 / (other.samples - 1)
    )


def survival(t: float, freedom: float) -> float:
    """The probability that Student's t with so many degrees of freedom exceeds `t`."""
    tail = 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return tail if t >= 0 else 1 - tail


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized one, of the continued fraction that converges faster."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, 1 - x) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Of the incomplete beta function, by Lentz's method (DLMF 8.17.22)."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = _not_zero(1 + term / c), 1 / _not_zero(1 + term * d)
            value *= c * d
        if abs(c * d - 1) < float_info.epsilon * 4:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > float_info.min else float_info.min
