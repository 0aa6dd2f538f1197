"""Scores that a model gave name their judge, and those of another judge begin anew; all others look
as if there were no judges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from prometheus_client import generate_latest

from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.sinks.prometheus.labels import NAME_BYTES, LabelLimits
from pathgauge.scorers.types import Invocation, Json, Reference, ReferenceTurn, Score
from support.durable_sink import Durable
from support.sink_bench import ANSWER, Answer, Bench, with_turns

ONE, OTHER = "gpt-4.1-mini@1f3a9c20", "gpt-4.1-mini@99990000"
PLAIN = ("planner", "refund", "answer")
ONE_TURN = with_turns(Reference("refund", ()), Reference("order", ()))


def quality(judge: str = ONE, threshold: float | None = 0.5) -> Criterion:
    return Criterion("quality", Answer(), threshold, 0.9, judge=judge)


def reload(
    bench: Bench, *criteria: Criterion, overrides: dict[str, tuple[Criterion, ...]] | None = None
) -> None:
    bench.evaluator = Evaluator(criteria, overrides)
    bench.sink.configure(bench.evaluator, bench.references)


@pytest.mark.parametrize(
    "name",
    [
        "score_window_mean",
        "score_window_min",
        "score_window_samples",
        "threshold",
        "threshold_breached",
        "score_count",
        "evaluations_total",
    ],
)
def test_the_series_of_a_judged_metric_name_the_judge_and_others_do_not(name: str) -> None:
    bench = Bench(ANSWER, quality())
    bench.publish(0.75, agent_version="v1")
    judges = {labels[2]: labels[-1] for labels in bench.series(f"pathgauge_{name}")}
    assert judges["quality"] == ONE
    assert judges["answer"] != ""
    text = generate_latest(bench.sink.registry).decode()
    assert 'judge=""' not in text
    assert not [line for line in text.splitlines() if 'metric="answer"' in line and "judge" in line]


def test_objectives_cases_and_comparisons_name_the_judge_too() -> None:
    bench = Bench(quality(), windows=Windows(size=3))
    for version in ("v1", "v2"):
        for _ in range(3):
            bench.now += 1
            bench.publish(1.0, agent_version=version)
    case = ConversationResult(
        "",
        "c",
        Reference("refund", ()),
        "planner",
        "v1",
        (ConversationScore(bench.evaluator.criteria[0], 1.0),),
        1,
        0,
        0,
    )
    bench.sink.publish_conversation(case, bench.now)
    names = (
        "objective",
        "case_score_count",
        "cases_total",
        "baseline_score",
        "baseline_samples",
        "regression_score",
        "regression_samples",
    )
    assert [{labels[-1] for labels in bench.series(f"pathgauge_{name}")} for name in names] == [
        {ONE}
    ] * len(names)


def test_what_is_shown_of_a_metric_without_judge_is_the_same_whether_others_have_one() -> None:
    alone, beside = Bench(ANSWER), Bench(ANSWER, quality())
    for bench in (alone, beside):
        bench.publish(0.75, agent_version="v1")
        bench.publish(0.0)
    shown = [
        [
            line
            for line in generate_latest(bench.sink.registry).decode().splitlines()
            if 'metric="answer"' in line
        ]
        for bench in (alone, beside)
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) > 20


def test_with_tenants_the_judge_is_named_as_well() -> None:
    bench = Bench(quality(), tenants=True)
    bench.publish(1.0, tenant="acme")
    assert bench.series("pathgauge_score_count") == {
        ("acme", "planner", "refund", "quality", "", ONE): 1
    }


@pytest.mark.parametrize(
    ("judge", "shown"),
    [
        (ONE, ONE),
        ("m" * 100 + "@1f3a9c20", "m" * NAME_BYTES + "@1f3a9c20"),
        ("openrouter:meta/llama@v3@1f3a9c20", "openrouter:meta/llama@v3@1f3a9c20"),
        ("modèle\ud800@1f3a9c20", "modèle?@1f3a9c20"),
    ],
)
def test_the_name_of_a_model_is_cut_and_its_template_is_not(judge: str, shown: str) -> None:
    bench = Bench(quality(judge))
    bench.publish(1.0)
    assert {labels[-1] for labels in bench.series("pathgauge_score_window_mean")} == {shown}
    assert {labels[-1] for labels in bench.series("pathgauge_evaluations_total")} == {shown}


@pytest.mark.parametrize("after", [OTHER, ""])
def test_another_judge_begins_windows_and_counts_anew_and_leaves_those_of_others_alone(
    after: str,
) -> None:
    bench = Bench(ANSWER, quality(), windows=Windows(size=5))
    bench.publish(0.0)
    reload(bench, ANSWER, quality(after))
    assert bench.series("pathgauge_score_window_mean") == {PLAIN: 0.0}
    bench.publish(1.0)
    new = ("planner", "refund", "quality", *([after] if after else []))
    assert bench.series("pathgauge_score_window_mean") == {PLAIN: 0.5, new: 1.0}
    counted = ("planner", "refund", "quality", "", *([after] if after else []))
    assert bench.series("pathgauge_score_count") == {(*PLAIN, ""): 2, counted: 1}


def test_a_reload_with_the_same_judge_changes_nothing() -> None:
    bench = Durable(quality())
    bench.publish(0.0)
    bench.commit()
    before = bench.exposition()
    reload(bench, quality())
    bench.commit()
    assert bench.exposition() == before


def test_a_judge_that_is_in_force_somewhere_keeps_its_series() -> None:
    bench = Bench(quality(), references=ONE_TURN)
    bench.publish(0.0, scenario_id="order")
    reload(bench, quality(OTHER), overrides={"order": (quality(),)})
    assert bench.series("pathgauge_score_window_mean") == {
        ("planner", "order", "quality", ONE): 0.0
    }
    assert bench.series("pathgauge_score_count")[("planner", "order", "quality", "", ONE)] == 1
    reload(bench, quality(OTHER))
    assert bench.series("pathgauge_score_window_mean") == {}
    assert bench.series("pathgauge_score_count") == {("planner", "order", "quality", "", OTHER): 0}


def test_a_verdict_that_a_former_judge_gives_late_is_counted_as_its_own_and_is_in_no_window() -> (
    None
):
    bench = Bench(ANSWER, quality())
    late = bench.evaluator.evaluate(
        bench.invocation(0.0), bench.references.match(bench.invocation())
    )
    reload(bench, ANSWER, quality(OTHER))
    bench.publish(1.0)
    plain, judged = (replace(late, results=(result,)) for result in late.results)
    bench.tell(plain)
    bench.sink.publish_judged(Judged(judged, first=True), bench.now)
    assert bench.series("pathgauge_score_window_mean") == {
        PLAIN: 0.5,
        ("planner", "refund", "quality", OTHER): 1.0,
    }
    assert bench.series("pathgauge_score_sum") == {
        (*PLAIN, ""): 1.0,
        ("planner", "refund", "quality", "", OTHER): 1.0,
        ("planner", "refund", "quality", "", ONE): 0.0,
    }


def test_scenarios_with_judges_of_their_own_name_these() -> None:
    bench = Bench(quality(), references=ONE_TURN)
    reload(bench, quality(), overrides={"order": (quality(OTHER),)})
    for scenario in ("refund", "order", "unheard of"):
        bench.publish(1.0, scenario_id=scenario)
    assert set(bench.series("pathgauge_score_window_mean")) == {
        ("planner", "refund", "quality", ONE),
        ("planner", "order", "quality", OTHER),
        ("planner", "__other__", "quality", ONE),
    }
    assert {labels[1]: labels[-1] for labels in bench.series("pathgauge_threshold")} == {
        "refund": ONE,
        "order": OTHER,
        "__other__": ONE,
    }
    assert bench.series("pathgauge_judge_info") == {
        ("quality", *ONE.split("@")): 1,
        ("quality", *OTHER.split("@")): 1,
    }


def test_the_past_of_one_judge_is_not_compared_with_another() -> None:
    bench = Bench(quality(), windows=Windows(size=20))
    for version, judge in (("v1", ONE), ("v2", OTHER), ("v3", OTHER)):
        reload(bench, quality(judge))
        for _ in range(6):
            bench.now += 1
            bench.publish(0.5, agent_version=version)
        if version == "v2":
            assert bench.series("pathgauge_baseline_score") == {}
    assert bench.series("pathgauge_baseline_samples") == {
        ("planner", "refund", "quality", "version", OTHER): 6
    }


def test_a_scorer_that_another_model_answers_counts_for_that_model_also_while_others_keep_theirs() -> (
    None
):
    beside = Criterion("safety", Answer(), judge=ONE)
    bench = Bench(quality(), beside)
    bench.publish(1.0)
    reload(bench, replace(bench.evaluator.criteria[0], judge=OTHER), beside)
    bench.publish(0.0)
    assert bench.series("pathgauge_score_count") == {
        ("planner", "refund", "quality", "", ONE): 1,
        ("planner", "refund", "quality", "", OTHER): 1,
        ("planner", "refund", "safety", "", ONE): 2,
    }


def test_a_judge_that_comes_back_begins_anew() -> None:
    criterion = quality()
    bench = Bench(ANSWER, criterion)
    bench.publish(1.0)
    reload(bench, ANSWER)
    assert set(bench.series("pathgauge_score_count")) == {(*PLAIN, "")}
    reload(bench, ANSWER, criterion)
    bench.publish(0.0)
    assert bench.series("pathgauge_score_count") == {
        (*PLAIN, ""): 2,
        ("planner", "refund", "quality", "", ONE): 1,
    }


def test_a_restart_goes_on_with_the_same_judge() -> None:
    bench = Durable(ANSWER, quality())
    for said in (0.0, 0.5, 1.0):
        bench.publish(said, agent_version="v1")
    bench.commit()
    after = bench.restarted()
    assert after.exposition() == bench.exposition()
    for one in (bench, after):
        one.publish(0.0, agent_version="v2")
        one.commit()
    assert after.exposition() == bench.exposition()


@pytest.mark.parametrize("judge", [OTHER, ""])
def test_a_restart_with_another_judge_begins_anew(judge: str) -> None:
    bench = Durable(ANSWER, quality())
    bench.publish(0.0)
    bench.commit()
    after = bench.restarted(ANSWER, quality(judge))
    after.commit()
    assert after.series("pathgauge_score_window_mean") == {PLAIN: 0.0}
    counted = ("planner", "refund", "quality", "", *([judge] if judge else []))
    assert after.series("pathgauge_score_count") == {(*PLAIN, ""): 1, counted: 0}
    assert not [key for key in after.rows if ONE in key]


def test_a_judge_in_the_place_of_a_scorer_without_one_does_not_take_over_its_window() -> None:
    bench = Durable(quality(""))
    bench.publish(0.0)
    bench.commit()
    assert bench.restarted(quality()).series("pathgauge_score_window_mean") == {}


@pytest.mark.parametrize("before", [False, True])
def test_where_the_tenant_label_comes_or_goes_the_judge_is_not_taken_for_another_label(
    before: bool,
) -> None:
    bench = Durable(quality(), tenants=before)
    bench.publish(1.0, tenant="acme")
    bench.commit()
    after = bench.restarted(tenants=not before)
    assert after.series("pathgauge_score_count") == {}


def test_series_of_judges_leave_with_their_names() -> None:
    bench = Durable(quality(), limits=LabelLimits(idle_s=3600))
    bench.publish(agent="old")
    bench.commit()
    bench.now += 3601
    bench.publish(agent="new")
    bench.commit()
    assert set(bench.series("pathgauge_score_count")) == {("new", "refund", "quality", "", ONE)}


@dataclass(frozen=True, slots=True)
class Sampled(Answer):
    """Says how far its samples agreed, as its own options have it."""

    said: Json = None

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(1.0, details={"judge": self.said})


def agreement(said: Json, judge: str = ONE, **options: Any) -> dict[tuple[str, ...], float]:
    bench = Bench(Criterion("quality", Sampled(said), judge=judge), **options)
    bench.publish()
    return bench.series("pathgauge_judge_agreement_sum")


@pytest.mark.parametrize(
    ("said", "sums"),
    [
        ({"samples": 3, "agreement": 0.75}, {("quality",): 0.75}),
        ({"samples": 3, "agreement": 0.0}, {("quality",): 0.0}),
        ({"samples": 1, "agreement": 1.0}, {}),
        ({"samples": 3, "agreement": None}, {}),
        ({"samples": 3, "agreement": float("nan")}, {}),
        ({"samples": 3, "agreement": 1.5}, {}),
        ({"samples": 3}, {}),
        ("text", {}),
        (None, {}),
    ],
)
def test_the_agreement_of_samples_is_observed_where_there_are_several(
    said: Json, sums: dict[tuple[str, ...], float]
) -> None:
    assert agreement(said) == sums


def test_what_a_scorer_without_judge_calls_a_judge_is_no_agreement() -> None:
    assert agreement({"samples": 3, "agreement": 0.75}, judge="") == {}


@dataclass(frozen=True, slots=True)
class Compared(Answer):
    needs_reference: ClassVar[bool] = True


def test_what_found_no_room_for_its_scenario_keeps_its_judge() -> None:
    compared = Criterion("quality", Compared(), judge=ONE)
    bench = Bench(compared, references=ONE_TURN, limits=LabelLimits(max_series=1))
    for scenario in ("refund", "order"):
        bench.publish(1.0, scenario_id=scenario, agent_version="v1")
    assert set(bench.series("pathgauge_score_window_mean")) == {
        ("planner", "refund", "quality", ONE),
        ("planner", "__other__", "quality", ONE),
    }
