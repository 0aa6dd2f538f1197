"""All series of a process: which are kept, the streams of agents, and what is stored."""

from __future__ import annotations

import json
import math
from random import Random

import pytest

from pathgauge.collector.core.drift.drift import Drift, SeriesKey
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.policy import HOUR_S, DriftPolicy
from pathgauge.collector.core.drift.registry import MIXED, Drifts
from pathgauge.collector.core.evidence.miss import Miss

MEASURE = Measure(threshold=0.9)
KEY = SeriesKey("planner", "refund", "quality")


def scenario(number: int) -> SeriesKey:
    return KEY._replace(scenario=f"s{number}")


def only(drifts: Drifts) -> Drift:
    (drift,) = drifts.snapshot()
    return drift


@pytest.mark.parametrize(
    "key",
    [
        KEY._replace(scenario=""),
        KEY._replace(scenario=MIXED),
        KEY._replace(agent=MIXED),
    ],
)
def test_scores_without_a_scenario_of_their_own_are_ignored(key: SeriesKey) -> None:
    drifts = Drifts()
    drifts.observe(key, MEASURE, 0.0, 1.0)
    assert drifts.snapshot() == []
    assert drifts.pending() == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_ignored(value: float) -> None:
    drifts = Drifts()
    drifts.observe(KEY, MEASURE, value, 1.0)
    assert len(drifts) == 0


def test_a_series_is_shown_in_the_scale_of_its_metric() -> None:
    drifts = Drifts()
    measure = Measure(0, 4, threshold=3.0)
    for hour in range(10):
        drifts.observe(KEY, measure, 4.0, hour * HOUR_S)
    for hour in range(10, 40):
        drifts.observe(KEY, measure, 1.0, hour * HOUR_S)
    drift = only(drifts)
    assert drift.evidence == drift.adjusted > 365
    assert drift.raised is not None
    assert 10 * HOUR_S < drift.raised < 25 * HOUR_S
    assert drift == Drift(
        key=KEY,
        against="threshold",
        version=None,
        evidence=drift.evidence,
        adjusted=drift.adjusted,
        alarm=True,
        baseline=3.0,
        since=10 * HOUR_S,
        raised=drift.raised,
        samples=30,
        mean=1.0,
        mean_before=4.0,
        episodes=1,
        last=39 * HOUR_S,
    )


def test_a_series_that_is_still_learning_has_no_evidence() -> None:
    drifts = Drifts()
    drifts.observe(KEY, Measure(), 1.0, 0.0)
    drift = only(drifts)
    assert (drift.baseline, drift.evidence, drift.alarm, drift.last) == (None, 0.0, False, None)


def test_a_new_version_is_shown_beside_its_series() -> None:
    drifts = Drifts(DriftPolicy(min_scores=5))
    for hour in range(60):
        drifts.observe(KEY, MEASURE, 1.0, hour * HOUR_S, version="v1" if hour < 50 else "v2")
    by_kind = {drift.against: drift for drift in drifts.snapshot()}
    assert by_kind.keys() == {"threshold", "version"}
    assert by_kind["version"].version == "v2"
    assert by_kind["version"].mean_before == 1.0
    assert by_kind["version"].baseline is not None


def test_scenarios_that_fall_a_little_together_are_found_by_the_stream_of_their_agent() -> None:
    drifts, random = Drifts(), Random(1)
    raised: dict[str, int] = {}
    for hour in range(48):
        for number in range(20):
            measure = Measure(threshold=0.5 + number / 50)
            passed = random.random() < (0.98 if hour < 40 else 0.6) * (0.55 + number / 50)
            drifts.observe(scenario(number), measure, float(passed), hour * HOUR_S + number)
        for drift in drifts.snapshot():
            if drift.alarm:
                raised.setdefault(drift.key.scenario, hour)
    assert 40 <= raised[""] < 46
    assert len(raised) <= 4


def test_a_change_of_the_mix_of_scenarios_is_no_evidence() -> None:
    drifts, random = Drifts(), Random(2)
    easy, hard = Measure(threshold=0.93), Measure(threshold=0.43)
    for minute in range(6000):
        is_easy = random.random() < (0.9 if minute < 3000 else 0.1)
        passed = random.random() < (0.95 if is_easy else 0.45)
        drifts.observe(scenario(is_easy), easy if is_easy else hard, float(passed), minute * 60)
    assert not any(drift.alarm for drift in drifts.snapshot())
    assert {drift.against for drift in drifts.snapshot()} == {"threshold", "scenarios"}


def test_an_agent_with_one_scenario_has_no_stream_of_its_own() -> None:
    drifts = Drifts()
    drifts.observe(KEY, MEASURE, 1.0, 0.0)
    drifts.observe(KEY._replace(metric="other"), MEASURE, 1.0, 0.0)
    drifts.observe(KEY._replace(tenant="b"), MEASURE, 1.0, 0.0)
    assert {drift.against for drift in drifts.snapshot()} == {"threshold"}


def test_evidence_is_adjusted_for_the_number_of_series_that_are_compared() -> None:
    drifts = Drifts()
    for number in range(3):
        drifts.observe(scenario(number)._replace(agent=f"a{number}"), MEASURE, 1.0, 0.0)
    drifts.observe(KEY, Measure(), 1.0, 0.0)
    for hour in range(50):
        drifts.observe(scenario(0)._replace(agent="a0"), MEASURE, 0.0, hour * HOUR_S)
    worst = max(drifts.snapshot(), key=lambda drift: drift.evidence)
    assert worst.adjusted == pytest.approx(worst.evidence / 3)


def test_evidence_is_adjusted_for_each_tenant_apart() -> None:
    drifts = Drifts()
    for number in range(3):
        drifts.observe(KEY._replace(tenant=f"t{number}"), MEASURE, 1.0, 0.0)
    for hour in range(50):
        drifts.observe(KEY._replace(tenant="t0"), MEASURE, 0.0, hour * HOUR_S)
    worst = max(drifts.snapshot(), key=lambda drift: drift.evidence)
    assert worst.adjusted == worst.evidence


def test_the_adjusted_evidence_decides_about_alarms() -> None:
    drifts = Drifts()
    for number in range(50):
        drifts.observe(KEY._replace(agent=f"a{number}"), MEASURE, 1.0, 0.0)
    alarms = []
    for hour in range(30):
        drifts.observe(KEY._replace(agent="a0"), MEASURE, 0.0, hour * HOUR_S)
        worst = max(drifts.snapshot(), key=lambda drift: drift.evidence)
        assert worst.alarm == (worst.adjusted > 365)
        alarms.append((worst.raised is not None, worst.alarm))
    assert {(False, False), (True, False), (True, True)} == set(alarms)


def test_a_canary_is_adjusted_for_the_number_of_versions_that_are_compared() -> None:
    drifts = Drifts()
    for hour in range(100):
        drifts.observe(KEY, MEASURE, 1.0, hour * HOUR_S, version="v1")
    for hour in range(100, 108):
        drifts.observe(KEY, MEASURE, 0.0, hour * HOUR_S, version="v2")
        drifts.observe(KEY, MEASURE, 1.0, hour * HOUR_S, version="v1")
    series, version = drifts.snapshot()
    assert (series.against, version.against) == ("threshold", "version")
    assert version.adjusted == version.evidence > series.evidence == series.adjusted


def test_without_room_the_series_that_was_idle_for_longest_is_dropped_and_counted() -> None:
    drifts = Drifts(max_series=2)
    for now, number in enumerate((1, 2, 1, 3)):
        drifts.observe(scenario(number), MEASURE, 1.0, now)
    assert {drift.key.scenario for drift in drifts.snapshot()} == {"s1", "s3", ""}
    assert (len(drifts), drifts.dropped) == (2, 1)
    rows = dict(drifts.pending())
    assert rows[scenario(2)] is None
    drifts.configure(DriftPolicy(), max_series=1)
    assert (len(drifts), drifts.dropped) == (1, 2)


def test_an_agent_without_series_is_dropped_with_the_last_of_them() -> None:
    drifts = Drifts()
    drifts.observe(scenario(1), MEASURE, 1.0, 0.0)
    drifts.observe(scenario(2), MEASURE, 1.0, 0.0)
    drifts.pending()
    drifts.forget(lambda key: key.scenario == "s1")
    assert dict(drifts.pending()) == {scenario(1): None}
    drifts.forget(lambda key: key.scenario == "s2")
    assert dict(drifts.pending()) == {scenario(2): None, KEY._replace(scenario=""): None}


def test_another_way_of_measuring_starts_a_series_again() -> None:
    drifts = Drifts()
    for hour in range(30):
        drifts.observe(KEY, MEASURE, 0.0, hour * HOUR_S)
    assert only(drifts).alarm
    assert drifts.observe(KEY, Measure(threshold=0.9, fingerprint=2.0), 0.0, 31 * HOUR_S)
    assert not drifts.observe(KEY, Measure(threshold=0.9, fingerprint=2.0), 0.0, 31 * HOUR_S)
    drift = only(drifts)
    assert (drift.alarm, drift.evidence, drift.episodes) == (False, 0.0, 0)


@pytest.mark.parametrize("other", [Measure(threshold=0.9, fingerprint=2.0), Measure(threshold=0.2)])
def test_an_alarm_that_ends_with_another_way_of_measuring_leaves_none_of_its_agent(
    other: Measure,
) -> None:
    drifts = Drifts()
    drifts.observe(scenario(1), MEASURE, 1.0, 0.0)
    for hour in range(30):
        drifts.observe(scenario(0), MEASURE, 0.0, hour * HOUR_S)
    assert {drift.key.scenario for drift in drifts.snapshot() if drift.alarm} == {"s0", ""}
    drifts.observe(scenario(0), other, 0.0, 30 * HOUR_S)
    assert not any(drift.alarm for drift in drifts.snapshot())


def test_another_threshold_applies_from_the_next_value_on() -> None:
    drifts = Drifts()
    drifts.observe(KEY, MEASURE, 0.0, 0.0)
    drifts.observe(KEY, Measure(threshold=0.25), 0.0, HOUR_S)
    assert only(drifts).baseline == 0.25


def test_other_options_apply_to_the_next_value() -> None:
    drifts = Drifts()
    drifts.observe(KEY, MEASURE, 0.0, 0.0)
    drifts.configure(DriftPolicy(evidence_days=1e-6), max_series=10)
    drifts.observe(KEY, MEASURE, 0.0, 60.0)
    assert only(drifts).alarm


def test_what_changed_is_told_while_an_alarm_is_open() -> None:
    drifts, miss = Drifts(), Miss("missing", "search")
    drifts.observe(KEY, MEASURE, 0.0, 0.0, misses=[miss])
    assert drifts.what_changed(KEY) == []
    assert drifts.what_changed(scenario(1)) == []
    for hour in range(1, 30):
        drifts.observe(KEY, MEASURE, 0.0, hour * HOUR_S, misses=[miss])
    assert [row.miss for row in drifts.what_changed(KEY)] == [miss]


def values(drifts: Drifts, random: Random, start: int, hours: int) -> None:
    for hour in range(start, start + hours):
        for number in range(4):
            value = float(random.random() < 0.7)
            version = f"v{hour // 40}"
            now = hour * HOUR_S + number
            drifts.observe(scenario(number), MEASURE, value, now, version=version)


def test_a_restart_changes_nothing() -> None:
    drifts, restarted = Drifts(max_series=3), Drifts(max_series=3)
    values(drifts, Random(1), 0, 100)
    stored = {key: json.dumps(state) for key, state in drifts.pending() if state is not None}
    restarted.restore((SeriesKey(*key), json.loads(text)) for key, text in stored.items())
    assert drifts.pending() == restarted.pending() == []
    values(drifts, Random(2), 100, 20)
    values(restarted, Random(2), 100, 20)
    assert restarted.snapshot() == drifts.snapshot()
    assert restarted.pending() == drifts.pending()


def test_only_what_changed_is_stored_again() -> None:
    drifts = Drifts()
    drifts.observe(scenario(1), MEASURE, 1.0, 0.0)
    drifts.observe(scenario(2), MEASURE, 1.0, 0.0)
    assert len(drifts.pending()) == 3
    drifts.observe(scenario(2), MEASURE, 1.0, 1.0)
    assert [key.scenario for key, _ in drifts.pending()] == ["s2", ""]
    assert drifts.pending() == []


def test_a_lower_limit_after_a_restart_keeps_the_latest_series() -> None:
    drifts, restarted = Drifts(), Drifts(max_series=1)
    for now, number in enumerate((2, 1)):
        drifts.observe(scenario(number), MEASURE, 1.0, now)
    restarted.restore([(key, state) for key, state in drifts.pending() if state is not None])
    assert [drift.key.scenario for drift in restarted.snapshot()] == ["s1"]
    assert dict(restarted.pending()) == {scenario(2): None}
