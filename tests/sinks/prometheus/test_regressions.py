"""Recent scores beside those of the version before and of a week ago, as series."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.baselines import DAYS, MAX_VERSIONS
from pathgauge.collector.sinks.prometheus.labels import LabelLimits
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.durable_sink import DAY_S, Durable
from support.sink_bench import ANSWER, NOW, Answer, Bench, Seconds, Trajectory, Waste, with_turns

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


def bench(*criteria: Criterion, **options: Any) -> Durable:
    return Durable(*criteria, **{"min_samples": MIN, "windows": Windows(size=20), **options})


def say(on: Bench, *said: float, each: float = 10.0, **fields: Any) -> None:
    for score in said:
        on.now += each
        on.publish(score, **fields)


def shown(on: Bench, labels: tuple[str, ...]) -> dict[str, float]:
    """All that is exported of one comparison, by the name of the series; p-values in four digits."""
    series = {name: on.series(f"pathgauge_{name}") for name in NAMES}
    return {name: round(values[labels], 4) for name, values in series.items() if labels in values}


GOOD, BAD = [1.0, 0.9, 1.0, 0.8, 1.0, 0.9], [0.5, 0.4, 0.6, 0.5, 0.3, 0.4]


def test_the_newest_version_is_compared_with_the_one_before() -> None:
    on = bench()
    say(on, *GOOD, agent_version="v1")
    assert shown(on, VERSION) == {}
    say(on, *BAD, agent_version="v2")
    expected = {
        "baseline_score": 0.9333,
        "baseline_samples": 6,
        "regression_score": 0.45,
        "regression_samples": 6,
    }
    assert shown(on, VERSION) == expected | {"regression_p_value": 0.0011}


def test_scores_of_the_version_before_that_still_come_are_no_scores_of_the_new_one() -> None:
    on = bench()
    for good, bad in zip(GOOD, BAD, strict=True):
        say(on, good, agent_version="v1")
        say(on, bad, agent_version="v2")
    assert shown(on, VERSION) | {"regression_p_value": 0} == {
        "baseline_score": 0.9333,
        "baseline_samples": 6,
        "regression_score": 0.45,
        "regression_samples": 6,
        "regression_p_value": 0,
    }


def test_a_version_with_little_traffic_has_a_window_of_its_own() -> None:
    on = bench()
    say(on, *BAD, agent_version="canary")
    say(on, *GOOD * 10, agent_version="v1")
    say(on, *BAD, agent_version="canary", each=0)
    say(on, *GOOD * 10, agent_version="v1", each=0)
    newest = shown(on, VERSION)
    assert (newest["regression_samples"], newest["baseline_samples"]) == (20, 12)
    assert newest["regression_p_value"] > 0.99


@pytest.mark.parametrize(("before", "after"), [(MIN - 1, MIN), (MIN, MIN - 1)])
def test_too_few_samples_on_either_side_have_no_p_value(before: int, after: int) -> None:
    on = bench()
    say(on, *GOOD[:before], agent_version="v1")
    say(on, *BAD[:after], agent_version="v2")
    assert sorted(shown(on, VERSION)) == sorted(set(NAMES) - {"regression_p_value"})
    say(on, *GOOD[:1], agent_version="v1")
    say(on, *BAD[:1], agent_version="v2")
    assert sorted(shown(on, VERSION)) == sorted(NAMES)


def test_a_version_that_hardly_ran_is_passed_over() -> None:
    on = bench()
    say(on, *GOOD, agent_version="v1")
    say(on, 0.1, agent_version="v2")
    say(on, *GOOD, agent_version="v3")
    assert shown(on, VERSION)["baseline_score"] == 0.9333
    say(on, *BAD, agent_version="v2")
    assert shown(on, VERSION)["baseline_score"] == 0.4


def test_a_pinned_version_is_compared_with_instead() -> None:
    on = bench(baseline_versions={"planner": "v1", "writer": "v2"})
    for version, scores in (("v1", GOOD), ("v2", BAD), ("v3", BAD)):
        say(on, *scores, agent_version=version)
    assert shown(on, VERSION)["baseline_score"] == 0.9333
    on.sink.configure(on.evaluator, on.references, {"planner": "v2"})
    assert shown(on, VERSION)["baseline_score"] == 0.45
    for nothing in ("v3", "v0"):
        on.sink.configure(on.evaluator, on.references, {"planner": nothing})
        assert shown(on, VERSION) == {}


def test_a_pinned_version_outlives_many_others() -> None:
    on = bench(baseline_versions={"planner": "v0"}, limits=LabelLimits(max_versions=50))
    for number in range(MAX_VERSIONS * 2):
        say(on, *GOOD, agent_version=f"v{number}", each=300)
    assert shown(on, VERSION)["baseline_samples"] == len(GOOD)
    on.commit()
    assert sum(key[0] == "scores_of_version" for key in on.rows) == MAX_VERSIONS


def test_what_has_no_version_is_compared_with_none() -> None:
    on = bench(limits=LabelLimits(max_versions=1))
    say(on, *GOOD)
    say(on, *GOOD, agent_version="v1")
    say(on, *BAD, agent_version="v2")
    assert on.series("pathgauge_baseline_score") == {}


def test_mixtures_of_what_found_no_room_have_no_past() -> None:
    on = bench(limits=LabelLimits(max_agents=1))
    say(on, *GOOD, agent="planner", agent_version="v1")
    for version in ("v1", "v2"):
        say(on, *BAD, agent="writer", agent_version=version)
        say(on, *BAD, scenario_id="unheard of", agent_version=version)
    on.commit()
    assert {key[1:3] for key in on.rows if key[0].startswith("scores_of")} == {
        ("planner", "refund")
    }


def test_after_a_rollback_nothing_is_worse_than_before() -> None:
    on = bench()
    say(on, *GOOD, agent_version="v1")
    say(on, *BAD, agent_version="v2")
    on.now += 3601
    say(on, *GOOD, agent_version="v1")
    assert shown(on, VERSION) == {}


def test_recent_scores_are_compared_with_the_same_day_of_the_last_week() -> None:
    on = bench()
    say(on, *GOOD)
    on.now += 3 * DAY_S
    say(on, *BAD)
    assert shown(on, WEEK) == {}
    on.now += 4 * DAY_S
    say(on, *BAD)
    expected = {
        "baseline_score": 0.9333,
        "baseline_samples": 6,
        "regression_score": 0.45,
        "regression_samples": 6,
    }
    assert shown(on, WEEK) == expected | {"regression_p_value": 0.0011}
    on.now += DAY_S
    say(on, *BAD)
    assert shown(on, WEEK) == {}


def test_days_are_those_of_utc() -> None:
    on = bench()
    midnight = NOW // DAY_S * DAY_S + DAY_S
    on.now = midnight - 1
    say(on, 0.0, each=0)
    on.now = midnight
    say(on, 1.0, each=0)
    for at, expected in ((midnight + DAYS * DAY_S - 1, 0.0), (midnight + DAYS * DAY_S, 1.0)):
        on.now = at
        say(on, 0.5, each=0)
        assert shown(on, WEEK)["baseline_score"] == expected


@pytest.mark.parametrize("scorer", [Waste(), Seconds()])
def test_where_less_is_better_a_rise_is_the_regression(scorer: Waste | Seconds) -> None:
    on = bench(Criterion("answer", scorer))
    say(on, *GOOD, agent_version="v1")
    say(on, *BAD, agent_version="v2")
    assert shown(on, VERSION)["regression_p_value"] > 0.99
    say(on, *GOOD, agent_version="v3")
    assert shown(on, VERSION)["regression_p_value"] == 0.0011


def test_a_window_that_fell_silent_is_compared_with_nothing() -> None:
    on = bench()
    say(on, *GOOD, agent_version="v1")
    say(on, *BAD, agent_version="v2")
    on.now += 3601
    assert [on.series(f"pathgauge_{name}") for name in NAMES] == [{}] * len(NAMES)


def test_a_restart_goes_on_with_both_comparisons() -> None:
    on = bench()
    say(on, *GOOD, agent_version="v1")
    on.now += DAYS * DAY_S
    say(on, *GOOD, agent_version="v1")
    say(on, *BAD, agent_version="v2")
    on.commit()
    before = [shown(on, labels) for labels in (VERSION, WEEK)]
    after = on.restarted(windows=Windows(size=20))
    assert [shown(after, labels) for labels in (VERSION, WEEK)] == before
    assert [sorted(one) for one in before] == [sorted(NAMES)] * 2
    for one in (on, after):
        say(one, *BAD, agent_version="v3")
        say(one, *GOOD, agent="writer")
        one.commit()
    assert after.exposition() == on.exposition()
    assert {key: state for key, state in after.rows.items() if key[0].startswith("scores_of")} == {
        key: state for key, state in on.rows.items() if key[0].startswith("scores_of")
    }


def test_days_that_nothing_is_compared_with_leave_the_store() -> None:
    on = bench()
    for _ in range(20):
        on.now += DAY_S
        say(on, 1.0, agent_version="v1")
        on.commit()
    assert sum(key[0] == "scores_of_day" for key in on.rows) == DAYS + 1


def test_what_was_silent_for_a_week_and_a_day_leaves_the_store() -> None:
    on = bench()
    say(on, *GOOD, agent_version="v1")
    on.now += (DAYS + 1) * DAY_S + 1
    say(on, 1.0, agent="writer")
    on.commit()
    assert {key[1] for key in on.rows if key[0].startswith("scores_of")} == {"writer"}
    assert on.restarted().series("pathgauge_baseline_score") == {}


def test_a_store_of_long_ago_is_not_compared_with() -> None:
    on = bench()
    say(on, *GOOD, agent_version="v1")
    on.commit()
    on.now += 30 * DAY_S
    after = on.restarted()
    after.commit()
    assert not [key for key in after.rows if key[0].startswith("scores_of")]


def test_more_metrics_than_there_is_room_for_are_counted_and_have_no_past() -> None:
    on = bench(limits=LabelLimits(max_series=2, idle_s=60))
    for agent in ("a", "b", "c"):
        say(on, 1.0, agent=agent, agent_version="v1", each=120)
    on.commit()
    assert len([key for key in on.rows if key[0] == "scores_of_day"]) == 2
    assert on.series("pathgauge_series_overflow_total")[("baselines",)] == 1
    on.now += DAY_S + 1
    say(on, 1.0, agent="d")
    on.commit()
    assert {key[1] for key in on.rows if key[0].startswith("scores_of")} == {"d"}


def test_scores_against_another_reference_are_not_compared_with() -> None:
    needy, easy = Criterion("trajectory", Trajectory(), 0.5), ANSWER
    on = bench(needy, easy, references=with_turns(Reference("refund", ())))
    say(on, *GOOD, agent_version="v1")
    on.references = ReferenceSet(
        [Reference("refund", (ReferenceTurn(user_input="new"),), version="2")]
    )
    on.sink.configure(on.evaluator, on.references)
    say(on, *GOOD[:3], agent_version="v1")
    assert on.series("pathgauge_baseline_score") == {}
    say(on, *BAD, agent_version="v2")
    assert on.series("pathgauge_baseline_samples") == {
        VERSION: 9,
        ("planner", "refund", "trajectory", "version"): 3,
    }


def test_thresholds_change_nothing_of_what_is_compared() -> None:
    on = bench(Criterion("trajectory", Trajectory(), 0.5))
    say(on, *GOOD, agent_version="v1")
    on.references = ReferenceSet(
        [Reference("refund", (ReferenceTurn(),), version="2", criteria={"trajectory": 0.9})]
    )
    on.evaluator = Evaluator((Criterion("trajectory", Trajectory(), 0.9),))
    on.sink.configure(on.evaluator, on.references)
    say(on, *BAD, agent_version="v2")
    assert on.series("pathgauge_baseline_samples") == {
        ("planner", "refund", "trajectory", "version"): 6
    }


@pytest.mark.parametrize("scorer", [Waste(), Scaled((1.0, 0.5))])
def test_another_scorer_or_other_options_begin_the_past_anew(scorer: Waste | Scaled) -> None:
    on = bench(Criterion("answer", Scaled((1.0,))))
    say(on, *GOOD, agent_version="v1")
    on.evaluator = Evaluator((Criterion("answer", scorer),))
    on.sink.configure(on.evaluator, on.references)
    say(on, *BAD, agent_version="v2")
    assert on.series("pathgauge_baseline_score") == {}


def test_tenants_are_not_compared_with_each_other() -> None:
    on = bench(tenants=True)
    say(on, *GOOD, agent_version="v1", tenant="acme")
    say(on, *BAD, agent_version="v2", tenant="umbrella")
    assert on.series("pathgauge_baseline_score") == {}
    say(on, *BAD, agent_version="v2", tenant="acme")
    assert set(on.series("pathgauge_baseline_score")) == {("acme", *VERSION)}


def test_a_revision_moves_the_window_and_not_the_past() -> None:
    on = bench()
    say(on, *GOOD[:-1], agent_version="v1")
    told = on.publish(0.5, agent_version="v1")
    on.revise(told, 0.0)
    say(on, *BAD[:-1], agent_version="v2")
    told = on.publish(0.5, agent_version="v2")
    on.revise(told, 1.0)
    assert [shown(on, VERSION)[name] for name in ("baseline_score", "regression_score")] == [
        0.8667,
        0.55,
    ]


def test_noise_over_many_releases_seldom_looks_like_a_regression() -> None:
    random = Random(7)
    p_values: list[float] = []
    on = Bench(min_samples=20, windows=Windows(size=50))
    for release in range(30):
        for _ in range(50):
            on.now += 20
            on.publish(float(random.random() < 0.9), agent_version=f"v{release}")
        p_values += on.series("pathgauge_regression_p_value").values()
    assert len(p_values) == 29
    assert sum(p <= 0.01 for p in p_values) <= 1
