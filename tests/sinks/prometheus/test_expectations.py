"""What is expected of scenarios and versions, as series: objectives, intervals, and since when a
version is known.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.labels import SWEEP_S
from pathgauge.scorers.types import Reference
from support.durable_sink import DAY_S, Durable
from support.sink_bench import ANSWER, NOW, Bench, with_turns

OBJECTIVE, INTERVAL = "pathgauge_objective", "pathgauge_expected_interval_seconds"
LAST, FIRST = (
    "pathgauge_last_evaluation_timestamp_seconds",
    "pathgauge_agent_version_first_seen_timestamp_seconds",
)
DAILY = with_turns(Reference("refund", (), expected_interval=DAY_S), Reference("order", ()))


def test_an_objective_is_exported_for_what_its_threshold_is() -> None:
    strict = replace(ANSWER, objective=0.95)
    bench = Bench(strict, replace(ANSWER, name="loose"))
    assert bench.series(OBJECTIVE) == {}
    bench.publish("undefined")
    assert bench.series(OBJECTIVE) == {("planner", "refund", "answer"): 0.95}
    assert set(bench.series("pathgauge_threshold")) == {
        ("planner", "refund", "answer"),
        ("planner", "refund", "loose"),
    }


def test_a_scenario_and_a_reload_change_the_objective() -> None:
    bench = Bench(replace(ANSWER, objective=0.95))
    bench.publish(scenario_id="refund")
    bench.publish(scenario_id="order")
    overridden = Evaluator(
        (replace(ANSWER, objective=0.9),), {"order": (replace(ANSWER, objective=0.5),)}
    )
    bench.sink.configure(overridden, bench.references)
    assert bench.series(OBJECTIVE) == {
        ("planner", "refund", "answer"): 0.9,
        ("planner", "order", "answer"): 0.5,
    }


def test_an_interval_is_exported_before_the_first_evaluation_and_follows_the_references() -> None:
    bench = Bench(references=DAILY)
    assert bench.series(INTERVAL) == {("refund",): DAY_S}
    bench.sink.configure(
        bench.evaluator, with_turns(Reference("order", (), expected_interval=60.0))
    )
    assert bench.series(INTERVAL) == {("order",): 60.0}


def test_an_interval_holds_for_each_tenant_that_had_the_scenario() -> None:
    bench = Bench(references=DAILY, tenants=True)
    assert bench.series(INTERVAL) == {("", "refund"): DAY_S}
    for tenant in ("acme", "umbrella"):
        bench.publish(tenant=tenant)
    bench.publish(tenant="initech", scenario_id="order")
    assert bench.series(INTERVAL) == {("acme", "refund"): DAY_S, ("umbrella", "refund"): DAY_S}


def test_the_last_evaluation_of_an_awaited_scenario_outlives_its_agents() -> None:
    bench = Durable(references=DAILY)
    for agent, scenario in (("old", "refund"), ("planner", "refund"), ("planner", "order")):
        bench.now += 1
        bench.publish(agent=agent, scenario_id=scenario)
    bench.now += 3 * DAY_S
    bench.publish("undefined", agent="other", scenario_id=None)
    bench.commit()
    assert (
        bench.series(LAST)
        == bench.restarted(references=DAILY).series(LAST)
        == {("planner", "refund"): NOW + 2}
    )


def test_scenarios_that_nobody_awaits_are_forgotten_with_their_agents() -> None:
    bench = Bench(references=DAILY)
    bench.publish(scenario_id="refund")
    bench.sink.configure(bench.evaluator, ReferenceSet())
    bench.now += 3 * DAY_S
    bench.publish(agent="other", scenario_id=None)
    assert bench.series(LAST) == {("other", ""): bench.now}


def test_a_version_is_known_since_its_first_evaluation() -> None:
    bench = Durable()
    for version in ("v1", "v2", "v1", None):
        bench.publish(agent_version=version)
        bench.now += 60
    bench.publish(agent="writer", agent_version="v2")
    bench.commit()
    expected = {("planner", "v1"): NOW, ("planner", "v2"): NOW + 60, ("writer", "v2"): NOW + 240}
    assert bench.series(FIRST) == expected
    after = bench.restarted()
    after.now += 60
    after.publish(agent_version="v1")
    assert after.series(FIRST) == expected


@pytest.mark.parametrize("tenants", [False, True])
def test_a_version_that_was_silent_for_a_day_is_new_when_it_comes_back(tenants: bool) -> None:
    bench = Bench(tenants=tenants)
    bench.publish(agent_version="v1", tenant="acme")
    for _ in range(2):
        bench.now += DAY_S / 2 + SWEEP_S
        bench.publish(agent_version="v2", tenant="acme")
    first = {labels[-1]: since for labels, since in bench.series(FIRST).items()}
    assert first == {"v2": NOW + DAY_S / 2 + SWEEP_S}
    bench.publish(agent_version="v1", tenant="acme")
    assert {labels[-1]: since for labels, since in bench.series(FIRST).items()} == first | {
        "v1": bench.now
    }


def test_versions_without_room_have_no_beginning() -> None:
    bench = Bench()
    for number in range(20):
        bench.publish(agent_version=f"v{number}")
    assert {version for _, version in bench.series(FIRST)} == {f"v{number}" for number in range(10)}
