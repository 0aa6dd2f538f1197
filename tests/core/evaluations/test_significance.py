"""Significance of falls: compared with SciPy, on noise, and on real falls."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from pathgauge.collector.core.evaluations.significance import MIN_SAMPLES, p_value, survival
from pathgauge.collector.core.evaluations.statistics import RunningStatistics, statistics_of
from support.thinning import thinned

Draw = Callable[[Random], float]


def share(right: float) -> Draw:
    """Scores that are 0 or 1."""
    return lambda random: float(random.random() < right)


def steps(random: Random) -> float:
    """Scores like those of an F1 score: mostly 1, else a simple fraction."""
    return random.choice([1, 1, 1, 1, 1, 1, 0.8, 2 / 3, 0.5, 0])


def seconds(random: Random) -> float:
    """Durations, a few of them very long."""
    return random.lognormvariate(1.0, 0.8)


def drawn(draw: Draw, count: int, random: Random) -> RunningStatistics:
    return statistics_of([draw(random) for _ in range(count)])


def rate(
    current: Draw,
    baseline: Draw,
    sizes: tuple[int, int],
    alpha: float,
    *,
    up: bool = True,
    rounds: int = 500,
) -> float:
    """How often a fall is found in `rounds` comparisons."""
    random = Random(f"{sizes} {alpha}")
    found = 0
    for _ in range(rounds):
        p = p_value(
            drawn(current, sizes[0], random), drawn(baseline, sizes[1], random), higher_is_better=up
        )
        found += p is not None and p <= alpha
    return found / rounds


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    [  # scipy.stats.t.sf
        (0.0, 5, 0.5),
        (0.5, 1, 0.35241638234956674),
        (1.7, 4, 0.082177470635025),
        (2.5, 38, 0.008426738860699574),
        (-3.0, 10, 0.9933281724887152),
        (4.25, 17.3, 0.0002607019866582758),
        (12.0, 250.5, 8.179992763557844e-27),
        (0.001, 3, 0.49963244748473046),
        (6.0, 1e6, 9.86924906177215e-10),
        (40.0, 200.0, 1.1243698267601098e-97),
        (-0.7, 8.8, 0.7489943315006664),
        (1e200, 4, 0.0),
    ],
)
def test_the_t_distribution_equals_that_of_scipy(t: float, freedom: float, expected: float) -> None:
    assert survival(t, freedom) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("sizes", thinned([(20, 20), (20, 200), (100, 20), (100, 400)], 2))
@pytest.mark.parametrize(
    "draw",
    [share(0.5), share(0.9), share(0.97), steps],
    ids=["half", "most", "nearly all", "steps"],
)
def test_noise_is_rarely_significant(draw: Draw, sizes: tuple[int, int]) -> None:
    for alpha, most in ((0.05, 0.07), (0.01, 0.018)):
        assert rate(draw, draw, sizes, alpha) <= most


@pytest.mark.parametrize("sizes", [(20, 20), (100, 400)])
def test_noise_in_durations_is_rarely_significant(sizes: tuple[int, int]) -> None:
    assert rate(seconds, seconds, sizes, 0.01, up=False) <= 0.016


@pytest.mark.parametrize(
    ("before", "after", "sizes", "least"),
    [
        (share(0.95), share(0.5), (20, 100), 0.85),
        (share(0.95), share(0.75), (100, 400), 0.95),
        (share(0.9), share(0.7), (100, 100), 0.85),
        (steps, lambda random: 0.75 * steps(random), (50, 200), 0.85),
    ],
    ids=["half of few", "a fifth of many", "a fifth against as many", "a quarter of each score"],
)
def test_a_real_fall_is_found(
    before: Draw, after: Draw, sizes: tuple[int, int], least: float
) -> None:
    assert rate(after, before, sizes, 0.01, rounds=200) >= least


def test_a_rise_is_worse_if_lower_is_better() -> None:
    slower = lambda random: 2 * seconds(random)  # noqa: E731
    assert rate(slower, seconds, (60, 200), 0.01, up=False, rounds=200) >= 0.9
    assert rate(slower, seconds, (60, 200), 0.05, up=True, rounds=200) == 0.0


def test_the_two_directions_are_complements() -> None:
    one, other = statistics_of([0.2, 0.4, 0.5, 0.9, 0.7]), statistics_of([0.1, 0.8, 0.6, 0.5, 0.9])
    p, opposite = (p_value(one, other, higher_is_better=up) for up in (True, False))
    assert p is not None
    assert opposite == pytest.approx(1 - p, abs=0.01)


@pytest.mark.parametrize(
    ("current", "baseline"), [(MIN_SAMPLES - 1, 100), (100, MIN_SAMPLES - 1), (0, 0), (1, 1)]
)
def test_too_few_samples_have_no_p_value(current: int, baseline: int) -> None:
    assert (
        p_value(
            RunningStatistics(current, 0.0),
            RunningStatistics(baseline, 1.0),
            higher_is_better=True,
            min_samples=1,
        )
        is None
    )


@pytest.mark.parametrize(
    ("current", "baseline", "expected"), [(19, 20, None), (20, 19, None), (20, 20, 1.0)]
)
def test_the_minimum_of_samples_can_be_raised(
    current: int, baseline: int, expected: float | None
) -> None:
    assert (
        p_value(
            RunningStatistics(current, 1.0),
            RunningStatistics(baseline, 1.0),
            higher_is_better=True,
            min_samples=20,
        )
        == expected
    )


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (1.0, 1.0, 1.0),
        (1.0, 0.5, 1.0),
        (0.5, 1.0, 1 / 252),  # as many ways there are to choose five of ten
        (1.0 - 1e-12, 1.0, 1.0),  # rounding
    ],
)
def test_constant_scores_have_the_p_value_of_a_permutation_test(
    now: float, before: float, expected: float
) -> None:
    assert (
        p_value(RunningStatistics(5, now), RunningStatistics(5, before), higher_is_better=True)
        == expected
    )


def test_no_p_value_is_below_that_of_a_permutation_test() -> None:
    tight = RunningStatistics(5, 1.0, 1e-4)
    assert p_value(RunningStatistics(5, 0.0, 1e-4), tight, higher_is_better=True) == 1 / 252


def test_scores_with_infinite_variance_have_no_p_value() -> None:
    wild = statistics_of([1e308, 0.0] * 10)
    assert p_value(wild, statistics_of([1.0, 0.0] * 10), higher_is_better=True) is None
