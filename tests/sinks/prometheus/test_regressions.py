"""Comparisons of recent scores with the version before and with a week ago."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.baselines import DAYS, MAX_VERSIONS
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.durable_harness import DAY_S, DurableHarness
from support.sink_harness import (
    ANSWER,
    NOW,
    Answer,
    Seconds,
    SinkHarness,
    Trajectory,
    Waste,
    with_turns,
)

NAMES = (
    "baseline_score",
    "baseline_samples",
    "regression_score",
    "regression_samples",
    "regression_p_value",
)
WEEK, VERSION = ("planner", "refund", "answer", "week"), ("planner", "refund", "answer", "version")
MIN = 6


@dataclass(frozen=True, slots=True)
class Scaled(Answer):
    """A scorer with an option."""

    by: tuple[float, ...] = ()


def new_harness(*criteria: Criterion, **options: Any) -> DurableHarness:
    return DurableHarness(*criteria, **{"min_samples": MIN, "windows": Windows(size=20), **options})


def publish_scores(harness: SinkHarness, *answer: float, each: float = 10.0, **fields: Any) -> None:
    for score in answer:
        harness.now += each
        harness.publish(score, **fields)


def shown(harness: SinkHarness, labels: tuple[str, ...]) -> dict[str, float]:
    """The series of one comparison, by name; p-values with four digits."""
    series = {name: harness.series(f"pathgauge_{name}") for name in NAMES}
    return {name: round(values[labels], 4) for name, values in series.items() if labels in values}


GOOD, BAD = [1.0, 0.9, 1.0, 0.8, 1.0, 0.9], [0.5, 0.4, 0.6, 0.5, 0.3, 0.4]


def test_the_newest_version_is_compared_with_the_one_before() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD, agent_version="v1")
    assert shown(harness, VERSION) == {}
    publish_scores(harness, *BAD, agent_version="v2")
    expected = {
        "baseline_score": 0.9333,
        "baseline_samples": 6,
        "regression_score": 0.45,
        "regression_samples": 6,
    }
    assert shown(harness, VERSION) == expected | {"regression_p_value": 0.0011}


def test_late_scores_of_the_version_before_do_not_count_for_the_new_one() -> None:
    harness = new_harness()
    for good, bad in zip(GOOD, BAD, strict=True):
        publish_scores(harness, good, agent_version="v1")
        publish_scores(harness, bad, agent_version="v2")
    assert shown(harness, VERSION) | {"regression_p_value": 0} == {
        "baseline_score": 0.9333,
        "baseline_samples": 6,
        "regression_score": 0.45,
        "regression_samples": 6,
        "regression_p_value": 0,
    }


def test_a_version_with_little_traffic_has_a_window_of_its_own() -> None:
    harness = new_harness()
    publish_scores(harness, *BAD, agent_version="canary")
    publish_scores(harness, *GOOD * 10, agent_version="v1")
    publish_scores(harness, *BAD, agent_version="canary", each=0)
    publish_scores(harness, *GOOD * 10, agent_version="v1", each=0)
    newest = shown(harness, VERSION)
    assert (newest["regression_samples"], newest["baseline_samples"]) == (20, 12)
    assert newest["regression_p_value"] > 0.99


@pytest.mark.parametrize(("before", "after"), [(MIN - 1, MIN), (MIN, MIN - 1)])
def test_too_few_samples_on_either_side_have_no_p_value(before: int, after: int) -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD[:before], agent_version="v1")
    publish_scores(harness, *BAD[:after], agent_version="v2")
    assert sorted(shown(harness, VERSION)) == sorted(set(NAMES) - {"regression_p_value"})
    publish_scores(harness, *GOOD[:1], agent_version="v1")
    publish_scores(harness, *BAD[:1], agent_version="v2")
    assert sorted(shown(harness, VERSION)) == sorted(NAMES)


def test_a_version_with_too_few_samples_is_skipped() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD, agent_version="v1")
    publish_scores(harness, 0.1, agent_version="v2")
    publish_scores(harness, *GOOD, agent_version="v3")
    assert shown(harness, VERSION)["baseline_score"] == 0.9333
    publish_scores(harness, *BAD, agent_version="v2")
    assert shown(harness, VERSION)["baseline_score"] == 0.4


def test_a_pinned_version_replaces_the_one_before() -> None:
    harness = new_harness(baseline_versions={"planner": "v1", "writer": "v2"})
    for version, scores in (("v1", GOOD), ("v2", BAD), ("v3", BAD)):
        publish_scores(harness, *scores, agent_version=version)
    assert shown(harness, VERSION)["baseline_score"] == 0.9333
    harness.sink.configure(harness.evaluator, harness.references, {"planner": "v2"})
    assert shown(harness, VERSION)["baseline_score"] == 0.45
    for nothing in ("v3", "v0"):
        harness.sink.configure(harness.evaluator, harness.references, {"planner": nothing})
        assert shown(harness, VERSION) == {}


def test_a_pinned_version_is_kept_among_many_others() -> None:
    harness = new_harness(baseline_versions={"planner": "v0"}, limits=LabelLimits(max_versions=50))
    for number in range(MAX_VERSIONS * 2):
        publish_scores(harness, *GOOD, agent_version=f"v{number}", each=300)
    assert shown(harness, VERSION)["baseline_samples"] == len(GOOD)
    harness.commit()
    assert sum(key[0] == "scores_of_version" for key in harness.rows) == MAX_VERSIONS


def test_scores_without_a_version_are_not_compared_with_versions() -> None:
    harness = new_harness(limits=LabelLimits(max_versions=1))
    publish_scores(harness, *GOOD)
    publish_scores(harness, *GOOD, agent_version="v1")
    publish_scores(harness, *BAD, agent_version="v2")
    assert harness.series("pathgauge_baseline_score") == {}


def test_series_named_other_have_no_baseline() -> None:
    harness = new_harness(limits=LabelLimits(max_agents=1))
    publish_scores(harness, *GOOD, agent="planner", agent_version="v1")
    for version in ("v1", "v2"):
        publish_scores(harness, *BAD, agent="writer", agent_version=version)
        publish_scores(harness, *BAD, scenario_id="unheard of", agent_version=version)
    harness.commit()
    assert {key[1:3] for key in harness.rows if key[0].startswith("scores_of")} == {
        ("planner", "refund")
    }


def test_a_rollback_is_no_regression() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD, agent_version="v1")
    publish_scores(harness, *BAD, agent_version="v2")
    harness.now += 3601
    publish_scores(harness, *GOOD, agent_version="v1")
    assert shown(harness, VERSION) == {}


def test_recent_scores_are_compared_with_the_same_day_of_the_last_week() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD)
    harness.now += 3 * DAY_S
    publish_scores(harness, *BAD)
    assert shown(harness, WEEK) == {}
    harness.now += 4 * DAY_S
    publish_scores(harness, *BAD)
    expected = {
        "baseline_score": 0.9333,
        "baseline_samples": 6,
        "regression_score": 0.45,
        "regression_samples": 6,
    }
    assert shown(harness, WEEK) == expected | {"regression_p_value": 0.0011}
    harness.now += DAY_S
    publish_scores(harness, *BAD)
    assert shown(harness, WEEK) == {}


def test_days_are_those_of_utc() -> None:
    harness = new_harness()
    midnight = NOW // DAY_S * DAY_S + DAY_S
    harness.now = midnight - 1
    publish_scores(harness, 0.0, each=0)
    harness.now = midnight
    publish_scores(harness, 1.0, each=0)
    for at, expected in ((midnight + DAYS * DAY_S - 1, 0.0), (midnight + DAYS * DAY_S, 1.0)):
        harness.now = at
        publish_scores(harness, 0.5, each=0)
        assert shown(harness, WEEK)["baseline_score"] == expected


@pytest.mark.parametrize("scorer", [Waste(), Seconds()])
def test_a_rise_is_a_regression_if_lower_is_better(scorer: Waste | Seconds) -> None:
    harness = new_harness(Criterion("answer", scorer))
    publish_scores(harness, *GOOD, agent_version="v1")
    publish_scores(harness, *BAD, agent_version="v2")
    assert shown(harness, VERSION)["regression_p_value"] > 0.99
    publish_scores(harness, *GOOD, agent_version="v3")
    assert shown(harness, VERSION)["regression_p_value"] == 0.0011


def test_a_stale_window_is_not_compared() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD, agent_version="v1")
    publish_scores(harness, *BAD, agent_version="v2")
    harness.now += 3601
    assert [harness.series(f"pathgauge_{name}") for name in NAMES] == [{}] * len(NAMES)


def test_a_restart_continues_both_comparisons() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD, agent_version="v1")
    harness.now += DAYS * DAY_S
    publish_scores(harness, *GOOD, agent_version="v1")
    publish_scores(harness, *BAD, agent_version="v2")
    harness.commit()
    before = [shown(harness, labels) for labels in (VERSION, WEEK)]
    after = harness.restarted(windows=Windows(size=20))
    assert [shown(after, labels) for labels in (VERSION, WEEK)] == before
    assert [sorted(one) for one in before] == [sorted(NAMES)] * 2
    for one in (harness, after):
        publish_scores(one, *BAD, agent_version="v3")
        publish_scores(one, *GOOD, agent="writer")
        one.commit()
    assert after.exposition() == harness.exposition()
    assert {key: state for key, state in after.rows.items() if key[0].startswith("scores_of")} == {
        key: state for key, state in harness.rows.items() if key[0].startswith("scores_of")
    }


def test_days_that_are_no_longer_compared_are_deleted_from_the_store() -> None:
    harness = new_harness()
    for _ in range(20):
        harness.now += DAY_S
        publish_scores(harness, 1.0, agent_version="v1")
        harness.commit()
    assert sum(key[0] == "scores_of_day" for key in harness.rows) == DAYS + 1


def test_metrics_that_were_idle_for_eight_days_are_deleted_from_the_store() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD, agent_version="v1")
    harness.now += (DAYS + 1) * DAY_S + 1
    publish_scores(harness, 1.0, agent="writer")
    harness.commit()
    assert {key[1] for key in harness.rows if key[0].startswith("scores_of")} == {"writer"}
    assert harness.restarted().series("pathgauge_baseline_score") == {}


def test_an_old_store_is_not_compared() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD, agent_version="v1")
    harness.commit()
    harness.now += 30 * DAY_S
    after = harness.restarted()
    after.commit()
    assert not [key for key in after.rows if key[0].startswith("scores_of")]


def test_metrics_beyond_the_limit_are_counted_and_have_no_baseline() -> None:
    harness = new_harness(limits=LabelLimits(max_series=2, idle_s=60))
    for agent in ("a", "b", "c"):
        publish_scores(harness, 1.0, agent=agent, agent_version="v1", each=120)
    harness.commit()
    assert len([key for key in harness.rows if key[0] == "scores_of_day"]) == 2
    assert harness.series("pathgauge_series_overflow_total")[("baselines",)] == 1
    harness.now += DAY_S + 1
    publish_scores(harness, 1.0, agent="d")
    harness.commit()
    assert {key[1] for key in harness.rows if key[0].startswith("scores_of")} == {"d"}


TENANTS = frozenset({"acme", "umbrella"})


def baselines_kept(harness: DurableHarness) -> set[tuple[str, ...]]:
    """Tenant and agent of each metric with a baseline."""
    harness.commit()
    return {key[1:3] for key in harness.rows if key[0] == "scores_of_day"}


def crowd_of_baselines(total: int) -> DurableHarness:
    """Metrics of two tenants, of which the first came first with many."""
    limits = LabelLimits(max_series_total=total, tenants=TENANTS, idle_s=60)
    harness = new_harness(limits=limits, tenants=True)
    for tenant, agents in (("acme", "abcdef"), ("umbrella", "abc")):
        for agent in agents:
            publish_scores(harness, 1.0, tenant=tenant, agent=agent, each=120)
    return harness


def test_baselines_of_all_tenants_have_a_common_limit_that_no_tenant_can_use_up() -> None:
    harness = crowd_of_baselines(8)
    assert baselines_kept(harness) == {
        *[("acme", agent) for agent in "abcdef"],
        *[("umbrella", agent) for agent in "ab"],
    }
    assert harness.series("pathgauge_series_overflow_total")[("baselines",)] == 1


def test_an_idle_baseline_of_a_tenant_makes_room_for_that_of_another() -> None:
    harness = crowd_of_baselines(8)
    harness.now += DAY_S - 7 * 120
    publish_scores(harness, 1.0, tenant="umbrella", agent="c")
    assert baselines_kept(harness) == {
        *[("acme", agent) for agent in "cdef"],
        *[("umbrella", agent) for agent in "abc"],
    }


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    ("lower", "kept"),
    [
        ({"max_series_total": 4}, {"umbrella": "abc", "acme": "f"}),
        ({"max_series": 2}, {"umbrella": "bc", "acme": "ef"}),
    ],
)
def test_of_a_lower_limit_the_baselines_that_were_scored_last_are_kept(
    lower: dict[str, int], kept: dict[str, str], restart: bool
) -> None:
    harness = crowd_of_baselines(10)
    assert len(baselines_kept(harness)) == 9
    limits = LabelLimits(tenants=TENANTS, idle_s=60, **lower)
    if restart:
        harness = harness.restarted(limits=limits)
    else:
        harness.sink.configure(harness.evaluator, harness.references, limits=limits)
    assert baselines_kept(harness) == {
        (tenant, agent) for tenant, agents in kept.items() for agent in agents
    }


def test_scores_against_another_reference_are_not_compared() -> None:
    needy, easy = Criterion("trajectory", Trajectory(), 0.5), ANSWER
    harness = new_harness(needy, easy, references=with_turns(Reference("refund", ())))
    publish_scores(harness, *GOOD, agent_version="v1")
    harness.references = ReferenceSet(
        [Reference("refund", (ReferenceTurn(user_input="new"),), version="2")]
    )
    harness.sink.configure(harness.evaluator, harness.references)
    publish_scores(harness, *GOOD[:3], agent_version="v1")
    assert harness.series("pathgauge_baseline_score") == {}
    publish_scores(harness, *BAD, agent_version="v2")
    assert harness.series("pathgauge_baseline_samples") == {
        VERSION: 9,
        ("planner", "refund", "trajectory", "version"): 3,
    }


def test_thresholds_do_not_change_comparisons() -> None:
    harness = new_harness(Criterion("trajectory", Trajectory(), 0.5))
    publish_scores(harness, *GOOD, agent_version="v1")
    harness.references = ReferenceSet(
        [Reference("refund", (ReferenceTurn(),), version="2", criteria={"trajectory": 0.9})]
    )
    harness.evaluator = Evaluator((Criterion("trajectory", Trajectory(), 0.9),))
    harness.sink.configure(harness.evaluator, harness.references)
    publish_scores(harness, *BAD, agent_version="v2")
    assert harness.series("pathgauge_baseline_samples") == {
        ("planner", "refund", "trajectory", "version"): 6
    }


@pytest.mark.parametrize("scorer", [Waste(), Scaled((1.0, 0.5))])
def test_another_scorer_or_other_options_start_a_new_baseline(scorer: Waste | Scaled) -> None:
    harness = new_harness(Criterion("answer", Scaled((1.0,))))
    publish_scores(harness, *GOOD, agent_version="v1")
    harness.evaluator = Evaluator((Criterion("answer", scorer),))
    harness.sink.configure(harness.evaluator, harness.references)
    publish_scores(harness, *BAD, agent_version="v2")
    assert harness.series("pathgauge_baseline_score") == {}


def test_tenants_are_not_compared_with_each_other() -> None:
    harness = new_harness(tenants=True)
    publish_scores(harness, *GOOD, agent_version="v1", tenant="acme")
    publish_scores(harness, *BAD, agent_version="v2", tenant="umbrella")
    assert harness.series("pathgauge_baseline_score") == {}
    publish_scores(harness, *BAD, agent_version="v2", tenant="acme")
    assert set(harness.series("pathgauge_baseline_score")) == {("acme", *VERSION)}


def test_a_revision_changes_the_window_and_not_the_baseline() -> None:
    harness = new_harness()
    publish_scores(harness, *GOOD[:-1], agent_version="v1")
    earlier = harness.publish(0.5, agent_version="v1")
    harness.revise(earlier, 0.0)
    publish_scores(harness, *BAD[:-1], agent_version="v2")
    earlier = harness.publish(0.5, agent_version="v2")
    harness.revise(earlier, 1.0)
    assert [shown(harness, VERSION)[name] for name in ("baseline_score", "regression_score")] == [
        0.8667,
        0.55,
    ]


def test_noise_over_many_releases_rarely_looks_like_a_regression() -> None:
    random = Random(7)
    p_values: list[float] = []
    harness = SinkHarness(min_samples=20, windows=Windows(size=50))
    for release in range(30):
        for _ in range(50):
            harness.now += 20
            harness.publish(float(random.random() < 0.9), agent_version=f"v{release}")
        p_values += harness.series("pathgauge_regression_p_value").values()
    assert len(p_values) == 29
    assert sum(p <= 0.01 for p in p_values) <= 1
