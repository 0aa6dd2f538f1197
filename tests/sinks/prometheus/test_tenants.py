"""With several tenants every series that speaks of agents says whose it is, and no tenant's agents
mix with another's.
"""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.sinks.prometheus.labels import LabelLimits, LabelRegistry, Labels
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Reference
from support.sink_bench import ANSWER, NOW, Bench

EVERYTHING: dict[str, Any] = {
    "start_ns": 1,
    "end_ns": 2,
    "input_tokens": 3,
    "output_tokens": 4,
    "agent_version": "v1",
}


def seen_by_two(tenants: bool) -> Bench:
    """A sink that saw the same of two tenants."""
    bench = Bench(ANSWER, Criterion("f1", ToolTrajectoryF1(), 0.5), tenants=tenants)
    for tenant, said in (("acme", 0.0), ("umbrella", 1.0)):
        bench.publish(said, tenant=tenant, **EVERYTHING)
        bench.publish("undefined", tenant=tenant, **EVERYTHING)
        case = ConversationResult(
            tenant,
            "c",
            Reference("order", ()),
            "planner",
            "v1",
            (ConversationScore(ANSWER, said),),
            1,
            0,
            0,
        )
        bench.sink.publish_conversation(case, NOW)
    return bench


def label_sets(bench: Bench) -> dict[str, set[frozenset[str]]]:
    families = parse_text(generate_latest(bench.sink.registry).decode())
    return {
        family.name: {frozenset(sample.labels) for sample in family.samples} for family in families
    }


def test_series_have_a_tenant_where_they_have_an_agent_or_a_scenario_and_nowhere_else() -> None:
    one, several = label_sets(seen_by_two(tenants=False)), label_sets(seen_by_two(tenants=True))
    assert several == {
        name: {
            labels | {"tenant"} if labels & {"agent", "scenario"} else labels for labels in found
        }
        for name, found in one.items()
    }


def test_the_same_agent_of_two_tenants_has_series_of_its_own() -> None:
    bench = seen_by_two(tenants=True)
    assert bench.series("pathgauge_score_window_mean") == {
        ("acme", "planner", "refund", "answer"): 0.0,
        ("umbrella", "planner", "refund", "answer"): 1.0,
    }
    assert bench.series("pathgauge_score_sum")["acme", "planner", "refund", "answer", "v1"] == 0
    assert bench.series("pathgauge_score_sum")["umbrella", "planner", "refund", "answer", "v1"] == 1
    assert bench.series("pathgauge_threshold_breached")["acme", "planner", "refund", "answer"] == 1
    assert (
        bench.series("pathgauge_threshold_breached")["umbrella", "planner", "refund", "answer"] == 0
    )
    assert bench.series("pathgauge_last_evaluation_timestamp_seconds") == {
        ("acme", "planner", "refund"): NOW,
        ("umbrella", "planner", "refund"): NOW,
    }
    assert bench.series("pathgauge_invocations_total") == {
        ("acme", "planner", "v1", "scenario", "ok"): 2,
        ("umbrella", "planner", "v1", "scenario", "ok"): 2,
    }


def test_with_one_tenant_its_name_is_nowhere() -> None:
    bench = Bench()
    bench.publish(1.0, tenant="acme")
    assert b"acme" not in generate_latest(bench.sink.registry)


def test_series_of_one_tenant_leave_and_those_of_another_stay() -> None:
    bench = Bench(tenants=True, limits=LabelLimits(idle_s=3600))
    bench.publish(1.0, tenant="acme")
    bench.now += 3000
    bench.publish(1.0, tenant="umbrella")
    bench.now += 3000
    bench.publish(1.0, tenant="umbrella")
    for name in (
        "pathgauge_score_count",
        "pathgauge_invocations_total",
        "pathgauge_last_evaluation_timestamp_seconds",
    ):
        assert {labels[0] for labels in bench.series(name)} == {"umbrella"}


@pytest.mark.parametrize(
    "limits", [LabelLimits(max_agents=2), LabelLimits(max_versions=2), LabelLimits(max_series=2)]
)
def test_the_flood_of_one_tenant_takes_no_room_of_another(limits: LabelLimits) -> None:
    labels = LabelRegistry(limits)
    for number in range(100):
        labels.admit(Labels(f"agent {number % 10}", f"v{number}", "", "acme"), 0)
    assert labels.admit(Labels("planner", "v1", "", "umbrella"), 0) == Labels(
        "planner", "v1", "", "umbrella"
    )
    assert labels.admit(Labels("planner", "v2", "", "umbrella"), 0) == Labels(
        "planner", "v2", "", "umbrella"
    )
