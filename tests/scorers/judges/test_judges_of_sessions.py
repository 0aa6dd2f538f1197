"""Judges of whole sessions: one question about all turns, and the share of what holds."""

from __future__ import annotations

import pytest

from pathgauge import (
    MultiTurnTaskSuccess,
    MultiTurnToolUseQuality,
    MultiTurnTrajectoryQuality,
    RubricBasedMultiTurnTrajectoryQuality,
    SessionTurn,
    invocation,
    tool_call,
)
from pathgauge.scorers.judges.sessions import JudgeOfSessions
from support.scripted_models import (
    ScriptedAnswers,
    checklist_answer,
    failure,
    findings_answer,
)

TURNS = (
    SessionTurn(invocation(user_input="Book it.", final_response="Which one?")),
    SessionTurn(
        invocation(tool_call("book", room=1), user_input="Room 1.", final_response="It is booked.")
    ),
)


async def test_all_turns_are_one_question_and_the_share_of_goals_is_the_score() -> None:
    ask = ScriptedAnswers(findings_answer(True, False, True, True))
    score = await MultiTurnTaskSuccess().judge_session(TURNS, None, ask)
    assert score.value == 0.75
    assert score.explanation == "3 of 4 goals; not: statement 2"
    assert [one["verdict"] for one in score.details["goals"]] == ["yes", "no", "yes", "yes"]
    [question] = ask.questions
    assert question.data["turns"] == [
        {"turn": 1, "user": "Book it.", "calls": [], "agent": "Which one?"},
        {
            "turn": 2,
            "user": "Room 1.",
            "calls": [{"tool": "book", "arguments": {"room": 1}}],
            "agent": "It is booked.",
        },
    ]


async def test_calls_that_may_be_missing_from_the_telemetry_are_not_known() -> None:
    """Otherwise the model would take what the agent did for a mere claim."""
    unknown = SessionTurn(invocation(flags=frozenset({"no_tool_spans"})))
    lost = SessionTurn(invocation(tool_call("look"), flags=frozenset({"lost_tool_calls"})))
    ask = ScriptedAnswers(findings_answer(True))
    await MultiTurnTaskSuccess().judge_session((*TURNS, unknown, lost), None, ask)
    [question] = ask.questions
    assert [turn["calls"] is None for turn in question.data["turns"]] == [False, False, True, True]


async def test_shares_of_several_samples_are_averaged_if_most_were_answered() -> None:
    judge = MultiTurnTrajectoryQuality(samples=3, temperature=1.0)
    answers = findings_answer(True), findings_answer(True, False), failure("judge_timeout")
    score = await judge.judge_session(TURNS, None, ScriptedAnswers(*answers))
    assert score.value == 0.75
    assert score.details["judge"]["agreement"] == 0
    lost = failure("judge_timeout")
    score = await judge.judge_session(
        TURNS, None, ScriptedAnswers(findings_answer(True), lost, lost)
    )
    assert score.reason == "judge_timeout"


async def test_an_answer_without_any_statement_is_none() -> None:
    score = await MultiTurnTaskSuccess().judge_session(
        TURNS, None, ScriptedAnswers('{"findings": []}')
    )
    assert score.reason == "judge_malformed"


@pytest.mark.parametrize(
    ("judge", "turns", "reason"),
    [
        (MultiTurnToolUseQuality(), TURNS[:1], "not_applicable"),
        (
            MultiTurnToolUseQuality(),
            (*TURNS, SessionTurn(invocation(flags=frozenset({"no_tool_spans"})))),
            "tools_not_recorded",
        ),
        (
            MultiTurnTaskSuccess(),
            (SessionTurn(invocation(final_response=None)),),
            "texts_not_recorded",
        ),
        (RubricBasedMultiTurnTrajectoryQuality(), TURNS, "no_reference"),
    ],
)
async def test_without_what_is_judged_no_model_is_asked(
    judge: JudgeOfSessions, turns: tuple[SessionTurn, ...], reason: str
) -> None:
    ask = ScriptedAnswers(findings_answer(True))
    assert (await judge.judge_session(turns, None, ask)).reason == reason
    assert ask.questions == []


async def test_rubrics_are_about_the_whole_session() -> None:
    judge = RubricBasedMultiTurnTrajectoryQuality(("It asks which room.", "It books once."))
    ask = ScriptedAnswers(checklist_answer("yes", "no"))
    score = await judge.judge_session(TURNS, None, ask)
    assert score.value == 0.5
    [question] = ask.questions
    assert set(question.data) == {"turns"}
    assert "1. It asks which room." in question.instructions
    assert "`turns`" in question.instructions
