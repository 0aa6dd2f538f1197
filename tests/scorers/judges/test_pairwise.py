"""The comparison with the answer of the reference, in both orders."""

from __future__ import annotations

import pytest

from pathgauge import Pairwise
from pathgauge.scorers.authoring.builders import invocation, reference_turn
from pathgauge.scorers.judge_protocol import JudgeError
from support.scripted_models import ScriptedAnswers, failure, verdict_answer

ACTUAL = invocation(user_input="When?", final_response="On Monday.")
EXPECTED = reference_turn(response="On Monday, at noon.")


@pytest.mark.parametrize(
    ("there", "back", "value", "verdict"),
    [
        ("first", "second", 1.0, "better than the reference"),
        ("second", "first", 0.0, "worse"),
        ("tie", "tie", 0.5, "as good as the reference"),
        ("first", "first", 0.5, "as good as the reference"),
        ("second", "second", 0.5, "as good as the reference"),
        ("tie", "first", 0.5, "as good as the reference"),
    ],
)
async def test_a_preference_counts_if_it_is_the_same_in_both_orders(
    there: str, back: str, value: float, verdict: str
) -> None:
    ask = ScriptedAnswers(verdict_answer(there), verdict_answer(back))
    score = await Pairwise().judge(ACTUAL, EXPECTED, ask)
    assert (score.value, score.details["verdict"]) == (value, verdict)
    assert [(one.data["first"], one.data["second"]) for one in ask.questions] == [
        ("On Monday.", "On Monday, at noon."),
        ("On Monday, at noon.", "On Monday."),
    ]


async def test_a_preference_for_a_place_is_no_agreement_of_the_judge_with_itself() -> None:
    score = await Pairwise().judge(ACTUAL, EXPECTED, ScriptedAnswers(verdict_answer("first")))
    assert score.details["judge"]["agreement"] == 0.5
    assert score.details["judge"]["orders"] == [1.0, 0.0]


@pytest.mark.parametrize("failing", [0, 1])
async def test_without_an_answer_in_one_order_there_is_no_value(failing: int) -> None:
    answers: list[str | JudgeError] = [verdict_answer("first"), verdict_answer("second")]
    answers[failing] = failure("judge_timeout")
    score = await Pairwise().judge(ACTUAL, EXPECTED, ScriptedAnswers(*answers))
    assert (score.value, score.reason) == (None, "judge_timeout")


async def test_without_a_reference_nothing_is_asked() -> None:
    ask = ScriptedAnswers(verdict_answer("first"))
    scores = [await Pairwise().judge(ACTUAL, turn, ask) for turn in (None, reference_turn())]
    assert [score.reason for score in scores] == ["no_reference", "no_reference"]
    assert ask.questions == []


def test_criteria_shape_the_question() -> None:
    short = Pairwise(criteria=("It is short.",))
    assert "- It is short." in short.instruction_texts()[0]
    assert short.template != Pairwise().template
