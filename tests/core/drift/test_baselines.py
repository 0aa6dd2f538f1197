"""What a baseline is learned from, and how it moves."""

from __future__ import annotations

import json
import math
from random import Random

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.drift.baseline import Baseline, learned, lower_bound
from pathgauge.collector.core.drift.daily_scores import DailyScores, Totals
from pathgauge.collector.core.drift.policy import DAY_S, HOUR_S, DriftPolicy

POLICY = DriftPolicy()


def fill(
    baseline: Baseline, hours: int, per_hour: int, mean: float, *, start: int = 0, swing: float = 0
) -> None:
    """Scores of 0 and 1 in each of so many hours, with exactly this mean in every other hour, and
    higher and lower by `swing` in turns.
    """
    for hour in range(start, start + hours):
        ones = round(per_hour * (mean + (swing if hour % 2 else -swing)))
        for index in range(per_hour):
            at = hour * HOUR_S + index * HOUR_S / per_hour
            baseline.add(float(index < ones), at, POLICY)


def close(baseline: Baseline, hour: int) -> float | None:
    """The baseline at the beginning of an hour."""
    baseline.add(1.0, hour * HOUR_S, POLICY)
    return baseline.value


def test_there_is_no_baseline_before_24_hours_with_traffic() -> None:
    baseline = Baseline()
    fill(baseline, 23, 100, 0.95)
    assert close(baseline, 100) is None
    assert close(baseline, 101) is not None


def test_there_is_no_baseline_before_50_scores() -> None:
    baseline = Baseline()
    fill(baseline, 49, 1, 1.0)
    assert close(baseline, 60) is None
    assert close(baseline, 61) is not None


def test_it_is_below_the_mean_by_the_margin_if_the_mean_is_well_known() -> None:
    baseline = Baseline()
    fill(baseline, 24, 1000, 0.95)
    assert close(baseline, 24) == pytest.approx(0.94)


def test_it_is_a_lower_bound_of_the_mean_if_there_are_few_scores() -> None:
    baseline = Baseline()
    fill(baseline, 30, 10, 0.9)
    assert close(baseline, 30) == pytest.approx(lower_bound(300, 0.9))
    assert lower_bound(300, 0.9) < 0.87


def test_variation_between_hours_lowers_it() -> None:
    baseline = Baseline()
    fill(baseline, 190, 100, 0.9, swing=0.08)
    assert close(baseline, 190) == pytest.approx(0.9 - 3 * 0.08, abs=0.03)


def test_chance_is_not_taken_for_variation_between_hours() -> None:
    for seed in range(5):
        random, scores = Random(seed), DailyScores()
        for index in range(100 * 100):
            scores.advance(index * HOUR_S / 100, POLICY)
            scores.add(float(random.random() < 0.95))
        assert scores.totals().deviation_of_hours < 0.01


def test_one_score_an_hour_tells_nothing_about_hours() -> None:
    totals = Totals()
    for hour in range(100):
        score = float(hour % 5 > 0)
        totals = totals.plus(Totals(1, 1, score, score, score, 1))
    assert totals.deviation_of_hours == 0.0


def test_it_follows_a_rise_at_once() -> None:
    baseline = Baseline()
    fill(baseline, 24, 200, 0.8)
    assert close(baseline, 24) == pytest.approx(0.785, abs=0.002)
    fill(baseline, 24 * 9, 20, 0.95, start=24 + 1)
    assert close(baseline, 24 * 11) == pytest.approx(0.94, abs=0.003)


def test_it_follows_a_decline_by_one_hundredth_a_week() -> None:
    baseline = Baseline()
    fill(baseline, 24 * 7, 20, 0.95)
    before = close(baseline, 24 * 7)
    fill(baseline, 24 * 14, 20, 0.5, start=24 * 7 + 1)
    after = close(baseline, 24 * 21)
    assert before is not None
    assert after is not None
    assert before - after == pytest.approx(0.02, abs=0.001)


def test_the_time_of_an_alarm_does_not_let_it_fall() -> None:
    baseline = Baseline()
    fill(baseline, 24 * 7, 100, 0.95)
    before = close(baseline, 24 * 7)
    baseline.hold(24 * 100 * HOUR_S)
    fill(baseline, 30, 100, 0.5, start=24 * 100)
    assert before is not None
    assert close(baseline, 24 * 100 + 30) == pytest.approx(before, abs=0.002)


def test_an_early_lull_does_not_remove_the_baseline() -> None:
    baseline = Baseline()
    fill(baseline, 48, 100, 0.95)
    before = close(baseline, 48)
    assert close(baseline, 24 * 60) == before
    assert close(baseline, 24 * 60 + 1) == before


@pytest.mark.parametrize(("per_hour", "days"), [(1, 28), (15, 7)])
def test_scores_are_kept_for_7_days_and_longer_only_until_there_are_enough(
    per_hour: int, days: int
) -> None:
    baseline = Baseline()
    fill(baseline, 24 * 35, per_hour, 1.0)
    close(baseline, 24 * 35)
    kept = baseline.scores.ended_hours()
    assert days * 24 <= kept.hours <= (days + 1) * 24
    assert kept.samples == kept.hours * per_hour


def test_the_mean_before_leaves_out_the_latest_scores() -> None:
    baseline = Baseline()
    for at, score in enumerate([1.0, 0.8, 0.9, 0.1, 0.2, 0.3]):
        baseline.add(score, at, POLICY)
    assert baseline.mean_before(3, 0.2) == pytest.approx(0.9)
    assert baseline.mean_before(6, 0.55) is None


def test_time_that_runs_backwards_counts_as_the_same_hour() -> None:
    scores = DailyScores()
    for hour in (10, 3, 11):
        scores.advance(hour * HOUR_S, POLICY)
        scores.add(1.0)
    assert scores.totals().hours == 2
    assert scores.totals().samples == 3


@given(st.floats(1, 1e6), st.floats(0, 1))
def test_the_lower_bound_is_below_the_mean_and_rises_with_more_scores(
    samples: float, mean: float
) -> None:
    assert 0 <= lower_bound(samples, mean) <= lower_bound(2 * samples, mean) <= mean


def test_the_lower_bound_of_perfect_scores_is_the_exact_one() -> None:
    """After n perfect scores, a mean p has the probability p^n, which is 2 % at the bound."""
    assert lower_bound(100, 1.0) == pytest.approx(0.02 ** (1 / 100))


def test_a_baseline_of_nothing_but_zeros_is_zero() -> None:
    assert learned(Totals(24, 100, 0.0, 0.0, 0.0, 500), 0.01) == 0.0


values = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 3 * DAY_S)), max_size=150)


@given(values, values)
def test_a_restored_baseline_continues_exactly(
    before: list[tuple[float, float]], after: list[tuple[float, float]]
) -> None:
    baseline, now = Baseline(), 1.7e9
    for score, gap in before:
        now += gap
        baseline.add(score, now, POLICY)
    restored = Baseline.restored(json.loads(json.dumps(baseline.state())))
    for score, gap in after:
        now += gap
        baseline.add(score, now, POLICY)
        restored.add(score, now, POLICY)
    assert restored.state() == baseline.state()


def test_sums_over_days_equal_the_analysis_of_variance_over_hours() -> None:
    random, scores = Random(4), DailyScores()
    hours: dict[int, list[float]] = {}
    for hour in range(100):
        level = random.uniform(0.3, 0.7)
        for index in range(random.randint(2, 60)):
            score = level + random.uniform(-0.3, 0.3)
            scores.advance(hour * HOUR_S + index, POLICY)
            scores.add(score)
            hours.setdefault(hour, []).append(score)
    samples = sum(map(len, hours.values()))
    mean = sum(map(sum, hours.values())) / samples
    means = {hour: sum(some) / len(some) for hour, some in hours.items()}
    within = sum((score - means[hour]) ** 2 for hour, some in hours.items() for score in some)
    between = sum(len(some) * (means[hour] - mean) ** 2 for hour, some in hours.items())
    noise = within / (samples - 100)
    weight = samples - sum(len(some) ** 2 for some in hours.values()) / samples
    deviation = math.sqrt((between - noise * 99) / weight)
    assert scores.totals().deviation_of_hours == pytest.approx(deviation)
    assert deviation == pytest.approx(0.4 / math.sqrt(12), abs=0.02)
