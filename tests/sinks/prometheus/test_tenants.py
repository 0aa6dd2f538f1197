"""With several tenants, every series about agents has a label `tenant`, and tenants do not mix."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.label_registry import LabelRegistry
from pathgauge.collector.sinks.prometheus.labels import Labels
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Reference
from support.sink_harness import ANSWER, NOW, SinkHarness

EVERYTHING: dict[str, Any] = {
    "start_ns": 1,
    "end_ns": 2,
    "input_tokens": 3,
    "output_tokens": 4,
    "agent_version": "v1",
}


def seen_by_two(tenants: bool) -> SinkHarness:
    """A sink with the same evaluations of two tenants."""
    harness = SinkHarness(ANSWER, Criterion("f1", ToolTrajectoryF1(), 0.5), tenants=tenants)
    for tenant, answer in (("acme", 0.0), ("umbrella", 1.0)):
        harness.publish(answer, tenant=tenant, **EVERYTHING)
        harness.publish("undefined", tenant=tenant, **EVERYTHING)
        case = ConversationResult(
            tenant,
            "c",
            Reference("order", ()),
            "planner",
            "v1",
            (ConversationScore(ANSWER, answer),),
            1,
            0,
            0,
        )
        harness.sink.publish_conversation(case, NOW)
    return harness


def label_sets(harness: SinkHarness) -> dict[str, set[frozenset[str]]]:
    families = parse_text(generate_latest(harness.sink.registry).decode())
    return {
        family.name: {frozenset(sample.labels) for sample in family.samples} for family in families
    }


def test_exactly_the_series_with_an_agent_or_a_scenario_have_a_tenant() -> None:
    one, several = label_sets(seen_by_two(tenants=False)), label_sets(seen_by_two(tenants=True))
    assert several == {
        name: {
            labels | {"tenant"} if labels & {"agent", "scenario"} else labels for labels in found
        }
        for name, found in one.items()
    }


def test_agents_of_two_tenants_with_one_name_have_separate_series() -> None:
    harness = seen_by_two(tenants=True)
    assert harness.series("pathgauge_score_window_mean") == {
        ("acme", "planner", "refund", "answer"): 0.0,
        ("umbrella", "planner", "refund", "answer"): 1.0,
    }
    assert harness.series("pathgauge_score_sum")["acme", "planner", "refund", "answer", "v1"] == 0
    assert (
        harness.series("pathgauge_score_sum")["umbrella", "planner", "refund", "answer", "v1"] == 1
    )
    assert (
        harness.series("pathgauge_threshold_breached")["acme", "planner", "refund", "answer"] == 1
    )
    assert (
        harness.series("pathgauge_threshold_breached")["umbrella", "planner", "refund", "answer"]
        == 0
    )
    assert harness.series("pathgauge_last_evaluation_timestamp_seconds") == {
        ("acme", "planner", "refund"): NOW,
        ("umbrella", "planner", "refund"): NOW,
    }
    assert harness.series("pathgauge_invocations_total") == {
        ("acme", "planner", "v1", "scenario", "ok"): 2,
        ("umbrella", "planner", "v1", "scenario", "ok"): 2,
    }


def test_a_single_tenant_is_not_a_label() -> None:
    harness = SinkHarness()
    harness.publish(1.0, tenant="acme")
    assert b"acme" not in generate_latest(harness.sink.registry)


def test_idle_series_are_dropped_for_each_tenant() -> None:
    harness = SinkHarness(tenants=True, limits=LabelLimits(idle_s=3600))
    harness.publish(1.0, tenant="acme")
    harness.now += 3000
    harness.publish(1.0, tenant="umbrella")
    harness.now += 3000
    harness.publish(1.0, tenant="umbrella")
    for name in (
        "pathgauge_score_count",
        "pathgauge_invocations_total",
        "pathgauge_last_evaluation_timestamp_seconds",
    ):
        assert {labels[0] for labels in harness.series(name)} == {"umbrella"}


@pytest.mark.parametrize(
    "limits", [LabelLimits(max_agents=2), LabelLimits(max_versions=2), LabelLimits(max_series=2)]
)
def test_each_tenant_has_its_own_limits(limits: LabelLimits) -> None:
    labels = LabelRegistry(limits)
    for number in range(100):
        labels.admit(Labels(f"agent {number % 10}", f"v{number}", "", "acme"), 0)
    assert labels.admit(Labels("planner", "v1", "", "umbrella"), 0) == Labels(
        "planner", "v1", "", "umbrella"
    )
    assert labels.admit(Labels("planner", "v2", "", "umbrella"), 0) == Labels(
        "planner", "v2", "", "umbrella"
    )
