"""Failed invocations are counted once, by the category of their failure."""

from __future__ import annotations

from dataclasses import replace

from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evidence.failures import CATEGORIES, with_failure
from pathgauge.collector.core.evidence.possible_categories import possible_categories
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn, tool_calls
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Reference
from support.durable_harness import DAY_S, DurableHarness
from support.sink_harness import ANSWER, Seconds, SinkHarness

F1 = Criterion("f1", ToolTrajectoryF1(), 1.0)
SECONDS = Criterion("seconds", Seconds(), 3.0)
CALLS = ReferenceSet([Reference("refund", (reference_turn(*expected_calls("find pay")),))])
PLACE = ("planner", "refund")


def failures(harness: SinkHarness) -> dict[tuple[str, ...], float]:
    """The counts that are not 0."""
    found = harness.series("pathgauge_failures_total")
    return {labels: count for labels, count in found.items() if count}


def test_an_invocation_is_counted_once_whatever_criteria_it_failed() -> None:
    harness = SinkHarness(F1, ANSWER, SECONDS, references=CALLS)
    for calls, answer in [("find", 0.0), ("find", 1.0), ("find pay", 9.0), ("find pay", 1.0)]:
        harness.publish(answer, tool_calls=tool_calls(calls), agent_version="v1")
    assert failures(harness) == {(*PLACE, "missing_call"): 2, (*PLACE, "slow"): 1}


def test_the_categories_of_what_can_fail_start_at_0() -> None:
    harness = SinkHarness(ANSWER)
    assert harness.series("pathgauge_failures_total") == {}
    harness.publish(1.0)
    assert harness.series("pathgauge_failures_total") == {
        (*PLACE, category): 0 for category in ("error", "tool_error", "wrong_answer")
    }
    with_calls = SinkHarness(ANSWER, F1, references=CALLS)
    with_calls.publish(1.0, tool_calls=tool_calls("find pay"))
    assert with_calls.series("pathgauge_failures_total") == {
        (*PLACE, category): 0 for category in {*CATEGORIES} - {"slow", "ungrounded_value"}
    }


def test_a_reload_with_a_threshold_starts_the_series() -> None:
    harness = SinkHarness(Criterion("answer", ANSWER.scorer))
    harness.publish(0.0)
    harness.sink.configure(Evaluator((ANSWER,)), harness.references)
    assert set(harness.series("pathgauge_failures_total").values()) == {0}
    harness.sink.configure(Evaluator((ANSWER, SECONDS)), harness.references)
    assert harness.series("pathgauge_failures_total")[*PLACE, "slow"] == 0


def test_what_cannot_fail_has_no_series() -> None:
    aggregated = replace(ANSWER, aggregation=Aggregation("agent"))
    for criterion in (Criterion("answer", ANSWER.scorer), aggregated):
        harness = SinkHarness(criterion)
        harness.publish(0.0)
        assert harness.series("pathgauge_failures_total") == {}


def test_a_revision_and_an_error_of_a_scorer_are_not_counted() -> None:
    harness = SinkHarness()
    harness.revise(harness.publish(1.0), 0.0)
    harness.revise(harness.publish(0.0), 0.0)
    harness.publish("fails")
    assert failures(harness) == {(*PLACE, "wrong_answer"): 1}


def judge(harness: SinkHarness, evaluation: Evaluation, **judged: bool) -> None:
    """Publish a judge that fails the invocation."""
    (result,) = harness.evaluator.evaluate(
        replace(evaluation.invocation, final_response="0"), evaluation.match
    ).results
    late = replace(evaluation, results=(result,))
    harness.sink.publish_judged(Judged(with_failure(late), **judged), harness.now)


def test_a_judge_counts_what_was_not_counted_before() -> None:
    harness = SinkHarness()
    passed, failed = harness.publish(1.0), harness.publish(0.0)
    judge(harness, failed, first=True, failed_before=True)
    assert failures(harness) == {(*PLACE, "wrong_answer"): 1}
    judge(harness, passed, first=True, failed_before=False)
    assert failures(harness) == {(*PLACE, "wrong_answer"): 2}
    judge(harness, passed, first=False, failed_before=False)
    assert failures(harness) == {(*PLACE, "wrong_answer"): 2}


def test_tenants_have_failures_of_their_own() -> None:
    harness = SinkHarness(tenants=True)
    for tenant in ("acme", "acme", "umbrella"):
        harness.publish(0.0, tenant=tenant)
    assert failures(harness) == {
        ("acme", *PLACE, "wrong_answer"): 2,
        ("umbrella", *PLACE, "wrong_answer"): 1,
    }


def test_the_limits_of_labels_hold_for_failures() -> None:
    harness = SinkHarness(limits=LabelLimits(max_agents=2))
    for number in range(20):
        harness.publish(0.0, agent=f"agent {number}")
    assert {labels[0]: n for labels, n in failures(harness).items()} == {
        "agent 0": 1,
        "agent 1": 1,
        "__other__": 18,
    }
    categories = possible_categories(ANSWER.scorer)
    assert len(harness.series("pathgauge_failures_total")) == 3 * len(categories)


def test_failures_of_names_that_are_gone_are_dropped() -> None:
    harness = SinkHarness()
    harness.publish(0.0)
    harness.now += 2 * DAY_S
    harness.publish(0.0, agent="writer")
    assert failures(harness) == {("writer", "refund", "wrong_answer"): 1}


def test_a_restart_continues_the_counts() -> None:
    before = DurableHarness()
    before.publish(0.0)
    assert failures(before) == {}  # not stored yet
    before.commit()
    after = before.restarted()
    assert failures(after) == failures(before) == {(*PLACE, "wrong_answer"): 1}
    after.publish(0.0)
    after.commit()
    assert failures(after) == {(*PLACE, "wrong_answer"): 2}


def test_a_failure_leads_to_its_trace() -> None:
    harness = SinkHarness()
    failed = harness.publish(0.0)
    assert [
        (labels["category"], exemplar.labels)
        for labels, exemplar in harness.exemplars("pathgauge_failures_total")
    ] == [
        (
            "wrong_answer",
            {"trace_id": failed.invocation.trace_id, "span_id": failed.invocation.span_id},
        )
    ]
