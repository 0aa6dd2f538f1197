"""Series of SLOs, expected intervals and first evaluations of versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.label_registry import SWEEP_S
from pathgauge.scorers.types import Reference, Score
from support.durable_harness import DAY_S, DurableHarness
from support.judged import Opinion
from support.sink_harness import ANSWER, NOW, SinkHarness, with_turns

OBJECTIVE, INTERVAL = "pathgauge_objective", "pathgauge_expected_interval_seconds"
SINCE = "pathgauge_expected_since_timestamp_seconds"
LAST, FIRST = (
    "pathgauge_last_evaluation_timestamp_seconds",
    "pathgauge_agent_version_first_seen_timestamp_seconds",
)
DAILY = with_turns(Reference("refund", (), expected_interval=DAY_S), Reference("order", ()))


def test_an_objective_is_exported_with_its_threshold() -> None:
    strict = replace(ANSWER, objective=0.95)
    harness = SinkHarness(strict, replace(ANSWER, name="loose"))
    assert harness.series(OBJECTIVE) == {}
    harness.publish("undefined")
    assert harness.series(OBJECTIVE) == {("planner", "refund", "answer"): 0.95}
    assert set(harness.series("pathgauge_threshold")) == {
        ("planner", "refund", "answer"),
        ("planner", "refund", "loose"),
    }


def test_a_scenario_and_a_reload_change_the_objective() -> None:
    harness = SinkHarness(replace(ANSWER, objective=0.95))
    harness.publish(scenario_id="refund")
    harness.publish(scenario_id="order")
    overridden = Evaluator(
        (replace(ANSWER, objective=0.9),), {"order": (replace(ANSWER, objective=0.5),)}
    )
    harness.sink.configure(overridden, harness.references)
    assert harness.series(OBJECTIVE) == {
        ("planner", "refund", "answer"): 0.9,
        ("planner", "order", "answer"): 0.5,
    }


def test_an_interval_is_exported_before_the_first_evaluation_and_follows_the_references() -> None:
    harness = SinkHarness(references=DAILY)
    assert harness.series(INTERVAL) == {("refund",): DAY_S}
    harness.sink.configure(
        harness.evaluator, with_turns(Reference("order", (), expected_interval=60.0))
    )
    assert harness.series(INTERVAL) == {("order",): 60.0}


def test_a_scenario_is_expected_since_the_start_or_the_reload_that_brought_it() -> None:
    harness = SinkHarness(references=DAILY)
    started = harness.now
    harness.now += 3600
    more = (
        Reference("refund", (), expected_interval=60.0),
        Reference("new", (), expected_interval=60.0),
    )
    harness.sink.configure(harness.evaluator, with_turns(*more))
    assert harness.series(SINCE) == {("refund",): started, ("new",): started + 3600}


def test_a_restart_keeps_since_when_a_scenario_is_expected() -> None:
    harness = DurableHarness(references=DAILY)
    harness.commit()
    after = harness.restarted(references=DAILY, clock=lambda: NOW + 20 * 3600)
    assert after.series(SINCE) == {("refund",): NOW}
    after.sink.configure(after.evaluator, with_turns(Reference("order", ())))
    after.commit()
    again = after.restarted(references=DAILY, clock=lambda: NOW + DAY_S)
    assert again.series(SINCE) == {("refund",): NOW + DAY_S}


def test_a_scenario_is_expected_since_the_first_start_after_a_backfill() -> None:
    backfill = DurableHarness(references=DAILY, clock=lambda: 0.0)
    backfill.commit()
    after = backfill.restarted(references=DAILY, clock=lambda: NOW)
    assert after.series(SINCE) == {("refund",): NOW}


def test_an_interval_is_exported_for_each_tenant_that_had_the_scenario() -> None:
    harness = SinkHarness(references=DAILY, tenants=True)
    assert harness.series(INTERVAL) == {("", "refund"): DAY_S}
    for tenant in ("acme", "umbrella"):
        harness.publish(tenant=tenant)
    harness.publish(tenant="initech", scenario_id="order")
    assert harness.series(INTERVAL) == {("acme", "refund"): DAY_S, ("umbrella", "refund"): DAY_S}
    assert harness.series(SINCE).keys() == harness.series(INTERVAL).keys()


def test_a_scenario_that_arrives_with_late_spans_is_not_silent() -> None:
    judged = Criterion("opinion", Opinion(), 0.5, judge="m@1")
    harness = SinkHarness(ANSWER, judged, references=DAILY)
    first = harness.publish("undefined", scenario_id=None)
    assert harness.series(LAST) == {}
    harness.now += 60
    late = replace(first.invocation, scenario_id="refund", final_response="1.0")
    revised = harness.evaluator.evaluate(late, harness.references.match(late), revision=1)
    harness.publish_evaluation(revised)
    assert harness.series(LAST) == {("planner", "refund"): NOW + 60}
    harness.now += 5
    opinion = replace(revised.results[1], score=Score(0.25), verdict="failed")
    said = replace(revised, results=(opinion,))
    harness.sink.publish_judged(Judged(said, first=False), harness.now)
    assert harness.series(LAST) == {("planner", "refund"): NOW + 65}


def test_the_last_evaluation_of_an_expected_scenario_is_kept_without_its_agents() -> None:
    harness = DurableHarness(references=DAILY)
    for agent, scenario in (("old", "refund"), ("planner", "refund"), ("planner", "order")):
        harness.now += 1
        harness.publish(agent=agent, scenario_id=scenario)
    harness.now += 3 * DAY_S
    harness.publish("undefined", agent="other", scenario_id=None)
    harness.commit()
    assert (
        harness.series(LAST)
        == harness.restarted(references=DAILY).series(LAST)
        == {("planner", "refund"): NOW + 2}
    )


def test_an_expected_scenario_without_room_is_not_taken_for_silent() -> None:
    few = LabelLimits(max_series=1)
    harness = DurableHarness(references=DAILY, limits=few, tenants=True)
    for scenario in ("order", "refund"):
        harness.now += 1
        harness.publish(tenant="acme", scenario_id=scenario)
    harness.commit()
    times = {
        ("acme", "planner", "order"): NOW + 1,
        ("acme", "planner", "__other__"): NOW + 2,
        ("acme", "__other__", "refund"): NOW + 2,
    }
    assert harness.series(LAST) == times
    assert harness.series(INTERVAL) == {("acme", "refund"): DAY_S}
    after = harness.restarted(references=DAILY, limits=few)
    assert after.series(LAST) == times


def test_the_scores_of_unknown_agents_are_in_the_same_window_after_a_restart() -> None:
    few = LabelLimits(max_agents=1, max_series=1)
    harness = DurableHarness(references=DAILY, limits=few)
    harness.publish(scenario_id="order")
    harness.publish()
    harness.publish(0.0, agent="unknown")
    harness.commit()
    after = harness.restarted(references=DAILY, limits=few)
    windows = "pathgauge_score_window_mean"
    assert after.series(windows) == harness.series(windows)
    assert ("__other__", "refund", "answer") not in harness.series(windows)


def test_only_so_many_expected_scenarios_without_room_are_shown_as_there_may_be_series() -> None:
    every = [Reference(f"s{number}", (), expected_interval=DAY_S) for number in range(9)]
    few = LabelLimits(max_series=1, max_series_total=4)
    harness = DurableHarness(references=with_turns(*every), limits=few)
    for number in range(9):
        harness.publish(scenario_id=f"s{number}")
    shown = [key for key in harness.series(LAST) if key[1] != "__other__"]
    assert len(shown) == 4


def test_the_time_without_an_agent_goes_when_the_scenario_has_room() -> None:
    harness = DurableHarness(references=DAILY, limits=LabelLimits(max_series=1))
    harness.publish(scenario_id="order")
    harness.publish()
    harness.now += DAY_S + SWEEP_S
    harness.publish()
    harness.now += SWEEP_S + 1
    harness.publish()
    assert harness.series(LAST) == {("planner", "refund"): harness.now}


def test_nothing_is_expected_of_a_tenant_that_was_removed() -> None:
    """Otherwise an alert about its silence would never end."""
    both = LabelLimits(tenants=frozenset({"acme", "umbrella", "initech"}))
    harness = DurableHarness(references=DAILY, tenants=True, limits=both)
    for tenant in ("acme", "umbrella"):
        harness.publish(tenant=tenant)
    harness.commit()
    left = LabelLimits(tenants=frozenset({"acme", "initech"}))
    after = harness.restarted(references=DAILY, limits=left)
    assert after.series(INTERVAL) == {("acme", "refund"): DAY_S}
    assert after.series(SINCE).keys() == {("acme", "refund")}


def test_silent_tenants_of_an_expected_scenario_are_bounded_too() -> None:
    harness = SinkHarness(references=DAILY, tenants=True)
    for number in range(10):
        harness.now += 2 * DAY_S
        harness.publish(tenant=f"tenant {number}")
    few = LabelLimits(max_series_total=8)
    harness.sink.configure(harness.evaluator, harness.references, limits=few)
    harness.now += SWEEP_S
    harness.publish(tenant="tenant 9")
    live, silent = {"tenant 9"}, {f"tenant {number}" for number in range(1, 9)}
    assert {labels[0] for labels in harness.series(LAST)} == live | silent
    assert harness.series("pathgauge_series_overflow_total")["total",] == 1


def test_scenarios_without_an_interval_are_forgotten_with_their_agents() -> None:
    harness = SinkHarness(references=DAILY)
    harness.publish(scenario_id="refund")
    harness.sink.configure(harness.evaluator, ReferenceSet())
    harness.now += 3 * DAY_S
    harness.publish(agent="other", scenario_id=None)
    assert harness.series(LAST) == {("other", ""): harness.now}


def test_a_version_is_first_seen_with_its_first_evaluation() -> None:
    harness = DurableHarness()
    for version in ("v1", "v2", "v1", None):
        harness.publish(agent_version=version)
        harness.now += 60
    harness.publish(agent="writer", agent_version="v2")
    harness.commit()
    expected = {("planner", "v1"): NOW, ("planner", "v2"): NOW + 60, ("writer", "v2"): NOW + 240}
    assert harness.series(FIRST) == expected
    after = harness.restarted()
    after.now += 60
    after.publish(agent_version="v1")
    assert after.series(FIRST) == expected


@pytest.mark.parametrize("tenants", [False, True])
def test_a_version_that_was_idle_for_a_day_is_new_when_it_comes_back(tenants: bool) -> None:
    harness = SinkHarness(tenants=tenants)
    harness.publish(agent_version="v1", tenant="acme")
    for _ in range(2):
        harness.now += DAY_S / 2 + SWEEP_S
        harness.publish(agent_version="v2", tenant="acme")
    first = {labels[-1]: since for labels, since in harness.series(FIRST).items()}
    assert first == {"v2": NOW + DAY_S / 2 + SWEEP_S}
    harness.publish(agent_version="v1", tenant="acme")
    assert {labels[-1]: since for labels, since in harness.series(FIRST).items()} == first | {
        "v1": harness.now
    }


def test_versions_beyond_the_limit_have_no_first_evaluation() -> None:
    harness = SinkHarness()
    for number in range(20):
        harness.publish(agent_version=f"v{number}")
    assert {version for _, version in harness.series(FIRST)} == {
        f"v{number}" for number in range(10)
    }
