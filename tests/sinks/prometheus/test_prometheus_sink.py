"""The Prometheus sink, tested through its exposition."""

from __future__ import annotations

import shutil
import subprocess
import threading
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator, SessionResult
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.score_range import GRADED
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn, tool_calls
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.sessions.tool_trajectory import SessionToolTrajectory
from pathgauge.scorers.tool_use.allowed_tools import AllowedTools
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Flag, Invocation, Reference, ReferenceTurn
from support.sink_harness import (
    ANSWER,
    NOW,
    REFERENCES,
    Answer,
    Rating,
    Seconds,
    SinkHarness,
    Trajectory,
    Waste,
    generate_openmetrics,
    parse_openmetrics,
)

EXEMPLARS = ("pathgauge_evaluations_total", "pathgauge_score_bucket")


def outcomes(harness: SinkHarness) -> dict[str, float]:
    return {
        labels[-1]: count for labels, count in harness.series("pathgauge_evaluations_total").items()
    }


def test_window_gauges_are_in_the_scale_of_the_scorer() -> None:
    harness = SinkHarness(Criterion("rating", Rating()))
    for answer in (2.0, 4.0, 4.5):
        harness.publish(answer)
    assert {
        name: harness.series(f"pathgauge_score_window_{name}")
        for name in ("mean", "min", "samples")
    } == {
        "mean": {("planner", "refund", "rating"): 3.5},
        "min": {("planner", "refund", "rating"): 2.0},
        "samples": {("planner", "refund", "rating"): 3},
    }


def test_the_score_histogram_is_normalized() -> None:
    harness = SinkHarness(Criterion("rating", Rating()))
    for answer in (1.0, 3.0, 5.0):
        harness.publish(answer, agent_version="v1")
    labels = "planner", "refund", "rating", "v1"
    assert harness.series("pathgauge_score_sum") == {labels: 1.5}
    assert harness.series("pathgauge_score_count") == {labels: 3}
    buckets = {le: count for (*_, le), count in harness.series("pathgauge_score_bucket").items()}
    assert buckets == {
        "0.0": 1,
        **dict.fromkeys(["0.5", "0.7", "0.9", "0.99"], 2),
        "+Inf": 3,
    }


def test_the_histogram_of_scores_that_are_0_or_1_has_a_bucket_for_each() -> None:
    harness = SinkHarness(Criterion("failure", Failure()), Criterion("tools", AllowedTools()))
    for error in (True, False, False):
        harness.publish(error=error)
    buckets = harness.series("pathgauge_score_bucket")
    assert {le: count for (*_, metric, _, le), count in buckets.items() if metric == "failure"} == {
        "0.0": 2,
        "0.99": 2,
        "+Inf": 3,
    }
    partial = SinkHarness(Criterion("tools", AllowedTools(("look",), partial=True)))
    partial.publish()
    assert len(partial.series("pathgauge_score_bucket")) == len(GRADED.ends)


def test_the_score_histogram_keeps_the_direction_of_the_metric() -> None:
    harness = SinkHarness(Criterion("waste", Waste()))
    harness.publish(0.25)
    assert harness.series("pathgauge_score_sum") == {("planner", "refund", "waste", ""): 0.25}


def test_a_metric_without_an_upper_limit_has_gauges_and_no_histogram() -> None:
    harness = SinkHarness(Criterion("seconds", Seconds(), 30.0))
    harness.publish(12.5)
    assert harness.series("pathgauge_score_count") == {}
    assert harness.series("pathgauge_score_window_mean") == {("planner", "refund", "seconds"): 12.5}
    assert outcomes(harness)["pass"] == 1


@pytest.mark.parametrize(
    ("criterion", "answer", "breached"),
    [
        (Criterion("answer", Answer(), 0.5), 0.4, 1),
        (Criterion("answer", Answer(), 0.5), 0.5, 0),
        (Criterion("answer", Answer(), 0.5), 0.6, 0),
        (Criterion("seconds", Seconds(), 30.0), 29.0, 0),
        (Criterion("seconds", Seconds(), 30.0), 30.0, 0),
        (Criterion("seconds", Seconds(), 30.0), 31.0, 1),
    ],
)
def test_a_threshold_is_breached_in_the_direction_of_its_metric(
    criterion: Criterion, answer: float, breached: int
) -> None:
    harness = SinkHarness(criterion)
    harness.publish(answer)
    labels = "planner", "refund", criterion.name
    assert harness.series("pathgauge_threshold") == {labels: criterion.threshold}
    assert harness.series("pathgauge_threshold_breached") == {labels: breached}


def test_a_threshold_is_not_breached_by_few_samples() -> None:
    harness = SinkHarness(min_samples=3)
    seen: list[float] = []
    for _ in range(3):
        harness.publish(0.0)
        seen += harness.series("pathgauge_threshold_breached").values()
    assert seen == [0, 0, 1]


def test_a_criterion_without_threshold_has_no_threshold_series() -> None:
    harness = SinkHarness(Criterion("answer", Answer()))
    harness.publish(0.0)
    assert (
        harness.series("pathgauge_threshold")
        == harness.series("pathgauge_threshold_breached")
        == {}
    )
    assert outcomes(harness) == {"not_evaluated": 0, "error": 0, "informational": 1}


def test_every_possible_outcome_is_counted_and_starts_at_0() -> None:
    harness = SinkHarness()
    seen = []
    for answer in (1.0, 0.0, "content missing", 7.0):
        harness.publish(answer)
        seen.append(outcomes(harness))
    assert seen == [
        {"pass": 1, "fail": 0, "not_evaluated": 0, "error": 0},
        {"pass": 1, "fail": 1, "not_evaluated": 0, "error": 0},
        {"pass": 1, "fail": 1, "not_evaluated": 1, "error": 0},
        {"pass": 1, "fail": 1, "not_evaluated": 1, "error": 1},
    ]


def test_the_calls_behind_a_trajectory_score_are_counted_and_start_at_0() -> None:
    expected = reference_turn(*expected_calls("look refund mail"))
    references = ReferenceSet([Reference("refund", (expected,)), Reference("order", (expected,))])
    harness = SinkHarness(Criterion("f1", ToolTrajectoryF1(), 0.5), ANSWER)
    harness.sink.configure(harness.evaluator, references)
    known = [
        harness.invocation(tool_calls=calls)
        for calls in (tool_calls("look refund look"), tool_calls("refund"))
    ]
    unknown = harness.invocation(scenario_id="order", flags=frozenset({"no_tool_spans"}))
    for invocation in (*known, unknown):
        harness.publish_evaluation(
            harness.evaluator.evaluate(invocation, references.match(invocation))
        )
    assert harness.series("pathgauge_trajectory_calls_total") == {
        ("planner", "refund", "f1", "", "matched"): 3,
        ("planner", "refund", "f1", "", "actual"): 4,
        ("planner", "refund", "f1", "", "expected"): 6,
        **{("planner", "order", "f1", "", count): 0 for count in ("matched", "actual", "expected")},
    }


def test_reasons_for_not_evaluating_come_from_the_closed_set() -> None:
    harness = SinkHarness()
    harness.publish("args_not_recorded")
    harness.publish("args_not_recorded")
    harness.publish("what the agent said")
    assert harness.series("pathgauge_not_evaluated_total") == {
        ("planner", "answer", "args_not_recorded"): 2,
        ("planner", "answer", "__other__"): 1,
    }


def test_each_metric_has_one_range_and_direction() -> None:
    harness = SinkHarness(ANSWER, Criterion("rating", Rating()), Criterion("seconds", Seconds()))
    harness.sink.configure(
        Evaluator(harness.evaluator.criteria, {"refund": (ANSWER, Criterion("waste", Waste()))}),
        REFERENCES,
    )
    assert harness.series("pathgauge_metric_info") == {
        ("answer", "0", "1", "higher_is_better"): 1,
        ("rating", "1", "5", "higher_is_better"): 1,
        ("seconds", "0", "+Inf", "lower_is_better"): 1,
        ("waste", "0", "1", "lower_is_better"): 1,
    }


def test_of_two_scorers_with_one_name_the_global_one_is_described() -> None:
    harness = SinkHarness(ANSWER)
    harness.sink.configure(
        Evaluator((ANSWER,), {"refund": (Criterion("answer", Waste()),)}), REFERENCES
    )
    assert harness.series("pathgauge_metric_info") == {("answer", "0", "1", "higher_is_better"): 1}


def test_the_last_evaluation_is_that_of_the_last_score() -> None:
    harness = SinkHarness()
    harness.publish(scenario_id=None)
    earlier = harness.publish()
    harness.now += 60
    harness.publish("undefined")
    harness.revise(earlier, 0.0)
    assert harness.series("pathgauge_last_evaluation_timestamp_seconds") == {
        ("planner", "refund"): NOW,
        ("planner", ""): NOW,
    }


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({}, ("planner", "", "scenario", "ok")),
        ({"error": True, "agent_version": "v1"}, ("planner", "v1", "scenario", "error")),
        ({"scenario_id": None}, ("planner", "", "unmatched", "ok")),
        ({"scenario_id": "order"}, ("planner", "", "unmatched", "ok")),
        (
            {"agent": None, "flags": frozenset[Flag](["scenario_conflict"])},
            ("", "", "ambiguous", "ok"),
        ),
    ],
)
def test_invocations_are_counted_by_match_and_status(
    fields: dict[str, Any], labels: tuple[str, ...]
) -> None:
    harness = SinkHarness()
    harness.publish(**fields)
    assert harness.series("pathgauge_invocations_total") == {labels: 1}


def test_duration_tokens_and_calls_are_observed_if_they_are_known() -> None:
    harness = SinkHarness()
    harness.publish(start_ns=10**18, end_ns=10**18 + 2 * 10**9, input_tokens=100, output_tokens=0)
    harness.publish(flags=frozenset[Flag](["no_tool_spans"]))
    assert harness.series("pathgauge_invocation_duration_seconds_sum") == {("planner", ""): 2}
    assert harness.series("pathgauge_invocation_duration_seconds_count") == {("planner", ""): 1}
    assert harness.series("pathgauge_invocation_tokens_sum") == {
        ("planner", "", "input"): 100,
        ("planner", "", "output"): 0,
    }
    assert harness.series("pathgauge_invocation_tool_calls_count") == {("planner", ""): 1}


@pytest.mark.parametrize(("end", "lag"), [(NOW - 7.5, 7.5), (NOW + 60, 0.0)])
def test_the_lag_is_the_time_from_the_end_of_the_span_and_never_negative(
    end: float, lag: float
) -> None:
    harness = SinkHarness()
    harness.publish(end_ns=int(end * 1e9))
    harness.publish(end_ns=None)
    assert harness.series("pathgauge_evaluation_lag_seconds_sum") == {(): pytest.approx(lag)}
    assert harness.series("pathgauge_evaluation_lag_seconds_count") == {(): 1}


def test_a_revision_changes_the_window_and_is_not_counted() -> None:
    harness = SinkHarness()
    earlier = harness.publish(0.0)
    counted = {
        name: harness.series(name)
        for name in (
            "pathgauge_score_sum",
            "pathgauge_evaluations_total",
            "pathgauge_invocations_total",
        )
    }
    harness.revise(earlier, 1.0)
    assert harness.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 1.0}
    assert harness.series("pathgauge_score_window_samples") == {("planner", "refund", "answer"): 1}
    assert {name: harness.series(name) for name in counted} == counted


def test_a_withdrawn_evaluation_leaves_the_window_and_stays_counted() -> None:
    harness = SinkHarness()
    earlier = harness.publish(0.0)
    harness.publish(1.0)
    harness.sink.withdraw(earlier.key)
    assert harness.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 1.0}
    assert outcomes(harness)["fail"] == 1


def test_finished_conversations_have_series_of_their_own() -> None:
    harness = SinkHarness(Criterion("rating", Rating(), 3.0), Criterion("seconds", Seconds()))
    scores = tuple(ConversationScore(criterion, 2.0) for criterion in harness.evaluator.criteria)
    harness.sink.publish_conversation(
        ConversationResult(
            "",
            "c",
            Reference("order", ()),
            "planner",
            "v1",
            scores,
            matched=1,
            missing=1,
            unexpected=0,
        ),
        NOW,
    )
    assert harness.series("pathgauge_case_score_sum") == {
        ("planner", "order", "rating", "v1"): 0.25
    }
    assert harness.series("pathgauge_cases_total") == {
        ("planner", "order", metric, "v1", outcome): float(
            (metric, outcome) in {("rating", "fail"), ("seconds", "informational")}
        )
        for metric, outcomes in [
            ("rating", ("pass", "fail", "informational")),
            ("seconds", ("pass", "fail", "informational", "not_evaluated")),
        ]
        for outcome in outcomes
    }
    harness.now += 100_000
    harness.publish()
    assert (
        harness.series("pathgauge_case_score_sum") == harness.series("pathgauge_cases_total") == {}
    )


def test_a_conversation_whose_missing_turns_have_no_worst_value_is_not_evaluated() -> None:
    harness = SinkHarness(Criterion("seconds", Seconds(), 3.0))
    scores = (ConversationScore(harness.evaluator.criteria[0], None),)
    harness.sink.publish_conversation(
        ConversationResult("", "c", Reference("order", ()), "planner", "v1", scores, 1, 1, 0), NOW
    )
    assert harness.series("pathgauge_case_score_sum") == {}
    assert harness.series("pathgauge_cases_total") == {
        ("planner", "order", "seconds", "v1", outcome): float(outcome == "not_evaluated")
        for outcome in ("pass", "fail", "informational", "not_evaluated")
    }


def test_series_of_conversations_start_at_0_with_the_first_turn() -> None:
    harness = SinkHarness(
        Criterion("trajectory", ToolTrajectoryF1(), 0.5), Criterion("rating", Rating(), 3.0)
    )
    turn = ReferenceTurn()
    reference = Reference("order", (turn, turn))
    harness.publish_evaluation(
        harness.evaluator.evaluate(
            harness.invocation(1.0, scenario_id="order", agent_version="v1"),
            Match(reference, turn, 0),
        )
    )
    assert harness.series("pathgauge_cases_total") == {
        ("planner", "order", "trajectory", "v1", outcome): 0
        for outcome in ("pass", "fail", "informational")
    }


def test_sessions_start_no_series_of_finished_conversations() -> None:
    harness = SinkHarness(Criterion("session", SessionToolTrajectory(), 0.5))
    turn = ReferenceTurn(tool_calls=())
    whole = harness.invocation(1.0, scenario_id="order", agent_version="v1")
    session = SessionResult("idle", (("t", "s"),), (SessionTurn(whole),))
    match = Match(Reference("order", (turn, turn)), turn, 0)
    harness.publish_evaluation(harness.evaluator.evaluate_session(whole, match, session))
    assert outcomes(harness)["pass"] == 1
    assert harness.series("pathgauge_cases_total") == {}


def test_a_stale_window_is_not_exported_but_threshold_and_timestamp_are() -> None:
    harness = SinkHarness(windows=Windows(stale_after_s=600))
    harness.publish()
    harness.now += 601
    labels = "planner", "refund", "answer"
    assert {
        name: harness.series(f"pathgauge_{name}")
        for name in ("score_window_mean", "score_window_min", "score_window_samples")
    } == {
        "score_window_mean": {},
        "score_window_min": {},
        "score_window_samples": {},
    }
    assert harness.series("pathgauge_threshold_breached") == {}
    assert harness.series("pathgauge_threshold") == {labels: 0.5}
    assert harness.series("pathgauge_last_evaluation_timestamp_seconds") == {labels[:2]: NOW}


def test_exemplars_name_the_entry_span() -> None:
    harness = SinkHarness()
    harness.publish(1.0)
    harness.publish(0.0)
    first = {"trace_id": f"{1:032x}", "span_id": f"{1:016x}"}
    second = {"trace_id": f"{2:032x}", "span_id": f"{2:016x}"}
    assert {
        labels["outcome"]: exemplar.labels
        for labels, exemplar in harness.exemplars("pathgauge_evaluations_total")
    } == {
        "pass": first,
        "fail": second,
    }
    assert {
        labels["le"]: (exemplar.labels, exemplar.value)
        for labels, exemplar in harness.exemplars("pathgauge_score_bucket")
    } == {
        "+Inf": (first, 1.0),
        "0.0": (second, 0.0),
    }


@pytest.mark.parametrize("answers", [(0.6, 0.7), (0.7, 0.6)])
def test_a_bucket_has_the_latest_exemplar_of_all_that_it_counts(
    answers: tuple[float, ...],
) -> None:
    harness = SinkHarness()
    for answer in answers:
        harness.publish(answer)
        harness.now += 5
    [(labels, exemplar)] = harness.exemplars("pathgauge_score_bucket")
    assert (labels["le"], exemplar.value) == ("0.7", answers[-1])


def test_an_exemplar_is_replaced_after_a_second_at_the_earliest() -> None:
    harness = SinkHarness()
    found = []
    for now in (NOW, NOW + 0.9, NOW + 1, NOW - 3600):
        harness.now = now
        harness.publish(1.0)
        found.append(
            [
                exemplar.labels["trace_id"]
                for name in EXEMPLARS
                for _, exemplar in harness.exemplars(name)
            ]
        )
    assert found == [[f"{number:032x}"] * len(EXEMPLARS) for number in (1, 1, 3, 4)]


def test_an_exemplar_is_dropped_when_another_one_of_the_series_is_five_minutes_newer() -> None:
    harness = SinkHarness()
    for at, answer in ((0, 0.0), (200, 0.6), (300, 0.8), (501, 1.0)):
        harness.now = NOW + at
        harness.publish(answer)
    found = {labels["le"] for labels, _ in harness.exemplars("pathgauge_score_bucket")}
    assert found == {"0.9", "+Inf"}


def test_an_exemplar_with_long_ids_is_cut_to_the_openmetrics_limit() -> None:
    harness = SinkHarness()
    huge = Invocation("f" * 1000, "e" * 1000, "test", final_response="1.0")
    harness.publish_evaluation(harness.evaluator.evaluate(huge, Match(unmatched="no_scenario_id")))
    [(_, exemplar)] = harness.exemplars("pathgauge_evaluations_total")
    assert exemplar.labels == {"trace_id": "f" * 32, "span_id": "e" * 16}


def test_thresholds_of_a_scenario_override_the_global_ones() -> None:
    harness = SinkHarness(ANSWER, Criterion("trajectory", Trajectory(), 0.9))
    harness.sink.configure(
        Evaluator(harness.evaluator.criteria, {"refund": (Criterion("answer", Answer(), 0.99),)}),
        REFERENCES,
    )
    for scenario in ("refund", "order", None):
        harness.publish(scenario_id=scenario)
    assert harness.series("pathgauge_threshold") == {
        ("planner", "refund", "answer"): 0.99,
        ("planner", "order", "answer"): 0.5,
        ("planner", "order", "trajectory"): 0.9,
        ("planner", "", "answer"): 0.5,
    }


def test_a_reload_drops_removed_criteria_and_starts_new_ones_at_0() -> None:
    harness = SinkHarness()
    harness.publish(0.25)
    harness.now += 60
    harness.sink.configure(Evaluator((Criterion("rating", Rating(), 3.0),)), REFERENCES)
    assert harness.series("pathgauge_threshold") == {("planner", "refund", "rating"): 3.0}
    assert harness.series("pathgauge_threshold_breached") == {}
    assert harness.series("pathgauge_score_window_mean") == {}
    begun = {
        labels: n
        for labels, n in harness.series("pathgauge_evaluations_total").items()
        if "rating" in labels
    }
    assert begun == {
        ("planner", "refund", "rating", "", o): 0
        for o in ("pass", "fail", "not_evaluated", "error")
    }


def test_a_reload_may_replace_the_scorer_behind_a_name() -> None:
    harness = SinkHarness(Criterion("quality", ToolTrajectoryF1()))
    harness.publish(tool_calls=tool_calls("look"))
    harness.evaluator = Evaluator((Criterion("quality", Rating()),))
    harness.sink.configure(harness.evaluator, REFERENCES)
    harness.publish(3.0)
    harness.evaluator = Evaluator((Criterion("quality", Seconds()),))
    harness.sink.configure(harness.evaluator, REFERENCES)
    harness.publish(3.0)
    assert (
        harness.series("pathgauge_evaluations_total")[
            "planner", "refund", "quality", "", "informational"
        ]
        == 2
    )
    assert harness.series("pathgauge_score_sum") == {("planner", "refund", "quality", ""): 0.5}
    assert set(harness.series("pathgauge_trajectory_calls_total").values()) == {0}


def test_windows_survive_a_reload_with_the_same_reference_and_criterion() -> None:
    harness = SinkHarness()
    harness.publish(0.25)
    harness.sink.configure(Evaluator((Criterion("answer", Answer(), 0.9),)), REFERENCES)
    assert harness.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.25}


@pytest.mark.parametrize(
    "references",
    [ReferenceSet([Reference("refund", (ReferenceTurn(),), version="new")]), ReferenceSet()],
)
def test_scores_against_different_references_are_not_mixed(
    references: ReferenceSet,
) -> None:
    harness = SinkHarness()
    harness.publish(0.25)
    harness.sink.configure(harness.evaluator, references)
    assert harness.series("pathgauge_score_window_mean") == {}


def test_beyond_the_limit_the_version_is_dropped_first_and_the_window_is_kept() -> None:
    harness = SinkHarness(ANSWER, limits=LabelLimits(max_series=2))
    for number, version in enumerate(("v1", "v2", "v3")):
        harness.publish(number / 2, agent_version=version)
    assert harness.series("pathgauge_score_window_samples") == {("planner", "refund", "answer"): 3}
    assert harness.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.5}


def test_only_scenarios_of_active_references_are_known() -> None:
    harness = SinkHarness()
    harness.publish(scenario_id="late")
    harness.sink.configure(harness.evaluator, ReferenceSet([Reference("late", (ReferenceTurn(),))]))
    harness.publish(scenario_id="late")
    harness.publish(scenario_id="refund")
    assert harness.series("pathgauge_score_window_samples") == {
        ("planner", "late", "answer"): 1,
        ("planner", "__other__", "answer"): 2,
    }


def test_reloads_are_reported() -> None:
    harness = SinkHarness()
    success, time = (
        "pathgauge_config_last_reload_successful",
        "pathgauge_config_last_reload_success_timestamp_seconds",
    )
    harness.now += 60
    harness.sink.configure_failed()
    assert (harness.series(success), harness.series(time)) == ({(): 0}, {(): NOW})
    harness.sink.configure(harness.evaluator, REFERENCES)
    assert (harness.series(success), harness.series(time)) == ({(): 1}, {(): NOW + 60})


def test_every_internal_counter_is_exported() -> None:
    harness = SinkHarness()
    for counter in harness.telemetry:
        counter.add(*(f"a {label}" for label in counter.labels), n=3)
    for counter in harness.telemetry:
        [values] = [
            values
            for values, count in harness.series(f"pathgauge_{counter.name}_total").items()
            if count == 3
        ]
        assert sorted(values) == sorted(f"a {label}" for label in counter.labels)


def test_queues_and_open_traces_are_read_at_the_scrape() -> None:
    waiting: list[str] = []
    harness = SinkHarness(
        queues={"spans": Queue(lambda: len(waiting), lambda: 100)}, traces_open=lambda: 7
    )
    waiting.append("one")
    assert harness.series("pathgauge_queue_size") == {("spans",): 1}
    assert harness.series("pathgauge_queue_capacity") == {("spans",): 100}
    assert harness.series("pathgauge_traces_open") == {(): 7}


def test_the_exposition_has_build_and_process_metrics_and_no_creation_times() -> None:
    harness = SinkHarness()
    harness.publish()
    for text in (
        generate_latest(harness.sink.registry).decode(),
        generate_openmetrics(harness.sink.registry).decode(),
    ):
        assert all(
            name in text
            for name in (
                "pathgauge_build_info{",
                "process_resident_memory_bytes",
                "python_gc_",
                "python_info{",
            )
        )
        assert "_created" not in text


def hostile(number: int) -> dict[str, Any]:
    return {
        "agent": f'agent-{number}\n"{{}}\\' + "\ud800" + "x" * 500,
        "agent_version": f"version-{number}",
        "scenario_id": f"scenario-{number}",
        "conversation_id": f"secret-{number}",
        "user_input": f"secret-{number}",
        "model": f"secret-{number}",
        "error_type": f"secret-{number}",
    }


def lines(harness: SinkHarness) -> int:
    return generate_latest(harness.sink.registry).count(b"\n")


@pytest.mark.slow
def test_new_names_leave_the_exposition_bounded_and_are_counted() -> None:
    harness = SinkHarness(limits=LabelLimits(max_agents=5, max_versions=3, max_series=50))
    for number in range(500):
        harness.publish(**hostile(number))
    before = lines(harness)
    for number in range(500, 20_000):
        harness.publish(**hostile(number))
    assert lines(harness) == before
    text = generate_openmetrics(harness.sink.registry).decode()
    assert "secret" not in text
    assert (
        len(
            {
                s.labels["agent"]
                for f in parse_openmetrics(text)
                for s in f.samples
                if "agent" in s.labels
            }
        )
        == 6
    )
    assert harness.series("pathgauge_series_overflow_total")["agents",] == 20_000 - 5
    assert (
        harness.series("pathgauge_score_window_samples")["__other__", "__other__", "answer"] == 100
    )
    assert sum(harness.series("pathgauge_evaluations_total").values()) == 20_000


def test_idle_names_are_dropped_with_all_their_series() -> None:
    harness = SinkHarness(
        ANSWER, Criterion("f1", ToolTrajectoryF1()), limits=LabelLimits(idle_s=3600)
    )
    harness.publish(agent="old", agent_version="v1", end_ns=1, start_ns=0, input_tokens=1)
    harness.now += 3601
    harness.publish(agent="new")
    text = generate_latest(harness.sink.registry).decode()
    assert 'agent="old"' not in "\n".join(
        line for line in text.splitlines() if "window" not in line
    )
    harness.publish(agent="old", agent_version="v1")
    assert harness.series("pathgauge_invocations_total")["old", "v1", "scenario", "ok"] == 1


def test_an_idle_scenario_is_dropped_and_the_invocations_of_its_agent_stay() -> None:
    harness = SinkHarness(limits=LabelLimits(idle_s=3600))
    harness.publish(scenario_id="refund")
    harness.now += 3000
    harness.publish(scenario_id=None)
    harness.now += 3000
    harness.publish(scenario_id=None)
    assert harness.series("pathgauge_score_count") == {("planner", "", "answer", ""): 2}
    assert sum(harness.series("pathgauge_invocations_total").values()) == 3


def test_each_criterion_takes_a_label_set() -> None:
    harness = SinkHarness(ANSWER, Criterion("waste", Waste()), limits=LabelLimits(max_series=3))
    harness.publish(scenario_id="refund")
    harness.publish(scenario_id=None)
    assert sorted(harness.series("pathgauge_score_count")) == [
        ("planner", "__other__", "answer", "__other__"),
        ("planner", "__other__", "waste", "__other__"),
        ("planner", "refund", "answer", ""),
        ("planner", "refund", "waste", ""),
    ]


def test_an_idle_version_is_dropped_and_the_agent_keeps_its_window_and_timestamp() -> None:
    harness = SinkHarness(
        limits=LabelLimits(idle_s=3600), windows=Windows(max_age_s=86_400, stale_after_s=86_400)
    )
    harness.publish(0.0, agent_version="v1")
    harness.now += 3000
    harness.publish(1.0, agent_version="v2")
    harness.now += 3000
    harness.publish(1.0, agent_version="v2")
    assert harness.series("pathgauge_score_count") == {("planner", "refund", "answer", "v2"): 2}
    assert harness.series("pathgauge_invocations_total") == {("planner", "v2", "scenario", "ok"): 2}
    assert harness.series("pathgauge_score_window_samples") == {("planner", "refund", "answer"): 3}
    assert harness.series("pathgauge_last_evaluation_timestamp_seconds") == {
        ("planner", "refund"): NOW + 6000
    }


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [None, DurableMetrics()], ids=["alone", "with an owner"])
def test_scrapes_and_reloads_may_run_while_evaluations_are_published(
    metrics: DurableMetrics | None,
) -> None:
    harness = SinkHarness(
        metrics=metrics, limits=LabelLimits(max_agents=3, max_versions=2, max_series=20, idle_s=1)
    )
    stop, errors = threading.Event(), list[BaseException]()

    def scrape() -> None:
        try:
            while not stop.is_set():
                list(parse_text(generate_latest(harness.sink.registry).decode()))
                harness.sink.configure(harness.evaluator, REFERENCES)
        except BaseException as error:
            errors.append(error)

    scraper = threading.Thread(target=scrape)
    scraper.start()
    for number in range(3000):
        harness.now += 0.5
        harness.publish(agent=f"agent-{number // 100}", agent_version=f"v{number % 7}")
        if metrics is not None:
            metrics.pending()
            metrics.commit()
    stop.set()
    scraper.join()
    assert errors == []
    assert harness.series("pathgauge_evaluation_lag_seconds_count") == {(): 0}


def test_a_closed_sink_can_still_be_scraped() -> None:
    harness = SinkHarness()
    harness.publish()
    harness.sink.close()
    harness.sink.close()
    assert outcomes(harness)["pass"] == 1


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not on PATH, so the exposition was not linted",
)
def test_promtool_accepts_the_exposition() -> None:
    harness = SinkHarness(
        ANSWER, Criterion("seconds", Seconds(), 3.0), queues={"spans": Queue(lambda: 0, lambda: 1)}
    )
    harness.publish(**hostile(1), end_ns=1, start_ns=0, input_tokens=1)
    harness.publish("undefined")
    for counter in harness.telemetry:
        counter.add(*("x" for _ in counter.labels))
    checked = subprocess.run(
        ["promtool", "check", "metrics"],
        input=generate_latest(harness.sink.registry),
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
