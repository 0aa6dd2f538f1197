"""Gauges of criteria over a scenario, an agent or a suite, through the exposition."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.sink_harness import Answer, SinkHarness, Waste, with_turns

ROUTING = Criterion("routing", Answer(), 0.9, aggregation=Aggregation("agent"))
KNOWN = with_turns(Reference("refund", (ReferenceTurn(),)), Reference("greet", (ReferenceTurn(),)))
FAMILIES = ("score", "samples", "threshold", "breached")


def gauges(harness: SinkHarness) -> dict[str, dict[tuple[str, ...], float]]:
    return {name: harness.series(f"pathgauge_aggregate_{name}") for name in FAMILIES}


def play(harness: SinkHarness, scores: list[tuple[str, str, float]]) -> SinkHarness:
    for agent, scenario, score in scores:
        harness.publish(score, agent=agent, scenario_id=scenario)
    return harness


def test_19_of_20_right_routings_of_an_agent_pass_09() -> None:
    scores = [("planner", f"sc{i % 4}", float(i != 7)) for i in range(20)]
    harness = play(SinkHarness(ROUTING), scores)
    series = "planner", "", "routing", "agent"
    assert gauges(harness) == {
        "score": {series: 0.95},
        "samples": {series: 20},
        "threshold": {series: 0.9},
        "breached": {series: 0},
    }
    bounds = [
        round(harness.series(f"pathgauge_aggregate_confidence_{side}")[series], 4)
        for side in ("low", "high")
    ]
    assert bounds == [0.7639, 0.9911]


@pytest.mark.parametrize(("escalated", "breached"), [(2, 0), (3, 0), (4, 1)])
def test_2_of_20_escalations_pass_a_limit_of_15_percent(escalated: int, breached: int) -> None:
    criterion = Criterion("escalation_rate", Waste(), 0.15, aggregation=Aggregation("agent"))
    scores = [("planner", "refund", float(i < escalated)) for i in range(20)]
    harness = play(SinkHarness(criterion), scores)
    assert list(gauges(harness)["breached"].values()) == [breached]


def test_each_agent_is_judged_alone_and_a_suite_as_a_whole() -> None:
    suite = Criterion("all", Answer(), 0.5, aggregation=Aggregation("suite"))
    scenario = Criterion("here", Answer(), 0.5, aggregation=Aggregation("scenario"))
    scores = [("planner", "refund", 1.0), ("planner", "greet", 1.0), ("helper", "refund", 0.0)]
    harness = play(SinkHarness(ROUTING, suite, scenario, references=KNOWN), scores)
    assert harness.series("pathgauge_aggregate_score") == {
        ("planner", "", "routing", "agent"): 1.0,
        ("helper", "", "routing", "agent"): 0.0,
        ("", "", "all", "suite"): pytest.approx(2 / 3),
        ("planner", "refund", "here", "scenario"): 1.0,
        ("planner", "greet", "here", "scenario"): 1.0,
        ("helper", "refund", "here", "scenario"): 0.0,
    }
    assert {labels[2]: value for labels, value in gauges(harness)["breached"].items()} == {
        "routing": 1,
        "all": 0,
        "here": 1,
    }


def test_few_scores_do_not_breach_a_threshold() -> None:
    harness = SinkHarness(ROUTING, min_samples=3)
    seen: list[float] = []
    for _ in range(3):
        harness.publish(0.0)
        seen += gauges(harness)["breached"].values()
    assert seen == [0, 0, 1]


def test_repeated_runs_of_a_scenario_give_pass_hat_k() -> None:
    criterion = Criterion("all3", Answer(), 0.5, aggregation=Aggregation("agent", "pass^k", k=3))
    scores = [("planner", "refund", score) for score in (1.0, 1.0, 1.0, 0.0)]
    harness = SinkHarness(criterion, references=KNOWN)
    play(harness, [*scores, *[("planner", "greet", 1.0)] * 3])
    assert harness.series("pathgauge_aggregate_score") == {
        ("planner", "", "all3", "agent"): pytest.approx((1 / 4 + 1) / 2)
    }


def test_runs_without_a_scenario_are_not_repeated_runs() -> None:
    criterion = Criterion("all2", Answer(), 0.5, aggregation=Aggregation("agent", "pass^k", k=2))
    harness = SinkHarness(criterion)
    for _ in range(4):
        harness.publish(1.0, scenario_id=None)
    assert harness.series("pathgauge_aggregate_score") == {}


def test_without_a_threshold_nothing_can_be_breached() -> None:
    criterion = Criterion("routing", Answer(), aggregation=Aggregation("agent"))
    harness = play(SinkHarness(criterion), [("planner", "refund", 0.0)])
    assert (gauges(harness)["threshold"], gauges(harness)["breached"]) == ({}, {})


def test_a_criterion_over_an_agent_has_no_threshold_for_single_scenarios() -> None:
    harness = play(SinkHarness(ROUTING), [("planner", "refund", 0.0)])
    assert harness.series("pathgauge_threshold") == {}
    assert harness.series("pathgauge_threshold_breached") == {}
    assert (
        harness.series("pathgauge_evaluations_total")[
            "planner", "refund", "routing", "", "informational"
        ]
        == 1
    )


def test_each_tenant_has_its_own_aggregates() -> None:
    harness = SinkHarness(ROUTING, telemetry=InternalTelemetry(), tenants=True)
    harness.publish(1.0, tenant="a")
    harness.publish(0.0, tenant="b")
    assert sorted(harness.series("pathgauge_aggregate_score").values()) == [0, 1]


def test_scores_leave_the_aggregate_with_their_window() -> None:
    harness = play(SinkHarness(ROUTING), [("planner", "refund", 0.0)])
    harness.now += 3601
    assert gauges(harness)["score"] == {}
