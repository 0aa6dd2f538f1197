"""A restarted sink shows what the last one showed of everything that was stored."""

from __future__ import annotations

import random
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest

from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.labels import SWEEP_S, LabelLimits
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Flag, Reference, ReferenceTurn
from support.durable_sink import DAY_S, Durable
from support.sink_bench import ANSWER, NOW, Rating, Seconds, Waste


def busy(seed: int, **options: Any) -> Durable:
    """A sink that has seen a bit of everything, one commit after each evaluation."""
    bench = Durable(
        ANSWER, Criterion("seconds", Seconds(), 3.0), Criterion("f1", ToolTrajectoryF1()), **options
    )
    chance = random.Random(seed)
    told: list[Evaluation] = []
    for _ in range(60):
        bench.now += chance.choice([0.0, 1.0, 60.0])
        scored = [evaluation for evaluation in told if evaluation.scored]
        if scored and chance.random() < 0.2:
            bench.revise(chance.choice(scored), chance.random())
        else:
            fields: dict[str, Any] = {
                "agent": chance.choice(["planner", "writer", "x" * 200, None]),
                "agent_version": chance.choice(["v1", "v2", None]),
                "scenario_id": chance.choice(["refund", "order", "unheard of", None]),
                "end_ns": int(bench.now * 1e9) - 1,
                "start_ns": int(bench.now * 1e9) - chance.randrange(10**10),
                "input_tokens": chance.choice([7, None]),
                "tenant": chance.choice(["acme", "umbrella"]),
                "flags": frozenset[Flag](chance.choice([[], ["missing_root"]])),
            }
            told.append(
                bench.publish(chance.choice([0.0, 0.5, 1.0, "undefined", "fails"]), **fields)
            )
        bench.telemetry.spans_assembled.add()
        last = told[-1].invocation
        if last.scenario_id == "order":
            scores = tuple(
                ConversationScore(criterion, 0.5) for criterion in bench.evaluator.criteria
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
            bench.sink.publish_conversation(case, bench.now)
        bench.commit()
    bench.sink.configure(
        bench.evaluator, bench.references
    )  # so that all criteria of all series have begun, as at a restart
    bench.commit()
    return bench


@pytest.mark.parametrize("tenants", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_restart_shows_the_same_and_goes_on_in_the_same_way(seed: int, tenants: bool) -> None:
    before = busy(seed, tenants=tenants)
    after = before.restarted()
    assert after.exposition() == before.exposition()
    go_on(before, after)
    assert after.exposition() == before.exposition()


@pytest.mark.parametrize("seed", range(2))
def test_a_restart_keeps_the_counts_of_what_found_no_room_for_its_name(seed: int) -> None:
    before = busy(seed, limits=LabelLimits(max_agents=1, max_versions=1, max_series=9))
    after = before.restarted()
    go_on(before, after)
    shown = [
        {key: n for key, n in bench.exposition().items() if "window" not in key[0]}
        for bench in (before, after)
    ]
    assert shown[0] == shown[1]


def go_on(*benches: Durable) -> None:
    for bench in benches:
        bench.now += 5
        bench.publish(0.25, agent="planner", agent_version="v2", tenant="acme")
        bench.publish(0.25, agent="newcomer", tenant="acme")
        bench.commit()


def test_windows_of_what_found_no_room_for_its_name_are_restored_where_they_were() -> None:
    bench = Durable(limits=LabelLimits(max_agents=1))
    for agent, said in (("planner", 0.0), ("second", 0.5), ("third", 1.0)):
        bench.publish(said, agent=agent)
    bench.commit()
    assert bench.restarted().series("pathgauge_score_window_mean") == {
        ("planner", "refund", "answer"): 0.0,
        ("__other__", "refund", "answer"): 0.75,
    }


def test_what_was_not_stored_is_not_shown_before_and_is_lost_after_a_crash() -> None:
    bench = Durable()
    bench.publish(1.0)
    bench.commit()
    bench.publish(1.0)
    seen = [
        bench.series("pathgauge_score_count"),
        bench.restarted().series("pathgauge_score_count"),
    ]
    assert seen == [{("planner", "refund", "answer", ""): 1}] * 2


def test_series_that_are_new_are_shown_at_0_before_they_are_stored() -> None:
    bench = Durable()
    bench.publish(1.0)
    assert bench.series("pathgauge_evaluations_total") == {
        ("planner", "refund", "answer", "", o): 0
        for o in ("pass", "fail", "not_evaluated", "error", "informational")
    }


def test_series_that_left_stay_away_after_a_restart() -> None:
    bench = Durable(limits=LabelLimits(idle_s=3600))
    bench.publish(agent="old")
    bench.commit()
    bench.now += 3601
    bench.publish(agent="new")
    bench.commit()
    assert {key[0] for key in bench.rows if "old" in key} == {"scores_of_day"}
    assert bench.restarted().series("pathgauge_score_count") == {("new", "refund", "answer", ""): 1}


def test_restarts_do_not_keep_idle_names_alive() -> None:
    bench = Durable(limits=LabelLimits(max_agents=1))
    bench.publish(agent="old", agent_version="v1")
    bench.commit()
    for _ in range(3):
        bench.now += DAY_S / 3 + SWEEP_S
        bench = bench.restarted()
    bench.publish(agent="new")
    bench.commit()
    assert set(bench.series("pathgauge_invocations_total")) == {("new", "", "scenario", "ok")}


def test_restarts_remember_which_series_fell_silent() -> None:
    bench = Durable()
    bench.publish(1.0)
    bench.commit()
    bench.now += DAY_S / 2
    after = bench.restarted()
    assert after.series("pathgauge_last_evaluation_timestamp_seconds") == {
        ("planner", "refund"): NOW
    }
    assert after.series("pathgauge_threshold") == {("planner", "refund", "answer"): 0.5}
    assert after.series("pathgauge_score_window_mean") == {}


def test_of_more_names_than_there_is_room_for_now_those_seen_last_stay() -> None:
    bench = Durable()
    for agent in ("first", "second", "third"):
        bench.now += 1
        bench.publish(agent=agent)
    bench.commit()
    after = bench.restarted(limits=LabelLimits(max_agents=2))
    after.commit()
    assert set(after.series("pathgauge_invocations_total")) == {
        (agent, "", "scenario", "ok") for agent in ("second", "third")
    }
    assert {key[0] for key in after.rows if "first" in key} == {"scores_of_day"}
    assert set(after.series("pathgauge_score_window_mean")) == {
        (agent, "refund", "answer") for agent in ("second", "third")
    }


def test_no_mean_is_taken_over_scores_against_different_references() -> None:
    bench = Durable()
    bench.publish(0.25, scenario_id="refund")
    bench.publish(0.5, scenario_id=None)
    bench.commit()
    for changed in (
        ReferenceSet([Reference("refund", (ReferenceTurn(),), version="new")]),
        ReferenceSet(),
    ):
        assert bench.restarted(references=changed).series("pathgauge_score_window_mean") == {
            ("planner", "", "answer"): 0.5
        }


def test_criteria_that_are_gone_have_no_windows_and_new_ones_begin_at_0() -> None:
    bench = Durable(ANSWER, Criterion("waste", Waste()))
    bench.publish(0.25)
    bench.commit()
    after = bench.restarted(ANSWER, Criterion("rating", Rating(), 3.0))
    assert after.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.25}
    assert after.series("pathgauge_score_count") == {
        ("planner", "refund", "answer", ""): 1,
        ("planner", "refund", "waste", ""): 1,
        ("planner", "refund", "rating", ""): 0,
    }


def test_a_revision_after_the_restart_replaces_the_score_of_before() -> None:
    bench = Durable()
    told = bench.publish(0.0)
    bench.publish("undefined")
    unscored = bench.tell(
        replace(told, invocation=replace(told.invocation, trace_id="f" * 32), results=())
    )
    bench.commit()
    after = bench.restarted()
    after.revise(told, 1.0)
    after.revise(unscored, 0.5)
    assert after.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.75}


def test_a_store_that_was_written_by_a_clock_in_the_future_does_not_stop_time() -> None:
    bench = Durable(limits=LabelLimits(idle_s=3600))
    bench.now += 400 * DAY_S
    bench.publish(0.0, agent="old")
    bench.commit()
    bench.now = NOW
    after = bench.restarted()
    after.now += 3601
    after.publish(1.0, agent="new")
    after.commit()
    assert after.series("pathgauge_score_window_mean") == {("new", "refund", "answer"): 1.0}
    assert set(after.series("pathgauge_score_count")) == {("new", "refund", "answer", "")}


def test_windows_of_names_that_nobody_knows_any_more_are_not_restored() -> None:
    bench = Durable()
    bench.publish(1.0)
    bench.commit()
    bench.rows.clear()
    assert bench.restarted().series("pathgauge_score_window_mean") == {}


@pytest.mark.parametrize("before", [False, True])
def test_where_the_tenant_label_comes_or_goes_the_series_of_agents_begin_anew(before: bool) -> None:
    bench = Durable(tenants=before)
    bench.publish("undefined", tenant="acme")
    bench.commit()
    after = bench.restarted(tenants=not before)
    after.commit()
    assert after.series("pathgauge_invocations_total") == {}
    assert after.series("pathgauge_not_evaluated_total") == {("answer", "undefined"): 1}
    assert not [key for key in after.rows if "planner" in key]


def test_an_empty_store_leaves_a_sink_as_it_is() -> None:
    bench = Durable()
    before = bench.exposition()
    bench.sink.restore([], [], NOW)
    assert bench.exposition() == before


def test_no_scrape_sees_a_part_of_what_is_settled() -> None:
    bench, enough = Durable(ANSWER), threading.Event()
    names = (
        "pathgauge_invocations_scored_total",
        "pathgauge_evaluation_revisions_total",
        "pathgauge_evaluations_total",
    )

    def count() -> None:
        while not enough.is_set():
            bench.publish(1.0)
            bench.telemetry.invocations_scored.add()
            bench.telemetry.revisions.add()
            bench.commit()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        counting = threading.Thread(target=count)
        counting.start()
        seen: set[tuple[float, ...]] = set()
        while len(seen) < 30 and counting.is_alive():
            samples = [sample for family in bench.sink.collect() for sample in family.samples]
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
