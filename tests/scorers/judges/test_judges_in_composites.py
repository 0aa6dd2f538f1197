"""Judges inside other scorers: composites, cost per passed invocation, and one agent of several."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import (
    Composite,
    CostOfPassed,
    FinalResponseMatch,
    Latency,
    Member,
    ResponseEvaluationScore,
    Safety,
    Score,
    TrajectoryAccuracy,
)
from pathgauge.scorers.authoring.builders import invocation, reference_turn, tool_call
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.authoring.judge_contract import check_judge
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.types import AgentRun, Invocation, ReferenceTurn, ToolCall
from support.scripted_models import FirstFittingAnswer, ScriptedAnswers, failure, verdict_answer

SAFE = Member("safe", Safety(), 1.0)
GOOD = Member("good", ResponseEvaluationScore(model="big"), 3.5)
FAST = Member("fast", Latency(), 2)
RIGHT = Member("right", FinalResponseMatch(samples=1), 0.8)
ACTUAL = invocation(tool_call("search"), user_input="tea?")


def verdicts(score: Score) -> list[str]:
    return [member["verdict"] for member in score.details["members"]]


@pytest.mark.parametrize(
    ("answers", "value", "expected"),
    [
        ([verdict_answer("safe"), verdict_answer(4)], 1.0, ["passed", "passed", "passed"]),
        ([verdict_answer("safe"), verdict_answer(3)], 0.0, ["passed", "passed", "failed"]),
        ([verdict_answer("unsafe"), verdict_answer(5)], 0.0, ["passed", "failed", "passed"]),
        ([failure("judge_timeout"), verdict_answer(5)], 1.0, ["passed", "not_evaluated", "passed"]),
    ],
)
async def test_a_composite_asks_its_judges_and_scores_its_other_members(
    answers: list[Any], value: float, expected: list[str]
) -> None:
    score = await Composite((FAST, SAFE, GOOD)).judge(ACTUAL, None, ScriptedAnswers(*answers))
    assert (score.value, verdicts(score)) == (value, expected)


async def test_a_composite_may_fail_without_a_judgment() -> None:
    score = await Composite((FAST, SAFE), "fail").judge(
        ACTUAL, None, ScriptedAnswers(failure("budget", "used up"))
    )
    assert score.value == 0.0
    assert (
        score.explanation == "not evaluated: safe (0 of 1 sample answered: used up); passed: fast"
    )
    assert Composite((FAST, SAFE), "fail").score(ACTUAL, None).value == 0.0


async def test_a_composite_without_judges_has_the_same_score_either_way() -> None:
    fast, ask = Composite((FAST,)), FirstFittingAnswer()
    assert await fast.judge(ACTUAL, None, ask) == fast.score(ACTUAL, None)
    assert not ask.questions


async def test_a_composite_that_needs_a_reference_does_not_ask_without_one() -> None:
    ask = FirstFittingAnswer()
    assert (await Composite((RIGHT, SAFE)).judge(ACTUAL, None, ask)).reason == "no_reference"
    assert not ask.questions


@pytest.mark.parametrize(
    ("answers", "value", "reason"),
    [
        (verdict_answer("safe"), 1.0, None),
        (verdict_answer("unsafe"), None, "not_applicable"),
        (failure("budget"), None, "not_applicable"),
    ],
)
async def test_cost_of_passed_with_a_judge(
    answers: Any, value: float | None, reason: str | None
) -> None:
    score = await CostOfPassed((SAFE,), measure="tool_calls").judge(
        ACTUAL, None, ScriptedAnswers(answers)
    )
    assert (score.value, score.reason) == (value, reason)


@pytest.mark.parametrize(
    ("members", "model", "template"),
    [
        ((SAFE, FAST), None, Safety().template),
        ((GOOD, FAST), "big", ResponseEvaluationScore().template),
        ((FAST,), None, ""),
    ],
)
def test_a_composite_of_one_judge_has_its_template(
    members: tuple[Member, ...], model: str | None, template: str
) -> None:
    for scorer in (
        Composite(members),
        CostOfPassed(members),
        Composite((Member("all", Composite(members), 1),)),
    ):
        assert (asks_model(scorer), scorer.model, scorer.template) == (
            bool(template),
            model,
            template,
        )


def test_the_template_of_a_composite_changes_with_each_of_its_judges() -> None:
    other = Member("good", ResponseEvaluationScore(model="small"), 3.5)
    both, others, reference = (
        Composite((SAFE, GOOD)),
        Composite((SAFE, other)),
        Composite((SAFE, RIGHT)),
    )
    assert len({both.template, others.template, reference.template}) == 3
    assert both.template == Composite((SAFE, FAST, GOOD)).template
    assert (both.model, Composite((GOOD, Member("x", Safety(model="big"), 1))).model) == (
        None,
        "big",
    )


BILLED = ToolCall("get_invoice", {"id": 1}, agent="billing", run="2")
ROUTED = Invocation(
    "t",
    "1",
    "genai",
    agent="main",
    user_input="how much?",
    tool_calls=(ToolCall("ask_billing", {}, agent="main", run="1"), BILLED),
    sub_agents=(
        AgentRun("2", "billing", "main", "1", user_input="INV-9?", final_response="120 EUR"),
        AgentRun("3", "billing", "main", "1"),
    ),
    final_response="120 euros",
)
TURN = ReferenceTurn(response="120", agents={"billing": reference_turn(response="120 EUR")})


async def test_a_judge_of_one_agent_sees_only_that_agent() -> None:
    judge, ask = (
        OfAgent(TrajectoryAccuracy(model="small"), "billing"),
        ScriptedAnswers(verdict_answer(True, "fine"), verdict_answer(False, "idle")),
    )
    score = await judge.judge(ROUTED, TURN, ask)
    calls = [{"tool": "get_invoice", "arguments": {"id": 1}, "agent": "billing"}]
    assert [dict(question.data) for question in ask.questions] == [
        {"user_input": "INV-9?", "trajectory": calls, "response": "120 EUR"},
        {"user_input": None, "trajectory": [], "response": None},
    ]
    assert (score.value, score.explanation) == (
        0.5,
        "mean of 2 of 2 runs of billing; the worst: false in 1 of 1 answer: idle",
    )
    assert (asks_model(judge), judge.model, judge.template) == (
        True,
        "small",
        TrajectoryAccuracy().template,
    )


async def test_a_judge_of_one_agent_sees_its_reference() -> None:
    judge, ask = (
        OfAgent(FinalResponseMatch(samples=1), "billing"),
        ScriptedAnswers(verdict_answer("valid")),
    )
    assert (await judge.judge(ROUTED, TURN, ask)).value == 1.0
    assert [question.data["expected_response"] for question in ask.questions] == [
        "120 EUR"
    ]  # the other run has no response
    assert (await judge.judge(ROUTED, None, ask)).reason == "no_reference"
    assert len(ask.questions) == 1


async def test_an_agent_that_did_not_run_is_judged_only_if_expected() -> None:
    ask = ScriptedAnswers(verdict_answer("invalid"))
    assert (await OfAgent(Safety(), "sales").judge(ROUTED, TURN, ask)).reason == "not_applicable"
    assert not ask.questions
    turn = ReferenceTurn(agents={"sales": reference_turn(response="120 EUR")})
    assert (
        await OfAgent(FinalResponseMatch(samples=1), "sales").judge(ROUTED, turn, ask)
    ).value == 0.0


@pytest.mark.parametrize(
    "judge",
    [Composite((FAST, SAFE, RIGHT)), CostOfPassed((SAFE,)), OfAgent(Safety(), "agent")],
    ids=lambda judge: judge.name,
)
async def test_composites_of_judges_keep_the_scorer_contract(judge: Any) -> None:
    check_scorer(judge)


async def test_a_judge_of_one_agent_keeps_the_judge_contract() -> None:
    judge: Any = OfAgent(Safety(), "agent")
    await check_judge(judge, FirstFittingAnswer())
