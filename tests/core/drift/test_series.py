"""One series of scores: its baseline, its alarm, its versions, what changed, and its state."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.policy import DAY_S, HOUR_S, DriftPolicy
from pathgauge.collector.core.drift.series import Bet, Series
from pathgauge.collector.core.evidence.miss import Miss

POLICY = DriftPolicy()
LATENCY = Measure(0, math.inf, higher_is_better=False)
SEARCH = Miss("missing", "search")


class Course:
    """A series that gets values at random times."""

    def __init__(self, measure: Measure, seed: int = 0) -> None:
        self.series, self.random, self.now = Series(measure), Random(seed), 1e9

    def alarm(self) -> bool:
        """Whether an alarm is open."""
        return self.series.watch.episode is not None

    def run(self, days: float, per_hour: float, draw: Callable[[Random], float]) -> int:
        """Go on for so many days; returns how many alarms were raised."""
        before, end = self.series.watch.episodes, self.now + days * DAY_S
        while self.now < end:
            self.now += self.random.expovariate(per_hour / HOUR_S)
            value = draw(self.random)
            misses = (SEARCH,) if value == 0 else ()
            self.series.observe(value, None, self.now, POLICY, misses)
        return self.series.watch.episodes - before


def passing(mean: float) -> Callable[[Random], float]:
    return lambda random: float(random.random() < mean)


def test_a_threshold_that_no_mean_can_reach_raises_no_alarms() -> None:
    course = Course(Measure(threshold=1.0))
    assert course.run(30, 10, passing(0.95)) == 0
    assert course.series.baseline == pytest.approx(0.94, abs=0.015)


def test_scores_that_never_reach_the_threshold_are_one_episode() -> None:
    assert Course(Measure(threshold=0.97)).run(30, 10, passing(0.92)) == 1


def test_a_threshold_needs_no_learning() -> None:
    course = Course(Measure(threshold=0.9))
    assert course.series.baseline == 0.9
    assert course.run(0.5, 10, passing(0.3)) == 1


def test_a_fall_below_the_learned_baseline_is_found_with_its_misses() -> None:
    course = Course(Measure())
    assert course.run(10, 10, passing(0.95)) == 0
    began = course.now
    assert course.run(1, 10, passing(0.6)) == 1
    series = course.series
    change = series.watch.change()
    assert change is not None
    assert change.since == pytest.approx(began, abs=2 * HOUR_S)
    assert change.mean == pytest.approx(0.6, abs=0.1)
    assert series.mean_before == pytest.approx(0.95, abs=0.01)
    (row,) = series.what_changed()
    assert row.miss == SEARCH
    assert row.share == pytest.approx(1.0)
    assert row.rate == pytest.approx(1 - change.mean, abs=0.02)
    assert row.rate_before < 0.1


def test_scores_without_any_miss_count_as_the_time_before() -> None:
    course = Course(Measure())
    course.run(10, 10, passing(1.0))
    assert course.run(1, 10, passing(0.5)) == 1
    (row,) = course.series.what_changed()
    assert row.rate == pytest.approx(0.5, abs=0.2)
    assert row.rate_before < 0.01


def test_an_alarm_that_another_threshold_has_ended_leaves_no_misses_to_the_next_one() -> None:
    course = Course(Measure(threshold=0.9))
    assert course.run(2, 10, passing(0.7)) == 1
    assert course.series.measured_by(Measure(threshold=0.6))
    assert course.series.what_changed() == []
    assert course.run(20, 10, passing(0.7)) == 0
    assert course.run(1, 10, passing(0.2)) == 1
    (row,) = course.series.what_changed()
    assert row.rate == pytest.approx(0.8, abs=0.15)
    assert row.rate_before == pytest.approx(0.3, abs=0.05)


def test_an_incident_does_not_become_the_baseline() -> None:
    course = Course(Measure())
    course.run(10, 10, passing(0.95))
    before = course.series.baseline
    course.run(20, 10, passing(0.5))
    assert course.alarm()
    assert course.series.baseline == pytest.approx(before, abs=0.001)
    course.run(3, 10, passing(0.95))
    assert not course.alarm()
    assert course.series.baseline == pytest.approx(before, abs=0.01)
    assert course.series.what_changed() == []


def test_metrics_of_which_less_is_better() -> None:
    course = Course(Measure(0, 10, higher_is_better=False, threshold=2.0))
    assert course.run(2, 10, lambda random: random.uniform(0, 2)) == 0
    assert course.run(2, 10, lambda random: random.uniform(2, 4)) == 1
    assert course.series.value(0.8) == pytest.approx(2.0)


def test_a_latency_that_doubles_is_found_and_no_other() -> None:
    course = Course(LATENCY)
    assert course.run(14, 10, lambda random: random.lognormvariate(0, 0.6)) == 0
    assert course.series.watch.last is not None
    assert course.run(0.5, 10, lambda random: 2 * random.lognormvariate(0, 0.6)) == 1
    change = course.series.watch.change()
    assert change is not None
    assert change.value == pytest.approx(2 * math.exp(0.18), rel=0.25)
    assert course.series.mean_before == pytest.approx(math.exp(0.18), rel=0.05)


def test_a_week_of_an_incident_is_not_the_week_to_compare_with() -> None:
    course = Course(LATENCY)
    course.run(8, 10, lambda random: random.lognormvariate(0, 0.6))
    before = course.series.mean_before
    course.run(15, 10, lambda random: 3 * random.lognormvariate(0, 0.6))
    assert course.alarm()
    assert course.series.mean_before == before


def test_a_count_with_few_different_values_is_quiet() -> None:
    course = Course(LATENCY)
    assert course.run(21, 10, lambda random: random.choice([3.0, 3.0, 3.0, 4.0])) == 0
    assert course.run(2, 10, lambda random: random.choice([3.0, 4.0, 5.0, 6.0])) == 1


def test_a_daily_pattern_of_latency_raises_no_alarm() -> None:
    course = Course(LATENCY)
    alarms = 0
    for _ in range(14):
        alarms += course.run(14 / 24, 10, lambda random: random.lognormvariate(0, 0.5))
        alarms += course.run(10 / 24, 10, lambda random: random.lognormvariate(0.3, 0.5))
    assert alarms == 0


def test_the_bet_is_on_the_baseline_that_was_known_before_the_value() -> None:
    series = Series(Measure(threshold=0.9))
    assert series.observe(0.25, None, 0.0, POLICY) == Bet(0.25, 0.9)
    assert Series(Measure()).observe(0.25, None, 0.0, POLICY) is None
    assert Series(LATENCY).observe(0.25, None, 0.0, POLICY) is None


def test_another_threshold_starts_the_evidence_again() -> None:
    course = Course(Measure(threshold=0.9))
    course.run(1, 10, passing(0.2))
    assert course.series.measured_by(Measure(threshold=0.9, objective=0.5))
    assert course.alarm()
    assert course.series.measured_by(Measure(threshold=0.1))
    assert not course.alarm()
    assert course.series.watch.evidence == 0.0
    assert course.series.baseline == 0.1


def test_versions_are_compared_if_they_are_known() -> None:
    series, unknown = Series(Measure()), Series(Measure())
    for hour in range(100):
        unknown.observe(1.0, None, hour * HOUR_S, POLICY)
        series.observe(1.0, "v1" if hour < 80 else "v2", hour * HOUR_S, POLICY)
    assert unknown.versions is None
    assert series.versions is not None
    assert (series.versions.newest, series.versions.previous) == ("v2", "v1")


def test_a_clock_that_is_set_back_a_little_counts_no_time_twice() -> None:
    steady, jumping = Series(Measure(threshold=0.5)), Series(Measure(threshold=0.5))
    for now, seen in ((10, 10), (20, 20), (19.97, 20), (19.99, 20), (30, 30)):
        jumping.observe(0.4, "v1", now * DAY_S, POLICY)
        steady.observe(0.4, "v1", seen * DAY_S, POLICY)
    assert jumping.state() == steady.state()
    assert jumping.last == 30 * DAY_S


@pytest.mark.parametrize("threshold", [0.9, None])
def test_a_clock_that_was_a_month_ahead_for_one_score_delays_no_alarm(
    threshold: float | None,
) -> None:
    course = Course(Measure(threshold=threshold))
    course.run(9, 20, passing(0.95))
    course.series.observe(1.0, None, course.now + 30 * DAY_S, POLICY)
    assert course.run(2, 20, passing(0.95)) == 0
    assert course.series.last == course.now
    assert course.run(1, 20, passing(0.0)) == 1
    change = course.series.watch.change()
    assert change is not None
    assert change.since == pytest.approx(course.now - DAY_S, abs=HOUR_S)


QUICK = DriftPolicy(min_scores=5, min_hours=3, evidence_days=3, recovery=3)
steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.25, 1.0, 1.0]),
        st.sampled_from([None, "v1", "v2"]),
        st.sampled_from([1.0, 600.0, HOUR_S, -50.0, DAY_S, -3 * DAY_S]),
        st.lists(st.sampled_from([SEARCH, Miss("argument", "book", "city")]), max_size=2),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(st.sampled_from([Measure(), Measure(threshold=0.6), LATENCY]), steps, steps)
def test_a_restored_series_continues_exactly(
    measure: Measure,
    before: list[tuple[float, str | None, float, list[Miss]]],
    after: list[tuple[float, str | None, float, list[Miss]]],
) -> None:
    series, now = Series(measure), 1.7e9
    for value, version, gap, misses in before:
        now += gap
        series.observe(value, version, now, QUICK, misses)
    restored = Series.restored(json.loads(json.dumps(series.state(), allow_nan=False)))
    assert restored.state() == series.state()
    for value, version, gap, misses in after:
        now += gap
        bet = series.observe(value, version, now, QUICK, misses)
        assert restored.observe(value, version, now, QUICK, misses) == bet
    assert restored.state() == series.state()
    assert restored.mean_before == series.mean_before
    assert restored.what_changed() == series.what_changed()
    assert restored.what_changed(of_version=True) == series.what_changed(of_version=True)


@pytest.mark.slow
@pytest.mark.parametrize("wander", [0.0, 0.015, 0.03])
def test_false_alarms_are_rare_in_years_of_learned_baselines(wander: float) -> None:
    """12 months of 20 scores an hour, whose mean is another one in each hour."""
    alarms = 0
    for seed in range(4):
        course, levels = Course(Measure(), seed), Random(seed)
        for _ in range(90 * 24):
            mean = min(1.0, levels.gauss(0.95, wander))
            alarms += course.run(1 / 24, 20, passing(mean))
    assert alarms <= 1
