"""For tests of agents and of scorers: builders of small invocations and references, and the
contract of a scorer.

from pathgauge.scorers.authoring.testing import check_scorer, invocation, reference_turn, tool_call,
expected_call

actual = invocation(tool_call("search_web", query="tea"), final_response="Green tea.")
expected = reference_turn(expected_call("search_web", query="tea"), response="Green tea.")
check_scorer(MyScorer())
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

from pathgauge.scorers.judge_protocol import AnswerT, Ask, Judge, JudgeError, Question
from pathgauge.scorers.matching.matchers import (
    AnyOrder,
    Anything,
    AtLeast,
    Ignored,
    Near,
    OneOf,
    Pattern,
)
from pathgauge.scorers.types import (
    ExpectedCall,
    Invocation,
    Json,
    Reason,
    ReferenceTurn,
    Score,
    Scorer,
    ToolCall,
)

Situation = tuple[Invocation, ReferenceTurn | None]
"""What a scorer is asked to score."""

_MANY = 2_000


def tool_call(name: str, /, **arguments: Json) -> ToolCall:
    """A call with recorded arguments; `ToolCall(name)` is one whose arguments were not recorded."""
    return ToolCall(name, arguments)


def tool_calls(names: str) -> tuple[ToolCall, ...]:
    """Calls without arguments, from names with blanks between them: `tool_calls("search_web
    summarize")`.
    """
    return tuple(tool_call(name) for name in names.split())


def expected_call(name: str, /, **arguments: Json) -> ExpectedCall:
    """An expected call with these arguments; `ExpectedCall(name)` is one that accepts any."""
    return ExpectedCall(name, arguments)


def expected_calls(names: str) -> tuple[ExpectedCall, ...]:
    """Expected calls without arguments, from names with blanks between them."""
    return tuple(expected_call(name) for name in names.split())


def invocation(*calls: ToolCall, **others: Any) -> Invocation:
    """An invocation of 1.5 s that made these calls and answered "done"; `others` are fields of
    `Invocation`.
    """
    known: dict[str, Any] = {
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "span_id": "00f067aa0ba902b7",
        "dialect": "test",
    }
    known |= {
        "agent": "agent",
        "scenario_id": "scenario",
        "final_response": "done",
        "start_ns": 0,
        "end_ns": 1_500_000_000,
    }
    return Invocation(**(known | {"tool_calls": calls} | others))


def reference_turn(
    *calls: ExpectedCall, response: str | None = None, user_input: str | None = None
) -> ReferenceTurn:
    """A reference turn that expects exactly these calls, none if none are given."""
    return ReferenceTurn(user_input, calls, response)


def situations() -> tuple[Situation, ...]:
    """The situations that every scorer meets in production: agreement, absence, size, and telemetry
    with holes.
    """
    nested = tool_call(
        "book", room={"beds": 2, "view": None}, dates=["2026-01-01", 1.0, True, math.nan]
    )
    expected = reference_turn(
        expected_call("search", q="tea"), ExpectedCall("book"), response="Here you are: two rooms."
    )
    actual = invocation(tool_call("search", q="tea"), nested, final_response="Two rooms are free.")
    lenient = _lenient_turn()
    return (
        (actual, expected),
        (actual, None),
        (actual, ReferenceTurn()),
        (actual, reference_turn(response="")),
        (invocation(), expected),
        (invocation(), reference_turn()),
        (invocation(ToolCall("search"), ToolCall("book", "{not json")), expected),
        (invocation(ToolCall(" search\n", '"{\\"q\\": \\"tea\\"}"', error="timeout")), expected),
        (invocation(final_response="", error=True, error_type="ValueError"), expected),
        (Invocation("t", "s", "test"), expected),
        (
            invocation(flags=frozenset({"no_tool_spans", "content_missing"}), final_response=None),
            expected,
        ),
        (invocation(flags=frozenset({"dropped_spans"})), expected),
        (invocation(final_response="お茶 👍 สวัสดี"), reference_turn(response="👍")),
        (actual, lenient),
        (invocation(*reversed(actual.tool_calls)), lenient),
        (invocation(ToolCall("book", group=1), ToolCall("search", group=1)), lenient),
        (invocation(tool_call("search", q="tea " * 5 * _MANY)), lenient),
        (invocation(*tool_calls("search " * _MANY), final_response="tea " * _MANY), expected),
        (
            invocation(*tool_calls("search " * 2 * _MANY), final_response="tea " * 40 * _MANY),
            expected,
        ),
    )


def _lenient_turn() -> ReferenceTurn:
    """A reference turn that leaves the agent some freedom, and says what it must not do."""
    search = expected_call("search", q=OneOf([Pattern("te.*"), Ignored()]))
    book = ExpectedCall("book", {"room": AtLeast({"beds": Near(2)}), "dates": Anything()}, group=1)
    mail = ExpectedCall("mail", {"to": AnyOrder(["me", Anything()])}, optional=True, group=1)
    return ReferenceTurn(
        tool_calls=(search, book, mail),
        alternatives=((book, search), expected_calls("search")),
        forbidden=(expected_call("book", room=Ignored()),),
        response_contains=("room",),
        expected_agent="hotel",
        escalate=False,
    )


def check_scorer(scorer: Scorer, more: Iterable[Situation] = ()) -> None:
    """Raise `AssertionError` where `scorer` breaks the contract of
    `pathgauge.scorers.types.Scorer`, in any situation or in `more`.
    """
    _check_declaration(scorer)
    for actual, expected in (*situations(), *more):
        before = deepcopy((actual, expected))
        score = scorer.score(actual, expected)
        where = f"{scorer!r} on {str(actual)[:300]} against {str(expected)[:300]}"
        _check_score(scorer, score, where)
        _holds(before == (actual, expected), "changes what it scores", where)
        _holds(
            scorer.score(*before) == score,
            "scores the same thing differently the second time",
            where,
        )
        if expected is None and scorer.needs_reference:
            _holds(
                score.reason == "no_reference", "needs a reference, and scores without one", where
            )


async def check_judge(judge: Judge, ask: Ask, more: Iterable[Situation] = ()) -> None:
    """Raise `AssertionError` where `judge` breaks the contract of
    `pathgauge.scorers.judge_protocol.Judge`, in any situation or in `more`.

    `ask` has to answer every question, and equal ones equally. Beside this, a judge is a scorer:
    `check_scorer`.
    """
    _holds(judge.asks_model is True, "does not say that it asks a model", repr(judge))
    for actual, expected in (_planted(), *situations(), *more):
        where = f"{judge!r} on {str(actual)[:300]} against {str(expected)[:300]}"
        before = deepcopy((actual, expected))
        watched = _Watched(ask)
        score = await judge.judge(actual, expected, watched)
        _check_score(judge, score, where)
        _holds(before == (actual, expected), "changes what it judges", where)
        _holds(
            await judge.judge(*before, ask) == score,
            "judges the same thing differently the second time",
            where,
        )
        _holds(
            not (expected is None and judge.needs_reference and watched.asked),
            "needs a reference, and asks without one",
            where,
        )
        _holds(
            not watched.asked or score.value is not None or score.reason == "not_applicable",
            "asks, and scores not",
            where,
        )
        _holds(
            all(_PLANTED not in question.instructions for question in watched.asked),
            "lets what it judges into instructions",
            where,
        )
        if watched.asked:
            refused = await judge.judge(actual, expected, _refusing)
            _check_score(judge, refused, where)
            _holds(
                refused.reason == "budget",
                f"gives the reason {refused.reason!r} where a model may not be asked",
                where,
            )


_PLANTED = "«planted»"


def _planted() -> Situation:
    """What is judged, with a mark in everything that an agent, a user or a reference says."""
    call = ToolCall(_PLANTED, {_PLANTED: _PLANTED}, result=_PLANTED, agent=_PLANTED)
    actual = invocation(
        call,
        user_input=_PLANTED,
        final_response=_PLANTED,
        agent=_PLANTED,
        tool_schemas={_PLANTED: {"type": "object"}},
    )
    return actual, reference_turn(
        expected_call(_PLANTED, key=_PLANTED), response=_PLANTED, user_input=_PLANTED
    )


class _Watched:
    """An `Ask` that keeps what it was asked."""

    def __init__(self, ask: Ask) -> None:
        self.asked: list[Question[Any]] = []
        self._ask = ask

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        self.asked.append(question)
        return await self._ask(question)


async def _refusing(question: Question[AnswerT]) -> AnswerT:
    raise JudgeError("budget", "no more questions")


def _check_declaration(scorer: Scorer) -> None:
    where = repr(scorer)
    _holds(
        isinstance(scorer, Scorer), "lacks an attribute of pathgauge.scorers.types.Scorer", where
    )
    _holds(is_dataclass(scorer), "is not a dataclass", where)
    _holds(
        re.fullmatch("[a-z][a-z0-9_]*", scorer.name) is not None,
        f"has the name {scorer.name!r}, expected snake_case",
        where,
    )
    _holds(bool(scorer.version), "has no version", where)
    _holds(
        math.isfinite(scorer.low) and scorer.low < scorer.high,
        f"has the range [{scorer.low}, {scorer.high}]",
        where,
    )
    _check_options(scorer, where)


def _check_options(scorer: Any, where: str) -> None:
    _holds(scorer.__dataclass_params__.frozen, "is not frozen", where)
    twin = replace(
        scorer,
        **{field.name: getattr(scorer, field.name) for field in fields(scorer) if field.init},
    )
    try:
        same = twin == scorer and hash(twin) == hash(scorer)
    except TypeError as error:
        raise AssertionError(f"has an option without a hash ({error}): {where}") from error
    _holds(same, "differs from a scorer with the same options", where)


def _check_score(scorer: Scorer, score: Score, where: str) -> None:
    _holds(isinstance(score, Score), f"returns {type(score).__name__}, expected a Score", where)
    _holds(
        score.reason in (None, *get_args(Reason)),
        f"gives the reason {score.reason!r}, which is not in pathgauge.scorers.types.Reason",
        where,
    )
    _holds(
        (score.value is None) == (score.reason is not None),
        f"returns {score.value} with the reason {score.reason}",
        where,
    )
    if score.value is not None:
        inside = math.isfinite(score.value) and scorer.low <= score.value <= scorer.high
        _holds(inside, f"returns {score.value}, outside [{scorer.low}, {scorer.high}]", where)
    explained = len(score.explanation.splitlines()) == 1 and bool(score.explanation.strip())
    _holds(explained, f"explains itself with {score.explanation!r}, expected one line", where)
    _check_details(score, where)


def _check_details(score: Score, where: str) -> None:
    try:
        json.dumps(score.details, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"has details that are not JSON ({error}): {where}") from error


def _holds(condition: bool, otherwise: str, where: str) -> None:
    if not condition:
        raise AssertionError(f"{otherwise}: {where}")
