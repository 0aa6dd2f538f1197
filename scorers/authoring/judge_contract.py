"""The rules that every judge obeys beside those of scorers.

await check_judge(MyJudge(), ask)
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from pathgauge.scorers.authoring.builders import expected_call, invocation, reference_turn
from pathgauge.scorers.authoring.contract import check_score, naming, require
from pathgauge.scorers.authoring.situations import Situation, sessions, situations
from pathgauge.scorers.judge_protocol import AnswerT, Ask, Judge, JudgeError, Question
from pathgauge.scorers.session_protocol import (
    SessionJudge,
    SessionScorer,
    SessionTurn,
    scores_sessions,
)
from pathgauge.scorers.types import ToolCall

_MARKER = "«planted»"


async def check_judge(judge: Judge, ask: Ask, more: Iterable[Situation] = ()) -> None:
    """Raise `AssertionError` if `judge` violates the contract of `Judge` for about twenty typical
    and hostile inputs, or for `more`: pairs of an `Invocation` and a `ReferenceTurn` or `None`.
    Judges must also pass `check_scorer`.

    `ask` stands for the model: it must answer every question with an instance of `question.answer`,
    and equal questions equally. An exception of the judge passes through.
    """
    with naming(judge):
        require(judge.asks_model is True, "does not say that it asks a model")
    for actual, expected in (_marked_situation(), *situations(), *more):
        with naming(judge, actual, expected):
            before = deepcopy((actual, expected))
            recording = _RecordingAsk(ask)
            score = await judge.judge(actual, expected, recording)
            check_score(judge, score)
            require(before == (actual, expected), "changes what it judges")
            again = await judge.judge(*before, ask)
            require(again == score, "judges the same thing differently the second time")
            if not recording.questions:
                continue
            asks_in_vain = expected is None and judge.needs_reference
            require(not asks_in_vain, "needs a reference, and asks without one")
            has_value = score.value is not None or score.reason == "not_applicable"
            require(has_value, "asks, and scores not")
            leaks = any(_MARKER in question.instructions for question in recording.questions)
            require(not leaks, "lets what it judges into instructions")
            refused = await judge.judge(actual, expected, _refuse)
            check_score(judge, refused)
            require(
                refused.reason == "budget",
                f"gives the reason {refused.reason!r} where a model may not be asked",
            )
    if scores_sessions(judge):
        await _check_judged_sessions(judge, ask)


async def _check_judged_sessions(judge: SessionScorer, ask: Ask) -> None:
    """The rules of `Judge.judge`, for whole sessions."""
    marked = SessionTurn(_marked_situation()[0])
    for turns, reference in (((marked, marked), None), *sessions()):
        with naming(judge, turns, reference):
            require(isinstance(judge, SessionJudge), "scores sessions, and has no judge_session")
            assert isinstance(judge, SessionJudge)
            before = deepcopy((turns, reference))
            recording = _RecordingAsk(ask)
            score = await judge.judge_session(turns, reference, recording)
            check_score(judge, score)
            require(before == (turns, reference), "changes what it judges")
            leaks = any(_MARKER in question.instructions for question in recording.questions)
            require(not leaks, "lets what it judges into instructions")
            if recording.questions:
                refused = await judge.judge_session(turns, reference, _refuse)
                require(refused.reason == "budget", "scores where a model may not be asked")


def _marked_situation() -> Situation:
    """An input with a marker in every text of the agent, the user and the reference."""
    call = ToolCall(_MARKER, {_MARKER: _MARKER}, result=_MARKER, agent=_MARKER)
    actual = invocation(
        call,
        user_input=_MARKER,
        final_response=_MARKER,
        agent=_MARKER,
        tool_schemas={_MARKER: {"type": "object"}},
    )
    return actual, reference_turn(
        expected_call(_MARKER, key=_MARKER), response=_MARKER, user_input=_MARKER
    )


class _RecordingAsk:
    """An `Ask` that records its questions."""

    def __init__(self, ask: Ask) -> None:
        self.questions: list[Question[Any]] = []
        self._ask = ask

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        self.questions.append(question)
        return await self._ask(question)


async def _refuse(question: Question[AnswerT]) -> AnswerT:
    raise JudgeError("budget", "no more questions")
