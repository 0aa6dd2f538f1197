"""Tests whether recent scores are significantly worse than earlier ones.

The p-value is one-sided: the probability of a change for the worse of at least this size if nothing
changed. It is the larger p-value of Student's and Welch's t-test. Either test alone raises too many
false alarms when the smaller sample varies less (Student) or more (Welch) than the larger one, and
the scores of good agents are nearly constant until they fall.

If neither sample varies, the t-test is undefined. The result is then the smallest p-value that a
permutation test with this many samples could give; no result is ever below it.
"""

from __future__ import annotations

import math
from sys import float_info

from pathgauge.collector.core.evaluations.statistics import RunningStatistics

MIN_SAMPLES = 5
"""With fewer samples on either side, the tests are meaningless."""

_NEGLIGIBLE = 1e-9
"""Relative differences up to this size are rounding errors."""


def p_value(
    current: RunningStatistics,
    baseline: RunningStatistics,
    *,
    higher_is_better: bool,
    min_samples: int = MIN_SAMPLES,
) -> float | None:
    """The probability that a change for the worse of this size is chance. `None` with fewer than
    `min_samples` samples on either side, or if a statistic is not finite.
    """
    if min(current.samples, baseline.samples) < max(min_samples, MIN_SAMPLES):
        return None
    fall = baseline.mean - current.mean if higher_is_better else current.mean - baseline.mean
    if not math.isfinite(fall) or float_info.max in (current.squares, baseline.squares):
        return None
    rounding = _NEGLIGIBLE * max(abs(current.mean), abs(baseline.mean))
    if abs(fall) <= rounding:
        fall = 0.0
    smallest = 1 / math.comb(current.samples + baseline.samples, current.samples)
    errors = _student(current, baseline), _welch(current, baseline)
    if min(error for error, _ in errors) <= rounding:
        return smallest if fall > 0 else 1.0
    return max(smallest, *(survival(fall / error, freedom) for error, freedom in errors))


def _student(one: RunningStatistics, other: RunningStatistics) -> tuple[float, float]:
    """Standard error and degrees of freedom, assuming equal variances."""
    freedom = one.samples + other.samples - 2
    variance = one.squares / freedom + other.squares / freedom
    return math.sqrt(variance / one.samples + variance / other.samples), freedom


def _welch(one: RunningStatistics, other: RunningStatistics) -> tuple[float, float]:
    """Standard error and degrees of freedom, assuming unequal variances."""
    first, second = one.variance / one.samples, other.variance / other.samples
    both = first + second
    if both == 0:
        return 0.0, 1.0
    inverse = (first / both) ** 2 / (one.samples - 1) + (second / both) ** 2 / (other.samples - 1)
    return math.sqrt(both), 1 / inverse


def survival(t: float, freedom: float) -> float:
    """The probability that Student's t with `freedom` degrees of freedom exceeds `t`."""
    tail = 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return tail if t >= 0 else 1 - tail


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by the continued fraction that converges faster."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, 1 - x) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22)."""
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
