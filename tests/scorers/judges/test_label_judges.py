"""Judges that answer with a label: what they show, and what they refuse to judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from pathgauge import (
    FailureCategory,
    IntentResolution,
    ModelCall,
    PlanAdherence,
    Refusal,
    TaskAdherence,
    ToolOutputUtilization,
)
from pathgauge.collector.core.evidence.categories import Category
from pathgauge.scorers.authoring.builders import (
    expected_call,
    invocation,
    reference_turn,
    tool_call,
)
from pathgauge.scorers.types import Invocation
from support.scripted_models import ScriptedAnswers, verdict_answer

FOUND = replace(tool_call("find", id="7"), result={"state": "sent"})
RUN = invocation(FOUND, user_input="Where is 7?", final_response="It was sent.")


def said(*texts: str | None) -> Invocation:
    calls = [ModelCall(str(number), text=text) for number, text in enumerate(texts)]
    return replace(RUN, model_calls=tuple(calls))


@pytest.mark.parametrize(
    ("judge", "answer", "value"),
    [
        (ToolOutputUtilization(), "used", 1.0),
        (ToolOutputUtilization(), "misused", 0.0),
        (TaskAdherence(), "adherent", 1.0),
        (TaskAdherence(), "not_adherent", 0.0),
        (PlanAdherence(plan="Find it."), "followed", 1.0),
        (PlanAdherence(plan="Find it."), "deviated", 0.0),
        (PlanAdherence(plan="Find it."), "no_plan", None),
        (Refusal(), "refused", 1.0),
        (Refusal(), "answered", 0.0),
        (FailureCategory(), "none", 1.0),
        (FailureCategory(), "wrong_argument", 0.0),
        (IntentResolution(), 4, 4.0),
    ],
)
async def test_each_answer_has_its_value(judge: Any, answer: Any, value: float | None) -> None:
    score = await judge.judge(RUN, None, ScriptedAnswers(verdict_answer(answer)))
    assert score.value == value
    assert score.reason == (None if value is not None else "not_applicable")


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (invocation(final_response="Hello."), "not_applicable"),
        (invocation(tool_call("find"), final_response="It was sent."), "results_not_recorded"),
        (replace(RUN, final_response=None), "response_not_recorded"),
    ],
)
async def test_the_use_of_results_is_not_judged_without_results_and_answer(
    run: Invocation, reason: str
) -> None:
    ask = ScriptedAnswers(verdict_answer("used"))
    score = await ToolOutputUtilization().judge(run, None, ask)
    assert (score.value, score.reason, ask.questions) == (None, reason, [])


async def test_the_task_of_the_configuration_is_part_of_the_question() -> None:
    own, plain = TaskAdherence(task="Never refund twice."), TaskAdherence()
    assert own.template != plain.template
    assert "Never refund twice." in own.instruction_texts()[0]
    assert "The rules" not in plain.instruction_texts()[0]


@pytest.mark.parametrize(
    ("run", "plan", "reason"),
    [
        (said("First I look it up.", "It was sent."), ["First I look it up."], None),
        (said("It was sent."), None, "not_applicable"),
        (said(None), None, "texts_not_recorded"),
        (RUN, None, "texts_not_recorded"),
    ],
)
async def test_a_plan_is_what_the_models_said_between_the_calls(
    run: Invocation, plan: list[str] | None, reason: str | None
) -> None:
    ask = ScriptedAnswers(verdict_answer("followed"))
    score = await PlanAdherence().judge(run, None, ask)
    assert score.reason == reason
    assert [question.data["plan"] for question in ask.questions] == ([plan] if plan else [])
    assert PlanAdherence().extras.model_texts


async def test_a_plan_of_the_configuration_needs_no_texts() -> None:
    judge = PlanAdherence(plan="Find it, then answer.")
    ask = ScriptedAnswers(verdict_answer("followed"))
    assert (await judge.judge(RUN, None, ask)).value == 1.0
    assert "plan" not in ask.questions[0].data
    assert "Find it, then answer." in ask.questions[0].instructions
    assert not judge.extras.model_texts


async def test_the_cause_is_judged_beside_the_reference_if_there_is_one() -> None:
    ask = ScriptedAnswers(verdict_answer("wrong_tool"))
    turn = reference_turn(expected_call("track"), response="It arrives today.")
    for expected in (turn, None):
        score = await FailureCategory().judge(RUN, expected, ask)
        assert (score.value, score.details["verdict"]) == (0.0, "wrong_tool")
    with_reference, alone = (question.data for question in ask.questions)
    assert with_reference["expected_response"] == "It arrives today."
    assert with_reference["expected_trajectory"] == [{"tool": "track", "arguments": {}}]
    assert (alone["expected_response"], alone["expected_trajectory"]) == (None, None)


def test_the_causes_are_categories_of_failures() -> None:
    assert {*FailureCategory.labels} - {"none"} <= {*get_args(Category)}


@pytest.mark.parametrize(
    ("labels", "value", "verdict", "asked"),
    [
        (("loop", "wrong_tool", "missing_call"), 0.0, "loop", 3),
        (("none", "wrong_tool", "loop"), 0.0, "wrong_tool", 3),
        (("loop", "wrong_tool", "none", "wrong_tool", "none"), 0.0, "wrong_tool", 5),
        (("none", "loop", "none"), 1.0, "none", 3),
    ],
)
async def test_samples_that_name_different_causes_agree_on_the_failure(
    labels: tuple[str, ...], value: float, verdict: str, asked: int
) -> None:
    ask = ScriptedAnswers(*map(verdict_answer, labels))
    judge = FailureCategory(samples=len(labels), temperature=1.0)
    score = await judge.judge(RUN, None, ask)
    assert (score.value, score.details["verdict"], len(ask.questions)) == (value, verdict, asked)
