"""The newest version of an agent against the one before it."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.drift.policy import HOUR_S, DriftPolicy
from pathgauge.collector.core.drift.versions import MAX_VERSIONS, Versions
from pathgauge.collector.core.evidence.miss import Miss

POLICY = DriftPolicy()
SEARCH = Miss("missing", "search")


class Rollout:
    """Versions that get scores at a steady pace."""

    def __init__(self, seed: int = 0) -> None:
        self.versions, self.random, self.now = Versions(), Random(seed), 1e9
        self.pinned: str | None = None

    def run(self, hours: float, per_hour: float, **means: float) -> None:
        """Scores for each version, with its mean."""
        for _ in range(int(hours * per_hour)):
            self.now += HOUR_S / per_hour
            for version, mean in means.items():
                score = float(self.random.random() < mean)
                misses = () if score else (SEARCH,)
                self.versions.observe(
                    version, score, self.now, POLICY, misses=misses, pinned=self.pinned
                )

    def canary(self, hours: int, **means: float) -> None:
        """Of forty scores an hour, v2 gets ten."""
        for _ in range(hours * 10):
            self.run(0.075, 40, v1=means["v1"])
            self.run(0.025, 40, v2=means["v2"])

    def compared(self) -> tuple[str | None, str | None]:
        """The newest version and the one that it is compared with."""
        return self.versions.newest, self.versions.previous

    def alarms(self) -> int:
        """So many were raised about the newest version."""
        return self.versions.watch.episodes


def test_a_single_version_is_compared_with_nothing() -> None:
    rollout = Rollout()
    rollout.run(100, 10, v1=0.95)
    assert rollout.versions.newest == "v1"
    assert rollout.versions.previous is None
    assert rollout.versions.baseline is None


def test_a_worse_canary_is_found_beside_the_version_that_it_replaces() -> None:
    rollout = Rollout()
    rollout.run(100, 30, v1=0.95)
    rollout.run(12, 10, v1=0.95, v2=0.8)
    versions = rollout.versions
    assert (versions.newest, versions.previous) == ("v2", "v1")
    assert versions.baseline == pytest.approx(0.935, abs=0.015)
    assert versions.mean_before == pytest.approx(0.95, abs=0.015)
    assert versions.watch.episode is not None


def test_a_pinned_version_stays_the_one_that_others_are_compared_with() -> None:
    rollout = Rollout()
    rollout.pinned = "v1"
    rollout.run(60, 30, v1=0.95)
    rollout.run(60, 30, v2=0.94)
    rollout.run(60, 30, v3=0.93)
    assert rollout.compared() == ("v3", "v1")
    assert rollout.versions.mean_before == pytest.approx(0.95, abs=0.015)


def test_an_alarm_against_a_version_that_was_pinned_meanwhile_has_its_own_misses() -> None:
    rollout = Rollout()
    for version in ("v1", "v2"):
        rollout.run(60, 30, **{version: 0.9})
    rollout.run(30, 10, v2=0.9, v3=0.5)
    assert rollout.alarms() == 1
    rollout.pinned = "v1"
    rollout.run(60, 30, v1=0.9)
    assert rollout.compared() == ("v3", "v1")
    while not rollout.alarms():
        rollout.run(0.1, 10, v3=0.5)
    change = rollout.versions.watch.change()
    assert change is not None
    (row,) = rollout.versions.misses.changes()
    assert row.rate == pytest.approx(1 - change.mean)
    assert row.rate_before == pytest.approx(0.1, abs=0.05)


def test_a_version_that_is_pinned_later_is_compared_with_as_soon_as_it_has_scores_again() -> None:
    rollout = Rollout()
    for version in ("v1", "v2", "v3"):
        rollout.run(60, 30, **{version: 0.5})
    assert rollout.compared() == ("v3", "v2")
    rollout.pinned = "v1"
    rollout.run(60, 30, v3=0.5)
    assert rollout.compared() == ("v3", None)
    rollout.run(60, 30, v1=0.95, v3=0.5)
    assert rollout.compared() == ("v3", "v1")
    assert rollout.versions.watch.episode is not None


def test_the_newest_version_is_not_compared_with_itself() -> None:
    rollout = Rollout()
    rollout.run(60, 30, v1=0.95)
    rollout.pinned = "v2"
    rollout.run(60, 30, v2=0.5)
    assert rollout.versions.previous == "v1"


def test_a_version_as_good_as_the_one_before_raises_no_alarm() -> None:
    for seed in range(5):
        rollout = Rollout(seed)
        rollout.run(60, 30, v1=0.95)
        rollout.run(60, 10, v2=0.95)
        assert rollout.versions.watch.episodes == 0


def test_a_rollout_starts_with_some_evidence() -> None:
    rollout = Rollout()
    rollout.run(1, 1, v1=0.95)
    rollout.run(1, 1, v2=0.95)
    assert rollout.versions.watch.evidence == POLICY.version_head_days


def test_a_version_with_few_scores_is_skipped() -> None:
    rollout = Rollout()
    rollout.run(60, 10, v1=0.9)
    rollout.run(5, 10, v2=0.1)
    rollout.run(5, 10, v3=0.9)
    assert rollout.compared() == ("v3", "v1")


def test_a_version_that_was_found_to_be_worse_is_no_baseline() -> None:
    rollout = Rollout()
    rollout.run(60, 10, v1=0.95)
    rollout.run(60, 10, v2=0.95)
    rollout.run(60, 10, v2=0.3)
    rollout.run(60, 10, v3=0.3)
    assert rollout.versions.previous == "v1"
    assert rollout.versions.watch.episode is not None


def test_without_enough_scores_the_version_before_goes_on_to_learn() -> None:
    rollout = Rollout()
    rollout.run(5, 10, v1=0.95)
    rollout.run(5, 10, v2=0.95)
    assert rollout.versions.baseline is None
    rollout.run(30, 10, v1=0.95)
    assert rollout.versions.baseline is not None


def test_an_incident_long_after_a_release_is_not_blamed_on_it() -> None:
    rollout = Rollout()
    rollout.run(60, 30, v1=0.95)
    rollout.run(24 * 30, 10, v2=0.95)
    assert rollout.compared() == ("v2", None)
    rollout.run(48, 10, v2=0.6)
    assert rollout.versions.watch.episodes == 0


def test_a_version_with_few_scores_is_compared_until_it_has_a_baseline_of_its_own() -> None:
    rollout = Rollout()
    rollout.run(60, 30, v1=0.95)
    rollout.run(24 * 8, 0.25, v2=0.95)
    assert rollout.compared() == ("v2", "v1")
    rollout.run(24 * 8, 0.25, v2=0.95)
    assert rollout.compared() == ("v2", None)


def test_an_open_alarm_about_a_version_outlasts_the_comparison() -> None:
    rollout = Rollout()
    rollout.run(60, 30, v1=0.95)
    rollout.run(24 * 2, 10, v2=0.95)
    rollout.run(24 * 10, 10, v2=0.6)
    assert (rollout.compared(), rollout.alarms()) == (("v2", "v1"), 1)
    rollout.run(24 * 3, 10, v2=0.95)
    assert (rollout.compared(), rollout.alarms()) == (("v2", None), 1)


def test_a_tool_that_breaks_for_both_versions_is_not_blamed_on_the_newest() -> None:
    for seed in range(5):
        rollout = Rollout(seed)
        rollout.run(60, 30, v1=0.95)
        rollout.canary(20, v1=0.95, v2=0.95)
        rollout.canary(30, v1=0.6, v2=0.6)
        assert rollout.alarms() == 0
        rollout.canary(20, v1=0.95, v2=0.6)
        assert rollout.alarms() == 1


def test_a_version_that_begins_during_an_incident_of_the_one_before_is_not_blamed() -> None:
    rollout = Rollout()
    rollout.run(60, 30, v1=0.95)
    rollout.run(24 * 5, 10, v2=0.95)
    rollout.run(24, 10, v2=0.6)
    rollout.run(24, 10, v3=0.6)
    assert (rollout.versions.previous, rollout.versions.watch.episodes) == ("v2", 0)


def test_an_older_version_that_comes_back_is_not_the_newest() -> None:
    rollout = Rollout()
    rollout.run(60, 10, v1=0.95)
    rollout.run(60, 10, v2=0.95)
    rollout.run(60, 10, v3=0.95)
    rollout.run(60, 10, v1=0.1)
    assert rollout.compared() == ("v3", "v2")
    assert rollout.versions.watch.episodes == 0


def test_so_many_versions_are_remembered() -> None:
    versions = Versions()
    for number in range(50):
        versions.observe(str(number), 1.0, 0.0, POLICY)
    assert versions.state()[0] == [str(number) for number in range(50 - MAX_VERSIONS, 50)]


steps = st.lists(
    st.tuples(st.sampled_from(["v1", "v1", "v2", "v3"]), st.sampled_from([0.0, 1.0, 1.0, 0.5])),
    max_size=200,
)


@given(steps, steps)
def test_restored_versions_continue_exactly(
    before: list[tuple[str, float]], after: list[tuple[str, float]]
) -> None:
    policy = DriftPolicy(min_scores=5, min_hours=3, evidence_days=20, version_days=0.5)
    versions, now = Versions(), 1e9
    for version, score in before:
        now += 1000
        versions.observe(version, score, now, policy)
    restored = Versions.restored(json.loads(json.dumps(versions.state())))
    for version, score in after:
        now += 1000
        versions.observe(version, score, now, policy)
        restored.observe(version, score, now, policy)
    assert restored.state() == versions.state()
