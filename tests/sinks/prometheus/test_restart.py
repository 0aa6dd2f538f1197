"""A restarted sink shows everything that the last one stored."""

from __future__ import annotations

import random
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.label_registry import SWEEP_S
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Flag, Reference, ReferenceTurn
from support.durable_harness import DAY_S, DurableHarness
from support.sink_harness import ANSWER, NOW, Rating, Seconds, Waste, with_turns

LAST, FIRST_SEEN = (
    "pathgauge_last_evaluation_timestamp_seconds",
    "pathgauge_agent_version_first_seen_timestamp_seconds",
)


def busy(seed: int, **options: Any) -> DurableHarness:
    """A sink with a mixture of evaluations, and a commit after each."""
    harness = DurableHarness(
        ANSWER, Criterion("seconds", Seconds(), 3.0), Criterion("f1", ToolTrajectoryF1()), **options
    )
    chance = random.Random(seed)
    published: list[Evaluation] = []
    for _ in range(60):
        harness.now += chance.choice([0.0, 1.0, 60.0])
        scored = [evaluation for evaluation in published if evaluation.scored]
        if scored and chance.random() < 0.2:
            harness.revise(chance.choice(scored), chance.random())
        else:
            fields: dict[str, Any] = {
                "agent": chance.choice(["planner", "writer", "x" * 200, None]),
                "agent_version": chance.choice(["v1", "v2", None]),
                "scenario_id": chance.choice(["refund", "order", "unheard of", None]),
                "end_ns": int(harness.now * 1e9) - 1,
                "start_ns": int(harness.now * 1e9) - chance.randrange(10**10),
                "input_tokens": chance.choice([7, None]),
                "tenant": chance.choice(["acme", "umbrella"]),
                "flags": frozenset[Flag](chance.choice([[], ["missing_root"]])),
            }
            published.append(
                harness.publish(chance.choice([0.0, 0.5, 1.0, "undefined", "fails"]), **fields)
            )
        harness.telemetry.spans_assembled.add()
        last = published[-1].invocation
        if last.scenario_id == "order":
            scores = tuple(
                ConversationScore(criterion, 0.5) for criterion in harness.evaluator.criteria
            )
            case = ConversationResult(
                last.tenant,
                "c",
                Reference("order", ()),
                last.agent,
                last.agent_version,
                scores,
                1,
                1,
                0,
            )
            harness.sink.publish_conversation(case, harness.now)
        harness.commit()
    harness.sink.configure(
        harness.evaluator, harness.references
    )  # so that all criteria of all series have begun, as at a restart
    harness.commit()
    return harness


@pytest.mark.slow
@pytest.mark.parametrize("tenants", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_restart_shows_the_same_and_continues(seed: int, tenants: bool) -> None:
    before = busy(seed, tenants=tenants)
    after = before.restarted()
    assert after.exposition() == before.exposition()
    go_on(before, after)
    assert after.exposition() == before.exposition()


@pytest.mark.parametrize("seed", range(2))
def test_a_restart_keeps_the_counts_of_names_beyond_the_limit(seed: int) -> None:
    before = busy(seed, limits=LabelLimits(max_agents=1, max_versions=1, max_series=9))
    after = before.restarted()
    for harness in (before, after):
        harness.now += SWEEP_S  # versions that gave way are dropped
    go_on(before, after)
    counts = [
        {
            key: n
            for key, n in harness.exposition().items()
            if "window" not in key[0] and "breached" not in key[0]
        }
        for harness in (before, after)
    ]
    assert counts[0] == counts[1]


def go_on(*benches: DurableHarness) -> None:
    for harness in benches:
        harness.now += 5
        harness.publish(0.25, agent="planner", agent_version="v2", tenant="acme")
        harness.publish(0.25, agent="newcomer", tenant="acme")
        harness.commit()


def test_windows_of_names_beyond_the_limit_are_restored() -> None:
    harness = DurableHarness(limits=LabelLimits(max_agents=1))
    for agent, answer in (("planner", 0.0), ("second", 0.5), ("third", 1.0)):
        harness.publish(answer, agent=agent)
    harness.commit()
    assert harness.restarted().series("pathgauge_score_window_mean") == {
        ("planner", "refund", "answer"): 0.0,
        ("__other__", "refund", "answer"): 0.75,
    }


def test_counts_that_are_not_stored_are_not_shown_and_are_lost_in_a_crash() -> None:
    harness = DurableHarness()
    harness.publish(1.0)
    harness.commit()
    harness.publish(1.0)
    seen = [
        harness.series("pathgauge_score_count"),
        harness.restarted().series("pathgauge_score_count"),
    ]
    assert seen == [{("planner", "refund", "answer", ""): 1}] * 2


def test_new_series_are_0_before_they_are_stored() -> None:
    harness = DurableHarness()
    harness.publish(1.0)
    assert harness.series("pathgauge_evaluations_total") == {
        ("planner", "refund", "answer", "", o): 0
        for o in ("pass", "fail", "not_evaluated", "error")
    }


def test_dropped_series_are_not_restored() -> None:
    harness = DurableHarness(limits=LabelLimits(idle_s=3600))
    harness.publish(agent="old")
    harness.commit()
    harness.now += 3601
    harness.publish(agent="new")
    harness.commit()
    assert [key for key in harness.rows if "old" in key] == []
    assert harness.restarted().series("pathgauge_score_count") == {
        ("new", "refund", "answer", ""): 1
    }


def test_restarts_do_not_keep_idle_names_alive() -> None:
    harness = DurableHarness(limits=LabelLimits(max_agents=1))
    harness.publish(agent="old", agent_version="v1")
    harness.commit()
    for _ in range(3):
        harness.now += DAY_S / 3 + SWEEP_S
        harness = harness.restarted()
    harness.publish(agent="new")
    harness.commit()
    assert set(harness.series("pathgauge_invocations_total")) == {("new", "", "scenario", "ok")}


def test_restarts_remember_the_last_evaluation() -> None:
    harness = DurableHarness()
    harness.publish(1.0)
    harness.commit()
    harness.now += DAY_S / 2
    after = harness.restarted()
    assert after.series("pathgauge_last_evaluation_timestamp_seconds") == {
        ("planner", "refund"): NOW
    }
    assert after.series("pathgauge_threshold") == {("planner", "refund", "answer"): 0.5}
    assert after.series("pathgauge_score_window_mean") == {}


def test_with_lower_limits_the_names_seen_last_are_restored() -> None:
    harness = DurableHarness()
    for agent in ("first", "second", "third"):
        harness.now += 1
        harness.publish(agent=agent)
    harness.commit()
    after = harness.restarted(limits=LabelLimits(max_agents=2))
    after.commit()
    assert set(after.series("pathgauge_invocations_total")) == {
        (agent, "", "scenario", "ok") for agent in ("second", "third")
    }
    assert [key for key in after.rows if "first" in key] == []
    assert set(after.series("pathgauge_score_window_mean")) == {
        (agent, "refund", "answer") for agent in ("second", "third")
    }


def test_scores_against_different_references_are_not_mixed() -> None:
    harness = DurableHarness()
    harness.publish(0.25, scenario_id="refund")
    harness.publish(0.5, scenario_id=None)
    harness.commit()
    for changed in (
        ReferenceSet([Reference("refund", (ReferenceTurn(),), version="new")]),
        ReferenceSet(),
    ):
        assert harness.restarted(references=changed).series("pathgauge_score_window_mean") == {
            ("planner", "", "answer"): 0.5
        }


def test_removed_criteria_have_no_windows_and_new_ones_start_at_0() -> None:
    harness = DurableHarness(ANSWER, Criterion("waste", Waste()))
    harness.publish(0.25)
    harness.commit()
    after = harness.restarted(ANSWER, Criterion("rating", Rating(), 3.0))
    assert after.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.25}
    assert after.series("pathgauge_score_count") == {
        ("planner", "refund", "answer", ""): 1,
        ("planner", "refund", "waste", ""): 1,
        ("planner", "refund", "rating", ""): 0,
    }


def test_a_revision_after_the_restart_replaces_the_earlier_score() -> None:
    harness = DurableHarness()
    published = harness.publish(0.0)
    harness.publish("undefined")
    unscored = harness.publish_evaluation(
        replace(published, invocation=replace(published.invocation, trace_id="f" * 32), results=())
    )
    harness.commit()
    after = harness.restarted()
    after.revise(published, 1.0)
    after.revise(unscored, 0.5)
    assert after.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.75}


def test_stored_times_in_the_future_do_no_harm() -> None:
    harness = DurableHarness(limits=LabelLimits(idle_s=3600))
    harness.now += 400 * DAY_S
    harness.publish(0.0, agent="old")
    harness.commit()
    harness.now = NOW
    after = harness.restarted()
    after.now += 3601
    after.publish(1.0, agent="new")
    after.commit()
    assert after.series("pathgauge_score_window_mean") == {("new", "refund", "answer"): 1.0}
    assert set(after.series("pathgauge_score_count")) == {("new", "refund", "answer", "")}


def test_a_clock_that_was_ahead_and_is_set_back_keeps_nothing_from_growing_old() -> None:
    references = with_turns(Reference("refund", (), expected_interval=60.0))
    limits = LabelLimits(idle_s=3600)
    harness = DurableHarness(limits=limits, references=references)
    harness.now += 400 * DAY_S
    harness.publish(0.0, agent="old")
    harness.commit()
    harness.now = NOW
    restarted = harness.restarted(references=references)
    for one in (harness, restarted):
        one.commit()
        assert one.series(LAST) == {("old", "refund"): NOW}
        assert one.series(FIRST_SEEN) == {}
        one.now += 3700
        assert one.series("pathgauge_score_window_mean") == {}
        one.publish(1.0, agent="new", agent_version="1")
        one.commit()
        assert set(one.series("pathgauge_score_count")) == {("new", "refund", "answer", "1")}
        assert one.series(FIRST_SEEN) == {("new", "1"): NOW + 3700}


def test_windows_of_unknown_names_are_not_restored() -> None:
    harness = DurableHarness()
    harness.publish(1.0)
    harness.commit()
    harness.rows.clear()
    assert harness.restarted().series("pathgauge_score_window_mean") == {}


@pytest.mark.parametrize(
    ("configured", "known"),
    [
        (("acme", "umbrella"), {"acme", "umbrella"}),
        (("acme", "other"), {"acme"}),
        (("acme",), set[str]()),  # a single tenant is not a label
    ],
)
def test_drift_of_a_tenant_without_series_is_forgotten(
    configured: tuple[str, ...], known: set[str]
) -> None:
    def options(*tenants: str) -> dict[str, Any]:
        limits = LabelLimits(tenants=frozenset(tenants) if len(tenants) > 1 else frozenset())
        return {"tenants": len(tenants) > 1, "limits": limits, "drift": Drift()}

    harness = DurableHarness(ANSWER, **options("acme", "umbrella"))
    for tenant in ("acme", "umbrella"):
        harness.publish(0.5, agent="planner", scenario_id="refund", tenant=tenant)
        harness.publish(0.5, agent="planner", scenario_id=None, tenant=tenant)
    harness.sink.finish()
    harness.commit()
    after = harness.restarted(**options(*configured))
    assert {one.drift.key.tenant for one in after.sink.shown.drifts()} == known
    assert {one.tenant for one in after.sink.shown.traffic()} == known
    after.commit()
    assert {key[1] for key in after.rows if key[0] in ("drift", "traffic")} == known


@pytest.mark.parametrize("before", [False, True])
def test_series_of_agents_start_at_0_when_the_tenant_label_changes(before: bool) -> None:
    harness = DurableHarness(tenants=before)
    harness.publish("undefined", tenant="acme")
    harness.commit()
    after = harness.restarted(tenants=not before)
    after.commit()
    assert after.series("pathgauge_invocations_total") == {}
    assert after.series("pathgauge_not_evaluated_total") == {}
    assert not [key for key in after.rows if "planner" in key]


def test_an_empty_store_restores_nothing() -> None:
    harness = DurableHarness()
    before = harness.exposition()
    harness.sink.restore([], lambda wants: (), NOW)
    assert harness.exposition() == before


def test_no_scrape_sees_a_part_of_a_commit() -> None:
    harness, enough = DurableHarness(ANSWER), threading.Event()
    names = (
        "pathgauge_invocations_scored_total",
        "pathgauge_evaluation_revisions_total",
        "pathgauge_evaluations_total",
    )

    def count() -> None:
        while not enough.is_set():
            harness.publish(1.0)
            harness.telemetry.invocations_scored.add()
            harness.telemetry.revisions.add()
            harness.commit()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        counting = threading.Thread(target=count)
        counting.start()
        seen: set[tuple[float, ...]] = set()
        while len(seen) < 30 and counting.is_alive():
            samples = [
                sample for family in harness.sink.shown.collect() for sample in family.samples
            ]
            shown = {
                sample.name: sample.value
                for sample in samples
                if sample.labels.get("outcome", "pass") == "pass"
            }
            seen.add(tuple(shown.get(name, 0.0) for name in names))
    finally:
        enough.set()
        counting.join()
        sys.setswitchinterval(interval)
    assert (len(seen), [one for one in seen if len(set(one)) > 1]) == (30, [])
