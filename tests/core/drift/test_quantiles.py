"""Numbers without a limit as scores: ranks among last week's."""

from __future__ import annotations

import json
import math
from random import Random

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.drift.histogram import MAX_BUCKETS, Histogram, Ranks
from pathgauge.collector.core.drift.policy import DAY_S, HOUR_S, DriftPolicy
from pathgauge.collector.core.drift.quantiles import BASELINE, Quantiles

POLICY = DriftPolicy()
numbers = st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1.0, 1.0, 2.0, 1e-12, -5.0])


def histogram_of(values: list[float]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


@given(st.lists(numbers, min_size=1, max_size=400))
def test_the_mean_rank_of_the_same_numbers_is_one_half(values: list[float]) -> None:
    ranks = histogram_of(values).ranks()
    assert math.fsum(map(ranks.rank, values)) / len(values) == pytest.approx(0.5)


@given(st.lists(numbers, min_size=1, max_size=50), numbers, numbers)
def test_a_larger_number_has_no_lower_rank(values: list[float], one: float, other: float) -> None:
    ranks = histogram_of(values).ranks()
    assert 0 <= ranks.rank(min(one, other)) <= ranks.rank(max(one, other)) <= 1


def test_ranks_are_exact_but_for_numbers_within_two_percent() -> None:
    ranks = histogram_of([1.0, 2.0, 3.0, 4.0]).ranks()
    assert [ranks.rank(number) for number in (0.5, 1.0, 2.5, 4.0, 9.0)] == [
        0.0,
        0.125,
        0.5,
        0.875,
        1.0,
    ]


def test_signs_and_zero_are_kept_apart() -> None:
    ranks = histogram_of([-100.0, -1.0, 0.0, 1.0, 100.0]).ranks()
    assert [ranks.rank(number) for number in (-100.0, -1.0, 0.0, 1.0, 100.0)] == [
        0.1,
        0.3,
        0.5,
        pytest.approx(0.7),
        0.9,
    ]


def test_the_number_of_buckets_is_bounded() -> None:
    values = [sign * 1.05**power for power in range(-14_000, 14_000, 7) for sign in (1, -1)]
    state = histogram_of([*values, 5e-324, 1.7e308, -1.7e308]).state()
    assert MAX_BUCKETS / 4 < len(state[1]) <= MAX_BUCKETS
    assert sum(count for _, count in state[1]) == len(values) + 3


def test_merged_buckets_keep_the_ranks_within_their_width() -> None:
    random = Random(1)
    values = [math.exp(random.uniform(-10, 10)) for _ in range(5000)]
    ranks = histogram_of(values).ranks()
    ordered = sorted(values)
    assert all(abs(ranks.rank(ordered[i]) - i / 5000) < 0.01 for i in range(0, 5000, 100))
    assert all(
        ranks.at(share) == pytest.approx(ordered[int(share * 5000)], rel=0.1)
        for share in (0.1, 0.5, 0.9)
    )


def test_the_number_at_a_rank_is_one_that_was_seen() -> None:
    ranks = histogram_of([1.0, 5.0, 5.0, 5.0, 80.0]).ranks()
    assert [ranks.at(rank) for rank in (0.0, 0.1, 0.5, 1.0)] == [
        pytest.approx(number, rel=0.02) for number in (1.0, 1.0, 5.0, 80.0)
    ]
    assert histogram_of([-3.0, 0.0]).ranks().at(0.2) == pytest.approx(-3.0, rel=0.02)
    assert histogram_of([-3.0, 0.0]).ranks().at(0.9) == 0.0


@given(st.lists(numbers, min_size=1, max_size=400), numbers)
def test_restored_ranks_and_histograms_are_the_same(values: list[float], more: float) -> None:
    histogram = histogram_of(values)
    restored = Histogram.restored(json.loads(json.dumps(histogram.state())))
    histogram.add(more)
    restored.add(more)
    assert restored.state() == histogram.state()
    assert restored.samples == histogram.samples
    ranks = Ranks.restored(json.loads(json.dumps(histogram.ranks().state())))
    assert ranks.state() == histogram.ranks().state()
    assert ranks.rank(more) == histogram.ranks().rank(more)


def week(quantiles: Quantiles, start_day: int, days: int, value: float, per_hour: int = 10) -> None:
    for index in range(days * 24 * per_hour):
        quantiles.add(value, start_day * DAY_S + index * HOUR_S / per_hour, POLICY)


def test_there_are_no_scores_before_24_hours_with_numbers() -> None:
    quantiles = Quantiles()
    for hour in (*([0] * 50), *range(24)):
        quantiles.add(2.0, hour * HOUR_S, POLICY)
        assert quantiles.score(2.0, higher_is_better=False) is None
    quantiles.add(2.0, DAY_S, POLICY)
    assert quantiles.score(2.0, higher_is_better=False) == 0.5


def test_less_or_more_is_better() -> None:
    quantiles = Quantiles()
    week(quantiles, 0, 2, 2.0)
    assert quantiles.score(1.0, higher_is_better=False) == 1.0
    assert quantiles.score(1.0, higher_is_better=True) == 0.0
    assert quantiles.number(0.5, higher_is_better=False) == pytest.approx(2.0, rel=0.02)


def test_numbers_are_compared_with_those_of_the_last_complete_week() -> None:
    quantiles = Quantiles()
    week(quantiles, 0, 7, 2.0)
    week(quantiles, 7, 6, 3.0)
    assert quantiles.score(2.0, higher_is_better=False) == 0.5
    week(quantiles, 13, 2, 3.0)
    assert quantiles.score(2.0, higher_is_better=False) == 1.0
    assert quantiles.score(3.0, higher_is_better=False) == 0.5


def test_a_week_with_few_numbers_lasts_longer() -> None:
    quantiles = Quantiles()
    for day in range(40):
        quantiles.add(2.0, day * DAY_S, POLICY)
    assert quantiles.score(2.0, higher_is_better=False) is None


def test_the_baseline_is_lower_with_few_numbers() -> None:
    quantiles = Quantiles()
    week(quantiles, 0, 1, 2.0, per_hour=3)
    quantiles.add(2.0, DAY_S, POLICY)
    assert 0.38 < quantiles.highest_baseline < 0.42
    week(quantiles, 1, 7, 2.0, per_hour=20)
    assert quantiles.highest_baseline == BASELINE


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, DAY_S)), max_size=50),
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 2 * DAY_S)), max_size=50),
)
def test_restored_quantiles_continue_exactly(
    before: list[tuple[float, float]], after: list[tuple[float, float]]
) -> None:
    policy = DriftPolicy(min_scores=5, min_hours=3)
    quantiles, now = Quantiles(), 1e9
    for value, gap in before:
        now += gap
        quantiles.add(value, now, policy)
    restored = Quantiles.restored(json.loads(json.dumps(quantiles.state())))
    for value, gap in after:
        now += gap
        quantiles.add(value, now, policy)
        restored.add(value, now, policy)
        assert restored.score(value, higher_is_better=False) == quantiles.score(
            value, higher_is_better=False
        )
    assert restored.state() == quantiles.state()
