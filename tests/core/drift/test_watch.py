"""One alarm for each incident."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.drift.policy import DAY_S, DriftPolicy
from pathgauge.collector.core.drift.watch import Watch

POLICY = DriftPolicy()
GAP_S = 36
"""Seconds between two scores: 100 an hour."""


class Course:
    """A watch that gets scores of 0 and 1 at a steady pace."""

    def __init__(self, baseline: float, seed: int = 0) -> None:
        self.watch, self.baseline, self.random, self.now = Watch(), baseline, Random(seed), 1e9

    def run(self, hours: float, mean: float) -> int:
        """Go on for so many hours; returns how often an alarm was raised."""
        raised = 0
        for _ in range(int(hours * 3600 / GAP_S)):
            self.now += GAP_S
            score = float(self.random.random() < mean)
            raised += self.watch.observe(score, self.baseline, self.now, POLICY)
        return raised


def test_a_series_that_stays_below_its_objective_has_one_episode() -> None:
    course = Course(0.99)
    assert course.run(24 * 7, 0.95) == 1
    assert course.watch.episode is not None
    assert course.watch.episodes == 1


def test_an_incident_is_one_episode_from_its_start_to_recovery() -> None:
    course = Course(0.94)
    assert course.run(48, 0.95) == 0
    began = course.now
    assert course.run(24, 0.8) == 1
    episode = course.watch.episode
    assert episode is not None
    assert abs(episode.since - began) < 1800
    assert 0 < episode.raised - began < 3 * 3600
    assert episode.mean == pytest.approx(0.8, abs=0.02)
    assert course.run(12, 0.95) == 0
    assert course.watch.episode is None
    assert course.watch.evidence < 10


def test_the_next_incident_is_another_episode() -> None:
    course = Course(0.94)
    for _ in range(3):
        assert course.run(12, 0.5) == 1
        assert course.run(24, 0.96) == 0
        assert course.watch.episode is None
    assert course.watch.episodes == 3


def test_a_short_recovery_does_not_end_an_episode() -> None:
    course = Course(0.94)
    raised = course.run(12, 0.5) + course.run(0.1, 1.0) + course.run(12, 0.5)
    assert raised == 1
    assert course.watch.episode is not None


def test_an_episode_ends_only_when_scores_are_nearer_to_the_baseline() -> None:
    course = Course(0.9)
    course.run(12, 0.4)
    assert course.run(24, 0.6) == 0
    assert course.watch.episode is not None
    course.run(24, 0.88)
    assert course.watch.episode is None


def evaluations_until_recovery(before: float, fallen: float, baseline: float, seed: int) -> int:
    """After an incident that began at once, with an evaluation every six minutes."""
    random, watch, mean, count = Random(seed), Watch(), fallen, 0
    for number in range(100_000):
        raised = watch.observe(float(random.random() < mean), baseline, number * 360, POLICY)
        if raised:
            mean = before
        elif mean == before:
            count += 1
            if watch.episode is None:
                break
    return count


@pytest.mark.parametrize(
    ("before", "fallen", "baseline", "in_most"),
    [(0.6, 0.5, 0.58, 2500), (0.8, 0.7, 0.78, 1500), (0.95, 0.8, 0.94, 350), (1.0, 0.0, 0.99, 30)],
)
def test_nine_of_ten_incidents_end_soon_after_scores_have_recovered(
    before: float, fallen: float, baseline: float, in_most: int
) -> None:
    counts = [evaluations_until_recovery(before, fallen, baseline, seed) for seed in range(20)]
    assert sorted(counts)[17] <= in_most


def test_an_incident_that_goes_on_is_not_ended_by_chance() -> None:
    ends = 0
    for seed in range(20):
        random, watch, now = Random(seed), Watch(), 0.0
        for _ in range(5000):
            now += 360
            watch.observe(float(random.random() < 0.9), 0.98, now, POLICY)
        ends += watch.episodes - 1
    assert ends <= 2


def test_good_scores_do_not_change_what_is_told_about_the_incident() -> None:
    course = Course(0.94)
    course.run(12, 0.2)
    before = course.watch.change()
    course.run(0.05, 1.0)
    after = course.watch.change()
    assert before is not None
    assert after is not None
    assert after.since == before.since
    assert after.samples <= before.samples + 1
    assert after.mean == pytest.approx(before.mean, abs=0.01)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_told_about_an_incident_counts_all_its_scores(seed: int) -> None:
    course = Course(0.95, seed)
    assert course.run(240, 0.88) == 1
    episode, change = course.watch.episode, course.watch.change()
    assert episode is not None
    assert change is not None
    scores = round((course.now - episode.since) / GAP_S) + 1
    assert 0.99 * scores < change.samples <= scores
    assert change.mean == pytest.approx(0.88, abs=0.01)


def test_a_year_of_silence_is_no_evidence() -> None:
    watch = Watch()
    for day in (0, 400, 800, 1200):
        assert not watch.observe(1.0, 0.94, day * DAY_S, POLICY)
        assert watch.evidence <= 60


def test_perfect_scores_raise_no_alarm_however_rare_they_are() -> None:
    watch, now = Watch(), 0.0
    for _ in range(500):
        now += 30 * DAY_S
        assert not watch.observe(1.0, 0.01, now, POLICY)


def test_the_alarm_comes_at_the_configured_evidence() -> None:
    policy, watch = DriftPolicy(evidence_days=5.0), Watch()
    before = 0.0
    for hour in range(100):
        if watch.observe(0.0, 0.5, hour * 3600, policy):
            break
        before = watch.evidence
    assert before <= 5.0 < watch.evidence


def test_time_that_runs_backwards_has_no_weight() -> None:
    watch, other = Watch(), Watch()
    for now in (5 * DAY_S, 4.97 * DAY_S, 4.99 * DAY_S, 6 * DAY_S):
        watch.observe(0.5, 0.6, now, POLICY)
    for now in (5 * DAY_S, 5 * DAY_S, 5 * DAY_S, 6 * DAY_S):
        other.observe(0.5, 0.6, now, POLICY)
    assert watch.state() == other.state()
    assert watch.last == 6 * DAY_S


def test_time_goes_on_from_where_a_clock_that_was_ahead_is_set_back_to() -> None:
    watch = Watch()
    for now in (5 * DAY_S, 35 * DAY_S, 5 * DAY_S):
        watch.observe(0.6, 0.6, now, POLICY)
    assert watch.last == 5 * DAY_S
    assert watch.evidence == pytest.approx(30)
    watch.observe(0.6, 0.6, 6 * DAY_S, POLICY)
    assert watch.evidence == pytest.approx(31)


def test_one_day_between_scores_weighs_one_day() -> None:
    watch = Watch()
    watch.observe(0.5, 0.5, 0.0, POLICY)
    assert watch.evidence == 0.0
    watch.observe(0.5, 0.5, DAY_S, POLICY)
    assert watch.evidence == 1.0


def test_a_baseline_of_zero_is_never_missed() -> None:
    """Another scenario of the same agent may have such a baseline during an alarm."""
    watch = Watch()
    for at in range(200):
        watch.observe(0.0, 0.5, at * 3600, POLICY)
    assert watch.episode is not None
    recovery = watch.episode.recovery
    watch.observe(0.0, 0.0, 201 * 3600, POLICY)
    assert watch.episode.recovery == recovery


def test_an_incident_of_which_an_earlier_version_knew_less_goes_on() -> None:
    course = Course(0.94)
    course.run(12, 0.5)
    *detector, episode = course.watch.state()
    course.watch = Watch.restored([*detector, [*episode[:7], 7.5]])
    assert course.watch.episode is not None
    assert course.watch.episode.recovery == pytest.approx(7.5)
    course.run(12, 0.5)
    change = course.watch.change()
    assert change is not None
    assert change.samples > 2300


steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.7]), st.just(0.9), st.floats(0, DAY_S), st.just(0)
    ),
    max_size=80,
)


@given(steps, steps)
def test_a_restored_watch_continues_exactly(
    before: list[tuple[float, float, float, int]], after: list[tuple[float, float, float, int]]
) -> None:
    policy, watch, now = DriftPolicy(recovery=5.0), Watch(11.0), 1e9
    for score, baseline, gap, _ in before:
        now += gap
        watch.observe(score, baseline, now, policy)
    restored = Watch.restored(json.loads(json.dumps(watch.state())))
    for score, baseline, gap, _ in after:
        now += gap
        raised = watch.observe(score, baseline, now, policy)
        assert restored.observe(score, baseline, now, policy) == raised
    assert restored.state() == watch.state()
