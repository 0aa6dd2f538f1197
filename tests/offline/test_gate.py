"""How the gate aggregates scores: means over invocations, then over test runs."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, strategies as st

from pathgauge import Failure, Latency, Reference, ReferenceTurn, Score, ToolTrajectoryF1
from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    Evaluator,
    Result,
    Verdict,
)
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.offline.gate import judge
from pathgauge.collector.offline.gate_lines import Line
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.authoring.builders import invocation
from support.sink_harness import ranged

F1 = Criterion("f1", ToolTrajectoryF1(), 0.5)
REFUND = Reference("refund", (ReferenceTurn(), ReferenceTurn()))


def evaluation(value: float | None, run: str | None, conversation: str | None = None) -> Evaluation:
    actual = invocation(scenario_id="refund", run_id=run, conversation_id=conversation)
    score = Score.not_evaluated("args_not_recorded") if value is None else Score(value)
    return Evaluation(
        actual,
        Match(REFUND, REFUND.turns[0], 0),
        (Result(F1, score, F1.verdict(value)),),
        "root_ended",
    )


def case(conversation: str, missing: int) -> ConversationResult:
    return ConversationResult(
        "", conversation, REFUND, "agent", None, (ConversationScore(F1, 0.5),), 1, missing, 0
    )


def line(*replayed: Replayed) -> Line:
    [only] = judge(replayed).lines
    return only


def replayed(
    *evaluations: Evaluation, conversations: tuple[ConversationResult, ...] = ()
) -> Replayed:
    return Replayed("traces", evaluations, conversations, ())


@pytest.mark.parametrize(
    ("scored", "score", "runs"),
    [
        ([("1", 1.0), ("1", None), ("2", 0.0), ("2", 0.0)], 0.5, (1.0, 0.0)),
        ([(None, 1.0), (None, None), (None, 0.0), (None, 0.0)], 1 / 3, ()),
        ([("1", 1.0), ("2", None), ("2", None)], 1.0, (1.0,)),
        ([("1", 1.0), ("1", 0.0), (None, 1.0), (None, 1.0)], 0.75, (0.5, 1.0)),
        ([("1", None)], None, ()),
    ],
)
def test_every_run_counts_the_same(
    scored: list[tuple[str | None, float | None]], score: float | None, runs: tuple[float, ...]
) -> None:
    found = line(replayed(*(evaluation(value, run) for run, value in scored)))
    assert (found.score, found.runs) == (score if score is None else pytest.approx(score), runs)
    assert (found.invocations, found.evaluated) == (
        len(scored),
        sum(value is not None for _, value in scored),
    )


def test_a_run_may_be_in_several_files() -> None:
    found = line(
        replayed(evaluation(1.0, "1"), evaluation(0.0, "2")), replayed(evaluation(0.0, "1"))
    )
    assert (found.score, found.runs) == (0.25, (0.5, 0.0))


def test_missing_turns_count_as_0_in_their_own_run() -> None:
    evaluations = evaluation(1.0, "1", "c1"), evaluation(1.0, "2", "c2"), evaluation(1.0, "2", "c3")
    found = line(
        replayed(*evaluations, conversations=(case("c1", 1), case("c2", 0), case("c3", 1)))
    )
    assert found.score == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found.runs == pytest.approx((1 / 2, 2 / 3))
    assert found.explanations == ("2 missing or unexpected turns count as 0",)


def ended(criterion: Criterion, score: float, missing: int, mean: float | None) -> Replayed:
    """A conversation with one scored turn; `missing` others never came."""
    actual = invocation(scenario_id="refund", conversation_id="c")
    one = Evaluation(
        actual,
        Match(REFUND, REFUND.turns[0], 0),
        (Result(criterion, Score(score), criterion.verdict(score)),),
        "root_ended",
    )
    result = ConversationResult(
        "", "c", REFUND, "agent", None, (ConversationScore(criterion, mean),), 1, missing, 0
    )
    return replayed(one, conversations=(result,))


@pytest.mark.parametrize(
    ("low", "high", "higher_is_better", "worst"),
    [(0.0, 1.0, False, 1.0), (1.0, 5.0, True, 1.0), (-2.0, 2.0, True, -2.0)],
)
def test_missing_turns_count_as_the_worst_value_of_the_scorer(
    low: float, high: float, higher_is_better: bool, worst: float
) -> None:
    criterion = Criterion("own", ranged(low, high, higher_is_better=higher_is_better), 1.0)
    found = line(ended(criterion, 1.0, 3, (1.0 + 3 * worst) / 4))
    assert found.score == (1.0 + 3 * worst) / 4
    assert found.values == (1.0, worst, worst, worst)
    assert found.explanations == (f"3 missing or unexpected turns count as {worst:g}",)


def test_missing_turns_without_a_worst_value_leave_no_score_and_the_gate_does_not_pass() -> None:
    criterion = Criterion("own", ranged(0.0, math.inf, higher_is_better=False), 1.0)
    gate = judge([ended(criterion, 0.5, 2, None)])
    [only] = gate.lines
    assert (only.score, only.verdict, only.values, only.evaluated) == (
        None,
        "not_evaluated",
        (),
        1,
    )
    assert only.explanations == ("2 missing or unexpected turns have no worst value to count as",)
    assert gate.reasons == (
        "Coverage 0.333, expected 1: own scored 1 of 3 invocations (2 no_worst_value).",
        "Nothing was compared with a threshold, so the gate does not pass.",
    )


@pytest.mark.parametrize(
    ("scored", "score"),
    [
        (((1e308, None), (1e308, None)), 1e308),
        (((1e308, "1"), (1.6e308, "2")), 1.3e308),
    ],
)
def test_huge_scores_have_a_mean(
    scored: tuple[tuple[float, str | None], ...], score: float
) -> None:
    criterion = Criterion("own", ranged(0.0, math.inf, higher_is_better=False), 1.0)
    gate = judge(
        [
            replayed(
                *(
                    replace(
                        evaluation(1.0, run),
                        results=(Result(criterion, Score(value), "failed"),),
                    )
                    for value, run in scored
                )
            )
        ]
    )
    [only] = gate.lines
    assert only.score == pytest.approx(score)
    assert [one.mean for one in gate.overall] == [pytest.approx(score)]
    deviations = [only.deviation, *(one.deviation for one in gate.overall)]
    assert all(math.isfinite(deviation or 0) for deviation in deviations)


def test_a_run_without_a_mean_is_left_out_of_the_others_and_the_gate_does_not_pass() -> None:
    criterion = Criterion("own", ranged(0.0, math.inf, higher_is_better=False), 1.0)
    whole = Evaluation(
        invocation(scenario_id="refund", run_id="2"),
        Match(REFUND, REFUND.turns[0], 0),
        (Result(criterion, Score(0.25), "passed"),),
        "root_ended",
    )
    gate = judge([ended(criterion, 0.5, 1, None), replayed(whole)])
    [only] = gate.lines
    assert (only.score, only.runs, only.values) == (0.25, (0.25,), (0.25,))
    assert (only.verdict, gate.passed) == ("passed", False)


@pytest.mark.parametrize(
    ("runs", "deviation", "told"),
    [
        (
            (0.0, 0.5),
            math.sqrt(0.125),
            (
                "f1 for agent Failed. Expected 0.5, but got 0.25 over 2 runs (standard deviation"
                " 0.354). [refund]"
            ),
        ),
        ((0.25,), None, "f1 for agent Failed. Expected 0.5, but got 0.25. [refund]"),
    ],
)
def test_a_failure_shows_the_standard_deviation_of_the_runs(
    runs: tuple[float, ...], deviation: float | None, told: str
) -> None:
    found = line(replayed(*(evaluation(value, str(run)) for run, value in enumerate(runs))))
    assert (found.verdict, found.deviation, str(found)) == (
        "failed",
        None if deviation is None else pytest.approx(deviation),
        told,
    )


def test_a_scorer_that_raises_is_reported_without_a_score() -> None:
    broken = Result(Criterion("latency", Latency()), Score(None, None, "boom"), "error")
    found = line(
        replayed(
            Evaluation(
                invocation(scenario_id="refund", run_id="1"), Match(), (broken,), "root_ended"
            )
        )
    )
    assert (found.score, found.runs, str(found)) == (
        None,
        (),
        "latency for agent Error. No score could be given.",
    )


@given(
    st.lists(st.tuples(st.sampled_from([None, "1", "2"]), st.floats(0, 1)), min_size=1),
    st.floats(0, 1),
)
def test_the_score_is_the_mean_of_the_runs(
    scored: list[tuple[str | None, float]], value: float
) -> None:
    found = line(replayed(*(evaluation(value, run) for run, _ in scored)))
    assert found.score == pytest.approx(value)
    verdict: Verdict = F1.verdict(value)
    assert found.verdict == verdict
    mixed = line(replayed(*(evaluation(one, run) for run, one in scored)))
    assert mixed.score == pytest.approx(
        fmean(mixed.runs) if mixed.runs else fmean(one for _, one in scored)
    )


def test_a_turn_that_the_reference_does_not_have_counts_in_its_scenario() -> None:
    """Its criteria may have other thresholds than those of invocations without a scenario."""
    evaluator = Evaluator(
        (Criterion("latency", Latency(), 1.0),), {"refund": (Criterion("latency", Latency(), 9.0),)}
    )
    references = ReferenceSet([REFUND])
    evaluations = [
        evaluator.evaluate(actual, references.match(actual, actual.turn))
        for actual in (
            invocation(scenario_id="refund", turn=0),
            invocation(scenario_id="refund", turn=2),
            invocation(scenario_id="refund"),
            invocation(scenario_id="unknown"),
            invocation(scenario_id=None),
        )
    ]
    lines = judge([replayed(*evaluations)], evaluator, references).lines
    assert [(one.scenario, one.invocations, one.criterion.threshold) for one in lines] == [
        ("", 2, 1.0),
        ("refund", 3, 9.0),
    ]


def test_a_turn_that_the_reference_does_not_have_is_no_run_of_its_scenario() -> None:
    passes = Criterion(
        "failure", Failure(), 0.9, aggregation=Aggregation("scenario", "pass^k", k=2)
    )
    evaluator, references = Evaluator((passes,)), ReferenceSet([REFUND])
    evaluations = [
        evaluator.evaluate(actual, references.match(actual, actual.turn))
        for actual in (
            invocation(scenario_id="refund", turn=0),
            invocation(scenario_id="refund", turn=2),
        )
    ]
    found = judge([replayed(*evaluations)], evaluator, references)
    assert [(one.invocations, one.scored) for one in found.coverage] == [(1, 0)]
