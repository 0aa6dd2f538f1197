"""Series of scores from a model name the judge, and start at 0 with another judge. Other series are
not affected by judges.
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
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.scorers.types import Invocation, Json, Reference, ReferenceTurn, Score
from support.durable_harness import DurableHarness
from support.judged import Opinion
from support.sink_harness import ANSWER, Answer, SinkHarness, with_turns

ONE, OTHER = "gpt-4.1-mini@1f3a9c20", "gpt-4.1-mini@99990000"
PLAIN = ("planner", "refund", "answer")
ONE_TURN = with_turns(Reference("refund", ()), Reference("order", ()))


def quality(judge: str = ONE, threshold: float | None = 0.5) -> Criterion:
    return Criterion("quality", Answer(), threshold, 0.9, judge=judge)


def reload(
    harness: SinkHarness,
    *criteria: Criterion,
    overrides: dict[str, tuple[Criterion, ...]] | None = None,
) -> None:
    harness.evaluator = Evaluator(criteria, overrides)
    harness.sink.configure(harness.evaluator, harness.references)


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
    harness = SinkHarness(ANSWER, quality())
    harness.publish(0.75, agent_version="v1")
    judges = {labels[2]: labels[-1] for labels in harness.series(f"pathgauge_{name}")}
    assert judges["quality"] == ONE
    assert judges["answer"] != ""
    text = generate_latest(harness.sink.registry).decode()
    assert 'judge=""' not in text
    assert not [line for line in text.splitlines() if 'metric="answer"' in line and "judge" in line]


def test_objectives_conversations_and_comparisons_name_the_judge_too() -> None:
    harness = SinkHarness(quality(), windows=Windows(size=3))
    for version in ("v1", "v2"):
        for _ in range(3):
            harness.now += 1
            harness.publish(1.0, agent_version=version)
    case = ConversationResult(
        "",
        "c",
        Reference("refund", ()),
        "planner",
        "v1",
        (ConversationScore(harness.evaluator.criteria[0], 1.0),),
        1,
        0,
        0,
    )
    harness.sink.publish_conversation(case, harness.now)
    names = (
        "objective",
        "case_score_count",
        "cases_total",
    )
    assert [{labels[-1] for labels in harness.series(f"pathgauge_{name}")} for name in names] == [
        {ONE}
    ] * len(names)


def test_judges_of_other_metrics_do_not_change_a_metric_without_a_judge() -> None:
    alone, beside = SinkHarness(ANSWER), SinkHarness(ANSWER, quality())
    for harness in (alone, beside):
        harness.publish(0.75, agent_version="v1")
        harness.publish(0.0)
    shown = [
        [
            line
            for line in generate_latest(harness.sink.registry).decode().splitlines()
            if 'metric="answer"' in line
        ]
        for harness in (alone, beside)
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) > 20


def test_the_judge_is_named_with_tenants_too() -> None:
    harness = SinkHarness(quality(), tenants=True)
    harness.publish(1.0, tenant="acme")
    assert harness.series("pathgauge_score_count") == {
        ("acme", "planner", "refund", "quality", "", ONE): 1
    }


@pytest.mark.parametrize(
    ("judge", "shown"),
    [
        (ONE, ONE),
        ("m" * 100 + "@1f3a9c20", "m" * 55 + "~9478875b@1f3a9c20"),
        ("openrouter:meta/llama@v3@1f3a9c20", "openrouter:meta/llama@v3@1f3a9c20"),
        ("modèle\ud800@1f3a9c20", "modèle?@1f3a9c20"),
    ],
)
def test_a_long_model_name_is_cut_and_its_template_is_not(judge: str, shown: str) -> None:
    harness = SinkHarness(quality(judge))
    harness.publish(1.0)
    assert {labels[-1] for labels in harness.series("pathgauge_score_window_mean")} == {shown}
    assert {labels[-1] for labels in harness.series("pathgauge_evaluations_total")} == {shown}


@pytest.mark.parametrize("after", [OTHER, ""])
def test_another_judge_starts_new_windows_and_counts_of_its_metric_only(
    after: str,
) -> None:
    harness = SinkHarness(ANSWER, quality(), windows=Windows(size=5))
    harness.publish(0.0)
    reload(harness, ANSWER, quality(after))
    assert harness.series("pathgauge_score_window_mean") == {PLAIN: 0.0}
    harness.publish(1.0)
    new = ("planner", "refund", "quality", *([after] if after else []))
    assert harness.series("pathgauge_score_window_mean") == {PLAIN: 0.5, new: 1.0}
    counted = ("planner", "refund", "quality", "", *([after] if after else []))
    assert harness.series("pathgauge_score_count") == {(*PLAIN, ""): 2, counted: 1}


def test_a_reload_with_the_same_judge_changes_nothing() -> None:
    harness = DurableHarness(quality())
    harness.publish(0.0)
    harness.commit()
    before = harness.exposition()
    reload(harness, quality())
    harness.commit()
    assert harness.exposition() == before


def test_a_judge_that_is_active_in_any_scenario_keeps_its_series() -> None:
    harness = SinkHarness(quality(), references=ONE_TURN)
    harness.publish(0.0, scenario_id="order")
    reload(harness, quality(OTHER), overrides={"order": (quality(),)})
    assert harness.series("pathgauge_score_window_mean") == {
        ("planner", "order", "quality", ONE): 0.0
    }
    assert harness.series("pathgauge_score_count")[("planner", "order", "quality", "", ONE)] == 1
    reload(harness, quality(OTHER))
    assert harness.series("pathgauge_score_window_mean") == {}
    assert harness.series("pathgauge_score_count") == {
        ("planner", "order", "quality", "", OTHER): 0
    }


def test_a_late_verdict_of_a_replaced_judge_is_counted_and_is_in_no_window() -> None:
    harness = SinkHarness(ANSWER, quality())
    late = harness.evaluator.evaluate(
        harness.invocation(0.0), harness.references.match(harness.invocation())
    )
    reload(harness, ANSWER, quality(OTHER))
    harness.publish(1.0)
    plain, judged = (replace(late, results=(result,)) for result in late.results)
    harness.publish_evaluation(plain)
    harness.sink.publish_judged(Judged(judged, first=True), harness.now)
    assert harness.series("pathgauge_score_window_mean") == {
        PLAIN: 0.5,
        ("planner", "refund", "quality", OTHER): 1.0,
    }
    assert harness.series("pathgauge_score_sum") == {
        (*PLAIN, ""): 1.0,
        ("planner", "refund", "quality", "", OTHER): 1.0,
        ("planner", "refund", "quality", "", ONE): 0.0,
    }


def test_scenarios_may_have_other_judges() -> None:
    harness = SinkHarness(quality(), references=ONE_TURN)
    reload(harness, quality(), overrides={"order": (quality(OTHER),)})
    for scenario in ("refund", "order", "unheard of"):
        harness.publish(1.0, scenario_id=scenario)
    assert set(harness.series("pathgauge_score_window_mean")) == {
        ("planner", "refund", "quality", ONE),
        ("planner", "order", "quality", OTHER),
        ("planner", "__other__", "quality", ONE),
    }
    assert {labels[1]: labels[-1] for labels in harness.series("pathgauge_threshold")} == {
        "refund": ONE,
        "order": OTHER,
        "__other__": ONE,
    }
    assert harness.series("pathgauge_judge_info") == {
        ("quality", *ONE.split("@")): 1,
        ("quality", *OTHER.split("@")): 1,
    }


def test_a_replaced_judge_does_not_change_the_series_of_other_metrics() -> None:
    beside = Criterion("safety", Answer(), judge=ONE)
    harness = SinkHarness(quality(), beside)
    harness.publish(1.0)
    reload(harness, replace(harness.evaluator.criteria[0], judge=OTHER), beside)
    harness.publish(0.0)
    assert harness.series("pathgauge_score_count") == {
        ("planner", "refund", "quality", "", ONE): 1,
        ("planner", "refund", "quality", "", OTHER): 1,
        ("planner", "refund", "safety", "", ONE): 2,
    }


def test_a_judge_that_comes_back_starts_at_0() -> None:
    criterion = quality()
    harness = SinkHarness(ANSWER, criterion)
    harness.publish(1.0)
    reload(harness, ANSWER)
    assert set(harness.series("pathgauge_score_count")) == {(*PLAIN, "")}
    reload(harness, ANSWER, criterion)
    harness.publish(0.0)
    assert harness.series("pathgauge_score_count") == {
        (*PLAIN, ""): 2,
        ("planner", "refund", "quality", "", ONE): 1,
    }


def test_a_restart_continues_with_the_same_judge() -> None:
    harness = DurableHarness(ANSWER, quality())
    for details in (0.0, 0.5, 1.0):
        harness.publish(details, agent_version="v1")
    harness.commit()
    after = harness.restarted()
    assert after.exposition() == harness.exposition()
    for one in (harness, after):
        one.publish(0.0, agent_version="v2")
        one.commit()
    assert after.exposition() == harness.exposition()


def test_a_restart_keeps_the_scores_of_the_few_runs_that_a_model_judged() -> None:
    harness = DurableHarness(ANSWER, Criterion("opinion", Opinion(), 0.5, judge=ONE))
    one = harness.publish(1.0)
    plain, opinion = one.results
    said = replace(one, results=(plain, replace(opinion, score=Score(0.25), verdict="failed")))
    harness.recent[one.key] = replace(
        harness.recent[one.key], scores={"answer": 1.0, "opinion": 0.25}
    )
    harness.sink.publish_judged(Judged(replace(said, results=said.results[1:]), True), harness.now)
    for _ in range(20):
        harness.publish(0.0)
    harness.commit()
    shown = {PLAIN: 0.0, ("planner", "refund", "opinion", ONE): 0.25}
    assert harness.series("pathgauge_score_window_mean") == shown
    assert harness.restarted().series("pathgauge_score_window_mean") == shown


def test_what_a_model_says_first_of_a_revision_is_in_the_window_before_and_after_a_restart() -> (
    None
):
    """The scenario may arrive with a late span, and without it no judge was asked."""
    harness = DurableHarness(ANSWER, Criterion("opinion", Opinion(), 0.5, judge=ONE))
    first = harness.publish(1.0)
    revised = harness.revise(first, 0.5)
    opinion = revised.results[1]
    said = replace(revised, results=(replace(opinion, score=Score(0.25), verdict="failed"),))
    harness.recent[revised.key] = replace(
        harness.recent[revised.key], scores={"answer": 0.5, "opinion": 0.25}
    )
    harness.sink.publish_judged(Judged(said, first=False), harness.now)
    harness.commit()
    shown = {PLAIN: 0.5, ("planner", "refund", "opinion", ONE): 0.25}
    assert harness.series("pathgauge_score_window_mean") == shown
    assert harness.restarted().series("pathgauge_score_window_mean") == shown


def test_what_a_model_says_of_a_revision_that_left_all_windows_is_in_none() -> None:
    harness = SinkHarness(
        ANSWER, Criterion("opinion", Opinion(), 0.5, judge=ONE), windows=Windows(size=1)
    )
    first = harness.publish(1.0)
    harness.publish(0.0)
    revised = harness.revise(first, 0.5)
    said = replace(revised.results[1], score=Score(0.25), verdict="failed")
    harness.sink.publish_judged(Judged(replace(revised, results=(said,)), first=False), harness.now)
    assert harness.series("pathgauge_score_window_mean") == {PLAIN: 0.0}


@pytest.mark.parametrize("judge", [OTHER, ""])
def test_a_restart_with_another_judge_starts_at_0(judge: str) -> None:
    harness = DurableHarness(ANSWER, quality())
    harness.publish(0.0)
    harness.commit()
    after = harness.restarted(ANSWER, quality(judge))
    after.commit()
    assert after.series("pathgauge_score_window_mean") == {PLAIN: 0.0}
    counted = ("planner", "refund", "quality", "", *([judge] if judge else []))
    assert after.series("pathgauge_score_count") == {(*PLAIN, ""): 1, counted: 0}
    assert not [key for key in after.rows if ONE in key]


def test_a_judge_does_not_take_over_the_window_of_a_scorer_without_one() -> None:
    harness = DurableHarness(quality(""))
    harness.publish(0.0)
    harness.commit()
    assert harness.restarted(quality()).series("pathgauge_score_window_mean") == {}


@pytest.mark.parametrize("before", [False, True])
def test_the_judge_is_not_mistaken_for_another_label_when_the_tenant_label_changes(
    before: bool,
) -> None:
    harness = DurableHarness(quality(), tenants=before)
    harness.publish(1.0, tenant="acme")
    harness.commit()
    after = harness.restarted(tenants=not before)
    assert after.series("pathgauge_score_count") == {}


def test_series_of_judges_are_dropped_with_their_labels() -> None:
    harness = DurableHarness(quality(), limits=LabelLimits(idle_s=3600))
    harness.publish(agent="old")
    harness.commit()
    harness.now += 3601
    harness.publish(agent="new")
    harness.commit()
    assert set(harness.series("pathgauge_score_count")) == {("new", "refund", "quality", "", ONE)}


@dataclass(frozen=True, slots=True)
class Sampled(Answer):
    """Reports the details of its samples that its option gives."""

    details: Json = None

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(1.0, details={"judge": self.details})


def agreement(details: Json, judge: str = ONE, **options: Any) -> dict[tuple[str, ...], float]:
    harness = SinkHarness(Criterion("quality", Sampled(details), judge=judge), **options)
    harness.publish()
    return harness.series("pathgauge_judge_agreement_sum")


@pytest.mark.parametrize(
    ("details", "sums"),
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
def test_agreement_is_observed_for_several_samples_only(
    details: Json, sums: dict[tuple[str, ...], float]
) -> None:
    assert agreement(details) == sums


def test_agreement_is_ignored_for_scorers_without_a_judge() -> None:
    assert agreement({"samples": 3, "agreement": 0.75}, judge="") == {}


@dataclass(frozen=True, slots=True)
class Compared(Answer):
    needs_reference: ClassVar[bool] = True


def test_series_of_scenarios_beyond_the_limit_keep_their_judge() -> None:
    compared = Criterion("quality", Compared(), judge=ONE)
    harness = SinkHarness(compared, references=ONE_TURN, limits=LabelLimits(max_series=1))
    for scenario in ("refund", "order"):
        harness.publish(1.0, scenario_id=scenario, agent_version="v1")
    assert set(harness.series("pathgauge_score_window_mean")) == {
        ("planner", "refund", "quality", ONE),
        ("planner", "__other__", "quality", ONE),
    }
