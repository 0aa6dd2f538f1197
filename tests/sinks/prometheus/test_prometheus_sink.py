"""The Prometheus sink, seen as Prometheus sees it: through its exposition."""

from __future__ import annotations

import shutil
import subprocess
import threading
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.labels import LabelLimits
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.scorers.authoring.testing import expected_calls, reference_turn, tool_calls
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Flag, Invocation, Reference, ReferenceTurn
from support.sink_bench import (
    ANSWER,
    NOW,
    REFERENCES,
    Answer,
    Bench,
    Rating,
    Seconds,
    Trajectory,
    Waste,
    generate_openmetrics,
    parse_openmetrics,
)

EXEMPLARS = ("pathgauge_evaluations_total", "pathgauge_score_bucket")


def outcomes(bench: Bench) -> dict[str, float]:
    return {
        labels[-1]: count for labels, count in bench.series("pathgauge_evaluations_total").items()
    }


def test_window_gauges_are_in_the_scale_of_the_scorer() -> None:
    bench = Bench(Criterion("rating", Rating()))
    for said in (2.0, 4.0, 4.5):
        bench.publish(said)
    assert {
        name: bench.series(f"pathgauge_score_window_{name}") for name in ("mean", "min", "samples")
    } == {
        "mean": {("planner", "refund", "rating"): 3.5},
        "min": {("planner", "refund", "rating"): 2.0},
        "samples": {("planner", "refund", "rating"): 3},
    }


def test_the_score_histogram_is_brought_to_0_1() -> None:
    bench = Bench(Criterion("rating", Rating()))
    for said in (1.0, 3.0, 5.0):
        bench.publish(said, agent_version="v1")
    labels = "planner", "refund", "rating", "v1"
    assert bench.series("pathgauge_score_sum") == {labels: 1.5}
    assert bench.series("pathgauge_score_count") == {labels: 3}
    buckets = {le: count for (*_, le), count in bench.series("pathgauge_score_bucket").items()}
    assert buckets == {
        **dict.fromkeys(["0.0", "0.1", "0.2", "0.3", "0.4"], 1),
        **dict.fromkeys(["0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99"], 2),
        **dict.fromkeys(["1.0", "+Inf"], 3),
    }


def test_the_score_histogram_keeps_the_direction_of_the_metric() -> None:
    bench = Bench(Criterion("waste", Waste()))
    bench.publish(0.25)
    assert bench.series("pathgauge_score_sum") == {("planner", "refund", "waste", ""): 0.25}


def test_a_metric_without_an_upper_end_has_gauges_and_no_histogram() -> None:
    bench = Bench(Criterion("seconds", Seconds(), 30.0))
    bench.publish(12.5)
    assert bench.series("pathgauge_score_count") == {}
    assert bench.series("pathgauge_score_window_mean") == {("planner", "refund", "seconds"): 12.5}
    assert outcomes(bench)["pass"] == 1


@pytest.mark.parametrize(
    ("criterion", "said", "breached"),
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
    criterion: Criterion, said: float, breached: int
) -> None:
    bench = Bench(criterion)
    bench.publish(said)
    labels = "planner", "refund", criterion.name
    assert bench.series("pathgauge_threshold") == {labels: criterion.threshold}
    assert bench.series("pathgauge_threshold_breached") == {labels: breached}


def test_a_threshold_is_not_breached_by_few_samples() -> None:
    bench = Bench(min_samples=3)
    seen: list[float] = []
    for _ in range(3):
        bench.publish(0.0)
        seen += bench.series("pathgauge_threshold_breached").values()
    assert seen == [0, 0, 1]


def test_a_criterion_without_threshold_has_no_threshold_series() -> None:
    bench = Bench(Criterion("answer", Answer()))
    bench.publish(0.0)
    assert bench.series("pathgauge_threshold") == bench.series("pathgauge_threshold_breached") == {}
    assert outcomes(bench) == {
        "pass": 0,
        "fail": 0,
        "not_evaluated": 0,
        "error": 0,
        "informational": 1,
    }


def test_every_outcome_is_counted_and_begins_at_zero() -> None:
    bench = Bench()
    seen = []
    for said in (1.0, 0.0, "content missing", 7.0):
        bench.publish(said)
        seen.append(outcomes(bench))
    assert seen == [
        {"pass": 1, "fail": 0, "not_evaluated": 0, "error": 0, "informational": 0},
        {"pass": 1, "fail": 1, "not_evaluated": 0, "error": 0, "informational": 0},
        {"pass": 1, "fail": 1, "not_evaluated": 1, "error": 0, "informational": 0},
        {"pass": 1, "fail": 1, "not_evaluated": 1, "error": 1, "informational": 0},
    ]


def test_the_calls_behind_a_trajectory_score_are_counted_and_begin_at_zero() -> None:
    expected = reference_turn(*expected_calls("look refund mail"))
    references = ReferenceSet([Reference("refund", (expected,)), Reference("order", (expected,))])
    bench = Bench(Criterion("f1", ToolTrajectoryF1(), 0.5), ANSWER)
    bench.sink.configure(bench.evaluator, references)
    known = [
        bench.invocation(tool_calls=calls)
        for calls in (tool_calls("look refund look"), tool_calls("refund"))
    ]
    unknown = bench.invocation(scenario_id="order", flags=frozenset({"no_tool_spans"}))
    for invocation in (*known, unknown):
        bench.tell(bench.evaluator.evaluate(invocation, references.match(invocation)))
    assert bench.series("pathgauge_trajectory_calls_total") == {
        ("planner", "refund", "f1", "", "matched"): 3,
        ("planner", "refund", "f1", "", "actual"): 4,
        ("planner", "refund", "f1", "", "expected"): 6,
        **{("planner", "order", "f1", "", count): 0 for count in ("matched", "actual", "expected")},
    }


def test_reasons_for_not_evaluating_come_from_the_closed_set() -> None:
    bench = Bench()
    bench.publish("args_not_recorded")
    bench.publish("args_not_recorded")
    bench.publish("what the agent said")
    assert bench.series("pathgauge_not_evaluated_total") == {
        ("answer", "args_not_recorded"): 2,
        ("answer", "__other__"): 1,
    }


def test_each_metric_says_its_range_and_direction_once() -> None:
    bench = Bench(ANSWER, Criterion("rating", Rating()), Criterion("seconds", Seconds()))
    bench.sink.configure(
        Evaluator(bench.evaluator.criteria, {"refund": (ANSWER, Criterion("waste", Waste()))}),
        REFERENCES,
    )
    assert bench.series("pathgauge_metric_info") == {
        ("answer", "0", "1", "higher_is_better"): 1,
        ("rating", "1", "5", "higher_is_better"): 1,
        ("seconds", "0", "+Inf", "lower_is_better"): 1,
        ("waste", "0", "1", "lower_is_better"): 1,
    }


def test_of_two_scorers_under_one_name_the_one_of_all_scenarios_is_described() -> None:
    bench = Bench(ANSWER)
    bench.sink.configure(
        Evaluator((ANSWER,), {"refund": (Criterion("answer", Waste()),)}), REFERENCES
    )
    assert bench.series("pathgauge_metric_info") == {("answer", "0", "1", "higher_is_better"): 1}


def test_the_last_evaluation_is_that_of_the_last_score() -> None:
    bench = Bench()
    bench.publish(scenario_id=None)
    told = bench.publish()
    bench.now += 60
    bench.publish("undefined")
    bench.revise(told, 0.0)
    assert bench.series("pathgauge_last_evaluation_timestamp_seconds") == {
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
    bench = Bench()
    bench.publish(**fields)
    assert bench.series("pathgauge_invocations_total") == {labels: 1}


def test_duration_tokens_and_calls_are_observed_where_they_are_known() -> None:
    bench = Bench()
    bench.publish(start_ns=10**18, end_ns=10**18 + 2 * 10**9, input_tokens=100, output_tokens=0)
    bench.publish(flags=frozenset[Flag](["no_tool_spans"]))
    assert bench.series("pathgauge_invocation_duration_seconds_sum") == {("planner", ""): 2}
    assert bench.series("pathgauge_invocation_duration_seconds_count") == {("planner", ""): 1}
    assert bench.series("pathgauge_invocation_tokens_sum") == {
        ("planner", "", "input"): 100,
        ("planner", "", "output"): 0,
    }
    assert bench.series("pathgauge_invocation_tool_calls_count") == {("planner", ""): 1}


@pytest.mark.parametrize(("end", "lag"), [(NOW - 7.5, 7.5), (NOW + 60, 0.0)])
def test_the_lag_is_the_time_from_the_end_of_the_span_and_never_negative(
    end: float, lag: float
) -> None:
    bench = Bench()
    bench.publish(end_ns=int(end * 1e9))
    bench.publish(end_ns=None)
    assert bench.series("pathgauge_evaluation_lag_seconds_sum") == {(): pytest.approx(lag)}
    assert bench.series("pathgauge_evaluation_lag_seconds_count") == {(): 1}


def test_a_revision_moves_the_window_and_counts_nothing() -> None:
    bench = Bench()
    told = bench.publish(0.0)
    counted = {
        name: bench.series(name)
        for name in (
            "pathgauge_score_sum",
            "pathgauge_evaluations_total",
            "pathgauge_invocations_total",
        )
    }
    bench.revise(told, 1.0)
    assert bench.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 1.0}
    assert bench.series("pathgauge_score_window_samples") == {("planner", "refund", "answer"): 1}
    assert {name: bench.series(name) for name in counted} == counted


def test_a_withdrawn_evaluation_leaves_the_window_and_stays_counted() -> None:
    bench = Bench()
    told = bench.publish(0.0)
    bench.publish(1.0)
    bench.sink.withdraw(told.key)
    assert bench.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 1.0}
    assert outcomes(bench)["fail"] == 1


def test_finished_conversations_have_series_of_their_own() -> None:
    bench = Bench(Criterion("rating", Rating(), 3.0), Criterion("seconds", Seconds()))
    scores = tuple(ConversationScore(criterion, 2.0) for criterion in bench.evaluator.criteria)
    bench.sink.publish_conversation(
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
    assert bench.series("pathgauge_case_score_sum") == {("planner", "order", "rating", "v1"): 0.25}
    assert bench.series("pathgauge_cases_total") == {
        ("planner", "order", metric, "v1", outcome): float(
            (metric, outcome) in {("rating", "fail"), ("seconds", "informational")}
        )
        for metric in ("rating", "seconds")
        for outcome in ("pass", "fail", "informational")
    }
    bench.now += 100_000
    bench.publish()
    assert bench.series("pathgauge_case_score_sum") == bench.series("pathgauge_cases_total") == {}


def test_series_of_conversations_begin_at_0_with_the_first_turn() -> None:
    bench = Bench(
        Criterion("trajectory", ToolTrajectoryF1(), 0.5), Criterion("rating", Rating(), 3.0)
    )
    turn = ReferenceTurn()
    reference = Reference("order", (turn, turn))
    bench.tell(
        bench.evaluator.evaluate(
            bench.invocation(1.0, scenario_id="order", agent_version="v1"),
            Match(reference, turn, 0),
        )
    )
    assert bench.series("pathgauge_cases_total") == {
        ("planner", "order", "trajectory", "v1", outcome): 0
        for outcome in ("pass", "fail", "informational")
    }


def test_a_stale_window_is_gone_while_threshold_and_timestamp_stay() -> None:
    bench = Bench(windows=Windows(stale_after_s=600))
    bench.publish()
    bench.now += 601
    labels = "planner", "refund", "answer"
    assert {
        name: bench.series(f"pathgauge_{name}")
        for name in ("score_window_mean", "score_window_min", "score_window_samples")
    } == {
        "score_window_mean": {},
        "score_window_min": {},
        "score_window_samples": {},
    }
    assert bench.series("pathgauge_threshold_breached") == {}
    assert bench.series("pathgauge_threshold") == {labels: 0.5}
    assert bench.series("pathgauge_last_evaluation_timestamp_seconds") == {labels[:2]: NOW}


def test_exemplars_lead_from_buckets_and_verdicts_to_the_anchor_span() -> None:
    bench = Bench()
    bench.publish(1.0)
    bench.publish(0.0)
    first = {"trace_id": f"{1:032x}", "span_id": f"{1:016x}"}
    second = {"trace_id": f"{2:032x}", "span_id": f"{2:016x}"}
    assert {
        labels["outcome"]: exemplar.labels
        for labels, exemplar in bench.exemplars("pathgauge_evaluations_total")
    } == {
        "pass": first,
        "fail": second,
    }
    assert {
        labels["le"]: (exemplar.labels, exemplar.value)
        for labels, exemplar in bench.exemplars("pathgauge_score_bucket")
    } == {
        "1.0": (first, 1.0),
        "0.0": (second, 0.0),
    }


def test_an_exemplar_stands_for_a_second_before_the_next_takes_its_place() -> None:
    bench = Bench()
    found = []
    for now in (NOW, NOW + 0.9, NOW + 1, NOW - 3600):
        bench.now = now
        bench.publish(1.0)
        found.append(
            [
                exemplar.labels["trace_id"]
                for name in EXEMPLARS
                for _, exemplar in bench.exemplars(name)
            ]
        )
    assert found == [[f"{number:032x}"] * len(EXEMPLARS) for number in (1, 1, 3, 4)]


def test_an_exemplar_of_enormous_ids_is_cut_to_what_openmetrics_allows() -> None:
    bench = Bench()
    huge = Invocation("f" * 1000, "e" * 1000, "test", final_response="1.0")
    bench.tell(bench.evaluator.evaluate(huge, Match(unmatched="no_scenario_id")))
    [(_, exemplar)] = bench.exemplars("pathgauge_evaluations_total")
    assert exemplar.labels == {"trace_id": "f" * 32, "span_id": "e" * 16}


def test_thresholds_of_a_scenario_override_the_global_ones() -> None:
    bench = Bench(ANSWER, Criterion("trajectory", Trajectory(), 0.9))
    bench.sink.configure(
        Evaluator(bench.evaluator.criteria, {"refund": (Criterion("answer", Answer(), 0.99),)}),
        REFERENCES,
    )
    for scenario in ("refund", "order", None):
        bench.publish(scenario_id=scenario)
    assert bench.series("pathgauge_threshold") == {
        ("planner", "refund", "answer"): 0.99,
        ("planner", "order", "answer"): 0.5,
        ("planner", "order", "trajectory"): 0.9,
        ("planner", "", "answer"): 0.5,
    }


def test_after_a_reload_criteria_that_are_gone_have_no_series_and_new_ones_begin_at_zero() -> None:
    bench = Bench()
    bench.publish(0.25)
    bench.now += 60
    bench.sink.configure(Evaluator((Criterion("rating", Rating(), 3.0),)), REFERENCES)
    assert bench.series("pathgauge_threshold") == {("planner", "refund", "rating"): 3.0}
    assert bench.series("pathgauge_threshold_breached") == {}
    assert bench.series("pathgauge_score_window_mean") == {}
    begun = {
        labels: n
        for labels, n in bench.series("pathgauge_evaluations_total").items()
        if "rating" in labels
    }
    assert begun == {
        ("planner", "refund", "rating", "", o): 0
        for o in ("pass", "fail", "not_evaluated", "error", "informational")
    }


def test_after_a_reload_another_scorer_under_the_name_of_an_old_one_is_counted_by_its_own_rules() -> (
    None
):
    bench = Bench(Criterion("quality", ToolTrajectoryF1()))
    bench.publish(tool_calls=tool_calls("look"))
    bench.evaluator = Evaluator((Criterion("quality", Rating()),))
    bench.sink.configure(bench.evaluator, REFERENCES)
    bench.publish(3.0)
    bench.evaluator = Evaluator((Criterion("quality", Seconds()),))
    bench.sink.configure(bench.evaluator, REFERENCES)
    bench.publish(3.0)
    assert (
        bench.series("pathgauge_evaluations_total")[
            "planner", "refund", "quality", "", "informational"
        ]
        == 2
    )
    assert bench.series("pathgauge_score_sum") == {("planner", "refund", "quality", ""): 0.5}
    assert set(bench.series("pathgauge_trajectory_calls_total").values()) == {0}


def test_windows_outlive_a_reload_that_leaves_their_reference_and_criterion() -> None:
    bench = Bench()
    bench.publish(0.25)
    bench.sink.configure(Evaluator((Criterion("answer", Answer(), 0.9),)), REFERENCES)
    assert bench.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.25}


@pytest.mark.parametrize(
    "references",
    [ReferenceSet([Reference("refund", (ReferenceTurn(),), version="new")]), ReferenceSet()],
)
def test_no_mean_is_taken_over_scores_against_different_references(
    references: ReferenceSet,
) -> None:
    bench = Bench()
    bench.publish(0.25)
    bench.sink.configure(bench.evaluator, references)
    assert bench.series("pathgauge_score_window_mean") == {}


def test_of_too_many_combinations_the_version_goes_first_and_the_window_stays_whole() -> None:
    bench = Bench(ANSWER, limits=LabelLimits(max_series=2))
    for number, version in enumerate(("v1", "v2", "v3")):
        bench.publish(number / 2, agent_version=version)
    assert bench.series("pathgauge_score_window_samples") == {("planner", "refund", "answer"): 3}
    assert bench.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.5}


def test_the_scenarios_of_the_references_in_force_are_known_and_no_others() -> None:
    bench = Bench()
    bench.publish(scenario_id="late")
    bench.sink.configure(bench.evaluator, ReferenceSet([Reference("late", (ReferenceTurn(),))]))
    bench.publish(scenario_id="late")
    bench.publish(scenario_id="refund")
    assert bench.series("pathgauge_score_window_samples") == {
        ("planner", "late", "answer"): 1,
        ("planner", "__other__", "answer"): 2,
    }


def test_reloads_are_reported() -> None:
    bench = Bench()
    success, time = (
        "pathgauge_config_last_reload_successful",
        "pathgauge_config_last_reload_success_timestamp_seconds",
    )
    bench.now += 60
    bench.sink.configure_failed()
    assert (bench.series(success), bench.series(time)) == ({(): 0}, {(): NOW})
    bench.sink.configure(bench.evaluator, REFERENCES)
    assert (bench.series(success), bench.series(time)) == ({(): 1}, {(): NOW + 60})


def test_every_counter_of_the_ledger_is_exported() -> None:
    bench = Bench()
    for counter in bench.telemetry:
        counter.add(*(f"a {label}" for label in counter.labels), n=3)
    for counter in bench.telemetry:
        [values] = [
            values
            for values, count in bench.series(f"pathgauge_{counter.name}_total").items()
            if count == 3
        ]
        assert sorted(values) == sorted(f"a {label}" for label in counter.labels)


def test_queues_and_open_traces_are_read_at_the_scrape() -> None:
    waiting: list[str] = []
    bench = Bench(queues={"spans": Queue(lambda: len(waiting), 100)}, traces_open=lambda: 7)
    waiting.append("one")
    assert bench.series("pathgauge_queue_size") == {("spans",): 1}
    assert bench.series("pathgauge_queue_capacity") == {("spans",): 100}
    assert bench.series("pathgauge_traces_open") == {(): 7}


def test_the_exposition_tells_of_build_process_and_interpreter_but_not_of_creation_times() -> None:
    bench = Bench()
    bench.publish()
    for text in (
        generate_latest(bench.sink.registry).decode(),
        generate_openmetrics(bench.sink.registry).decode(),
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


def lines(bench: Bench) -> int:
    return generate_latest(bench.sink.registry).count(b"\n")


def test_endless_new_names_leave_the_exposition_bounded_and_are_counted() -> None:
    bench = Bench(limits=LabelLimits(max_agents=5, max_versions=3, max_series=50))
    for number in range(500):
        bench.publish(**hostile(number))
    before = lines(bench)
    for number in range(500, 20_000):
        bench.publish(**hostile(number))
    assert lines(bench) == before
    text = generate_openmetrics(bench.sink.registry).decode()
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
    assert bench.series("pathgauge_series_overflow_total")["agents",] == 20_000 - 5
    assert bench.series("pathgauge_score_window_samples")["__other__", "__other__", "answer"] == 100
    assert sum(bench.series("pathgauge_evaluations_total").values()) == 20_000


def test_names_that_nobody_used_for_long_leave_with_all_their_series() -> None:
    bench = Bench(ANSWER, Criterion("f1", ToolTrajectoryF1()), limits=LabelLimits(idle_s=3600))
    bench.publish(agent="old", agent_version="v1", end_ns=1, start_ns=0, input_tokens=1)
    bench.now += 3601
    bench.publish(agent="new")
    text = generate_latest(bench.sink.registry).decode()
    assert 'agent="old"' not in "\n".join(
        line for line in text.splitlines() if "window" not in line
    )
    bench.publish(agent="old", agent_version="v1")
    assert bench.series("pathgauge_invocations_total")["old", "v1", "scenario", "ok"] == 1


def test_an_idle_scenario_leaves_and_the_invocations_of_its_agent_stay() -> None:
    bench = Bench(limits=LabelLimits(idle_s=3600))
    bench.publish(scenario_id="refund")
    bench.now += 3000
    bench.publish(scenario_id=None)
    bench.now += 3000
    bench.publish(scenario_id=None)
    assert bench.series("pathgauge_score_count") == {("planner", "", "answer", ""): 2}
    assert sum(bench.series("pathgauge_invocations_total").values()) == 3


def test_each_criterion_takes_a_label_set() -> None:
    bench = Bench(ANSWER, Criterion("waste", Waste()), limits=LabelLimits(max_series=3))
    bench.publish(scenario_id="refund")
    bench.publish(scenario_id=None)
    assert sorted(bench.series("pathgauge_score_count")) == [
        ("planner", "__other__", "answer", "__other__"),
        ("planner", "__other__", "waste", "__other__"),
        ("planner", "refund", "answer", ""),
        ("planner", "refund", "waste", ""),
    ]


def test_an_idle_version_leaves_and_the_agent_keeps_its_window_and_timestamp() -> None:
    bench = Bench(
        limits=LabelLimits(idle_s=3600), windows=Windows(max_age_s=86_400, stale_after_s=86_400)
    )
    bench.publish(0.0, agent_version="v1")
    bench.now += 3000
    bench.publish(1.0, agent_version="v2")
    bench.now += 3000
    bench.publish(1.0, agent_version="v2")
    assert bench.series("pathgauge_score_count") == {("planner", "refund", "answer", "v2"): 2}
    assert bench.series("pathgauge_invocations_total") == {("planner", "v2", "scenario", "ok"): 2}
    assert bench.series("pathgauge_score_window_samples") == {("planner", "refund", "answer"): 3}
    assert bench.series("pathgauge_last_evaluation_timestamp_seconds") == {
        ("planner", "refund"): NOW + 6000
    }


@pytest.mark.parametrize("metrics", [None, DurableMetrics()], ids=["alone", "with an owner"])
def test_scrapes_and_reloads_may_run_beside_publishing_and_settling(
    metrics: DurableMetrics | None,
) -> None:
    bench = Bench(
        metrics=metrics, limits=LabelLimits(max_agents=3, max_versions=2, max_series=20, idle_s=1)
    )
    stop, errors = threading.Event(), list[BaseException]()

    def scrape() -> None:
        try:
            while not stop.is_set():
                list(parse_text(generate_latest(bench.sink.registry).decode()))
                bench.sink.configure(bench.evaluator, REFERENCES)
        except BaseException as error:
            errors.append(error)

    scraper = threading.Thread(target=scrape)
    scraper.start()
    for number in range(3000):
        bench.now += 0.5
        bench.publish(agent=f"agent-{number // 100}", agent_version=f"v{number % 7}")
        if metrics is not None:
            metrics.pending()
            metrics.commit()
    stop.set()
    scraper.join()
    assert errors == []
    assert bench.series("pathgauge_evaluation_lag_seconds_count") == {(): 0}


def test_closing_twice_leaves_the_last_numbers_to_scrape() -> None:
    bench = Bench()
    bench.publish()
    bench.sink.close()
    bench.sink.close()
    assert outcomes(bench)["pass"] == 1


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not on PATH, so the exposition was not linted",
)
def test_promtool_finds_nothing_to_complain_about() -> None:
    bench = Bench(
        ANSWER, Criterion("seconds", Seconds(), 3.0), queues={"spans": Queue(lambda: 0, 1)}
    )
    bench.publish(**hostile(1), end_ns=1, start_ns=0, input_tokens=1)
    bench.publish("undefined")
    for counter in bench.telemetry:
        counter.add(*("x" for _ in counter.labels))
    checked = subprocess.run(
        ["promtool", "check", "metrics"],
        input=generate_latest(bench.sink.registry),
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
