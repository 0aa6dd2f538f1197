"""The interval holds at all times of looking together, and is narrow enough to be useful."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from statistics import median

import pytest

from pathgauge.collector.core.verdicts.confidence import Differences, Interval
from pathgauge.collector.core.verdicts.scale import Scale
from support.releases import Draw, Rollout, passes

SECONDS = Scale(0.0, float("inf"), higher_is_better=False)


def lognormal(random: Random) -> float:
    return random.lognormvariate(1.0, 0.5)


def graded(random: Random) -> float:
    return random.betavariate(4, 1)


EQUAL: dict[str, Rollout] = {
    "always passes": Rollout(passes(1.0), passes(1.0)),
    "nearly always passes": Rollout(passes(0.99), passes(0.99), before=300, each=4),
    "passes": Rollout(passes(0.95), passes(0.95)),
    "passes half the time": Rollout(passes(0.5), passes(0.5)),
    "canary": Rollout(passes(0.9), passes(0.9), before=1_000, each=9),
    "graded": Rollout(graded, graded, before=300),
    "seconds": Rollout(lognormal, lognormal, scale=SECONDS),
}


def interval(numbers: Mapping[float, int], error: float) -> Interval:
    found = Differences()
    for difference, times in numbers.items():
        found.add(difference, times)
    return found.interval(error)


def wrong(rollout: Rollout, runs: int, results: int, difference: float = 0.0) -> int:
    return sum(rollout.is_ever_wrong(Random(seed), results, difference) for seed in range(runs))


def test_without_pairs_nothing_is_known() -> None:
    assert interval({}, 0.05) == (-1.0, 1.0)


def test_the_interval_is_symmetric_and_contains_the_mean() -> None:
    found = interval({-1.0: 10, 0.0: 85, 1.0: 5}, 0.05)
    assert found.low < -0.05 < found.high
    assert interval({1.0: 10, 0.0: 85, -1.0: 5}, 0.05) == (-found.high, -found.low)


def test_the_interval_shrinks_with_the_number_of_pairs_and_grows_with_the_confidence() -> None:
    def width(times: int, error: float) -> float:
        found = interval({-1.0: times, 0.0: 8 * times, 1.0: times}, error)
        return found.high - found.low

    assert width(10, 0.05) > width(100, 0.05) > width(1_000, 0.05)
    assert width(10, 0.001) > width(10, 0.05)


def test_the_last_end_of_the_interval_is_where_the_capital_reaches_the_limit() -> None:
    """All pairs are won: the capital of each bet b is ((1 + b) / (1 + b m)) ** n."""
    low = interval({1.0: 40}, 0.05).low
    bets = (0.02, 0.035, 0.06, 0.10, 0.18, 0.32, 0.56, 0.95)
    capital = sum(((1 + bet) / (1 + bet * low)) ** 40 for bet in bets) / len(bets)
    assert capital == pytest.approx(2 / 0.05)


def test_a_mean_is_refuted_outside_of_the_interval_only() -> None:
    found = Differences()
    found.add(-1.0, 30)
    found.add(0.0, 60)
    low, high = found.interval(0.05)
    refuted = [
        found.refutes(one, 0.05) for one in (low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6)
    ]
    assert refuted == [True, False, False, True]


def test_equal_versions_are_seldom_found_to_differ_in_a_hundred_looks() -> None:
    assert wrong(EQUAL["passes"], 60, 100) <= 3


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("name", EQUAL)
def test_equal_versions_are_found_to_differ_in_at_most_5_percent_of_releases(name: str) -> None:
    """1,000 releases, each looked at after every pair of 500 results."""
    share = wrong(EQUAL[name], 1_000, 500) / 1_000
    print(f"{name}: {share:.1%} of releases had an interval without the true difference")
    assert share <= 0.05


@pytest.mark.slow
def test_a_difference_stays_in_the_interval_in_95_percent_of_releases() -> None:
    assert wrong(Rollout(passes(0.95), passes(0.8)), 1_000, 500, -0.15) <= 50


def test_the_mean_over_scenarios_that_differ_and_change_stays_in_the_interval() -> None:
    """Wins follow losses in long rows: the true mean of the pairs so far is known exactly."""
    missed = 0
    for seed in range(40):
        random, differences, expected = Random(seed), Differences(), 0.0
        for number in range(1, 301):
            win = 0.8 if number // 100 % 2 else 0.1
            differences.add(1.0 if random.random() < win else -1.0)
            expected += 2 * win - 1
            if differences.refutes(expected / number, 0.05):
                missed += 1
                break
    assert missed <= 2


POWER: dict[str, tuple[int, int]] = {
    "side by side": (0, 1),
    "one in ten, 1,000 results before": (1_000, 9),
    "one in ten, none before": (0, 9),
    "1,000 results before, none after": (1_000, 0),
}


def test_a_version_that_fails_far_more_often_is_found_within_fifty_results() -> None:
    rollout = Rollout(passes(0.95), passes(0.6))
    found = [rollout.results_until_worse(Random(seed), 100) or 100 for seed in range(21)]
    assert median(found) <= 50


@pytest.mark.slow
@pytest.mark.parametrize("arrival", POWER)
def test_how_many_results_it_takes_to_notice_a_fall(arrival: str) -> None:
    before, each = POWER[arrival]
    table = {}
    for share, most in ((0.9, 2_000), (0.8, 500), (0.6, 200), (0.0, 50)):
        rollout = Rollout(passes(0.95), passes(share), before, each)
        found = [rollout.results_until_worse(Random(seed), most) or most for seed in range(101)]
        table[share] = median(found), sorted(found)[90]
    text = ", ".join(f"{share}: {half} ({most})" for share, (half, most) in table.items())
    print(f"{arrival}: median (90 % of releases) to {text}")
    assert table[0.8][0] <= 150
    assert table[0.6][0] <= 50
    assert table[0.0][0] <= 15


@pytest.mark.slow
@pytest.mark.parametrize("margin", [0.05, 0.1])
def test_how_many_results_it_takes_to_know_that_a_version_is_not_worse(margin: float) -> None:
    table = {}
    for share in (1.0, 0.99, 0.95, 0.8):
        rollout = Rollout(passes(share), passes(share), 1_000, 9)
        found = [
            rollout.results_until_not_worse(Random(seed), 3_000, margin) or 3_000
            for seed in range(11)
        ]
        table[share] = median(found)
    print(f"margin {margin}: {table}")
    assert table[1.0] < table[0.95] < table[0.8]


@pytest.mark.slow
@pytest.mark.parametrize("slower", [1.0, 1.1, 1.3, 2.0])
def test_how_many_results_it_takes_to_notice_that_answers_take_longer(slower: float) -> None:
    draw: Draw = lambda random: slower * lognormal(random)  # noqa: E731
    rollout = Rollout(lognormal, draw, scale=SECONDS)
    found = [rollout.results_until_worse(Random(seed), 1_000) or 1_000 for seed in range(31)]
    print(f"{slower} times the seconds: median {median(found)}")
    assert slower == 1.0 or median(found) < 1_000
