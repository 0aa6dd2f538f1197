"""Test tools for agents and scorers: builders of small values, and the contract tests.

actual = invocation(tool_call("search_web", query="tea"), final_response="Green tea.")
expected = reference_turn(expected_call("search_web", query="tea"), response="Green tea.")
check_scorer(MyScorer(), [(actual, expected)])
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

from pathgauge.scorers.authoring.extras import SpanRecord
from pathgauge.scorers.authoring.ranges import is_binary
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
from pathgauge.scorers.session_protocol import (
    SessionJudge,
    SessionScorer,
    SessionTurn,
    scores_sessions,
)
from pathgauge.scorers.types import (
    ExpectedCall,
    Invocation,
    Json,
    ModelCall,
    Reason,
    Reference,
    ReferenceTurn,
    Score,
    Scorer,
    ToolCall,
)

Situation = tuple[Invocation, ReferenceTurn | None]
"""The arguments of `Scorer.score`."""
Session = tuple[tuple[SessionTurn, ...], Reference | None]
"""The arguments of `SessionScorer.score_session`."""

_MANY = 2_000


def tool_call(name: str, /, **arguments: Json) -> ToolCall:
    """A call with recorded arguments. For unrecorded arguments, use `ToolCall(name)`."""
    return ToolCall(name, arguments)


def tool_calls(names: str) -> tuple[ToolCall, ...]:
    """Calls without arguments: `tool_calls("search_web summarize")`."""
    return tuple(tool_call(name) for name in names.split())


def expected_call(name: str, /, **arguments: Json) -> ExpectedCall:
    """An expected call with these arguments. To accept any arguments, use `ExpectedCall(name)`."""
    return ExpectedCall(name, arguments)


def expected_calls(names: str) -> tuple[ExpectedCall, ...]:
    """Expected calls without arguments, from names separated by blanks."""
    return tuple(expected_call(name) for name in names.split())


def invocation(*calls: ToolCall, **others: Any) -> Invocation:
    """An invocation of 1.5 s with these calls and the response "done". `others` are fields of
    `Invocation`.
    """
    defaults: dict[str, Any] = {
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "span_id": "00f067aa0ba902b7",
        "dialect": "test",
        "agent": "agent",
        "scenario_id": "scenario",
        "final_response": "done",
        "start_ns": 0,
        "end_ns": 1_500_000_000,
    }
    return Invocation(**(defaults | {"tool_calls": calls} | others))


def reference_turn(
    *calls: ExpectedCall, response: str | None = None, user_input: str | None = None
) -> ReferenceTurn:
    """A reference turn that expects exactly these calls; without calls, it expects none."""
    return ReferenceTurn(user_input, calls, response)


def situations() -> tuple[Situation, ...]:
    """Inputs that every scorer meets in production: matching and missing data, large data, and
    telemetry with gaps.
    """
    nested = tool_call(
        "book", room={"beds": 2, "view": None}, dates=["2026-01-01", 1.0, True, math.nan]
    )
    expected = reference_turn(
        expected_call("search", q="tea"), ExpectedCall("book"), response="Here you are: two rooms."
    )
    actual = invocation(tool_call("search", q="tea"), nested, final_response="Two rooms are free.")
    lenient = _lenient_turn()
    # One object many times, because copying and comparing separate calls takes most of the time.
    many_calls = (tool_call("search"),) * _MANY
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
        (invocation(*many_calls, final_response="tea " * _MANY), expected),
        (
            invocation(*many_calls, *many_calls, final_response="tea " * 40 * _MANY),
            expected,
        ),
        (_with_extras(), expected),
    )


def _with_extras() -> Invocation:
    """An invocation with spans, and with tokens and texts of its model calls."""
    models = (
        ModelCall("3", None, None, "model-1", 100, 10, cached_tokens=90, text="Let me search."),
        ModelCall("4", None, None, "model-2", 0, 7, text="Two rooms for 120.50 EUR are free."),
    )
    spans = (
        SpanRecord("1", None, "agent", "ok", 0, 1_500_000_000),
        SpanRecord("2", "1", "", "error", 0, None, {"a": [1, None]}, ("b",)),
        SpanRecord("2", "5", "orphan", "unset", None, 3, {"a": math.nan}),
    )
    return invocation(tool_call("search"), model_calls=models, spans=spans, user_input="120.50?")


def _lenient_turn() -> ReferenceTurn:
    """A reference turn with matchers, alternatives, groups and forbidden calls."""
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
    """Raise `AssertionError` if `scorer` violates the contract of `Scorer` for any of
    `situations()` or `more`. The message names the broken rule and the input.
    """
    with _naming(scorer):
        _check_declaration(scorer)
    for actual, expected in (*situations(), *more):
        with _naming(scorer, actual, expected):
            before = deepcopy((actual, expected))
            score = scorer.score(actual, expected)
            _check_score(scorer, score)
            _require(before == (actual, expected), "changes what it scores")
            again = scorer.score(*before)
            _require(again == score, "scores the same thing differently the second time")
            if expected is None and scorer.needs_reference:
                found = score.reason == "no_reference"
                _require(found, "needs a reference, and scores without one")

    if scores_sessions(scorer):
        _check_sessions(scorer)


def sessions() -> tuple[Session, ...]:
    """Sessions that every scorer of sessions meets in production."""
    actual, expected = situations()[0]
    scored = SessionTurn(actual, {"latency": 0.5, "other": None})
    bare = SessionTurn(Invocation("t", "s", "test"))
    lost = SessionTurn(invocation(flags=frozenset({"dropped_spans"})))
    ended = SessionTurn(invocation(user_input="tea?", session_end="resolved"))
    turn = expected or ReferenceTurn()
    two = Reference("scenario", (turn, _lenient_turn()))
    return (
        ((scored,), Reference("scenario", (turn,))),
        ((scored, ended), two),
        ((scored, ended, ended), None),
        ((bare, lost), two),
        ((bare, lost), None),
        ((lost, scored), Reference("scenario", (turn, ReferenceTurn()))),
        ((scored,) * 40, two),
    )


def _check_sessions(scorer: SessionScorer) -> None:
    """The rules of `Scorer.score`, for whole sessions."""
    for turns, reference in sessions():
        with _naming(scorer, turns, reference):
            before = deepcopy((turns, reference))
            score = scorer.score_session(turns, reference)
            _check_score(scorer, score)
            _require(before == (turns, reference), "changes what it scores")
            again = scorer.score_session(*before)
            _require(again == score, "scores the same thing differently the second time")
            if reference is None and scorer.needs_reference:
                found = score.reason == "no_reference"
                _require(found, "needs a reference, and scores without one")


async def check_judge(judge: Judge, ask: Ask, more: Iterable[Situation] = ()) -> None:
    """Raise `AssertionError` if `judge` violates the contract of `Judge` for any of `situations()`
    or `more`. Judges must also pass `check_scorer`.

    `ask` must answer every question, and equal questions equally.
    """
    with _naming(judge):
        _require(judge.asks_model is True, "does not say that it asks a model")
    for actual, expected in (_marked_situation(), *situations(), *more):
        with _naming(judge, actual, expected):
            before = deepcopy((actual, expected))
            recording = _RecordingAsk(ask)
            score = await judge.judge(actual, expected, recording)
            _check_score(judge, score)
            _require(before == (actual, expected), "changes what it judges")
            again = await judge.judge(*before, ask)
            _require(again == score, "judges the same thing differently the second time")
            if not recording.questions:
                continue
            asks_in_vain = expected is None and judge.needs_reference
            _require(not asks_in_vain, "needs a reference, and asks without one")
            has_value = score.value is not None or score.reason == "not_applicable"
            _require(has_value, "asks, and scores not")
            leaks = any(_MARKER in question.instructions for question in recording.questions)
            _require(not leaks, "lets what it judges into instructions")
            refused = await judge.judge(actual, expected, _refuse)
            _check_score(judge, refused)
            _require(
                refused.reason == "budget",
                f"gives the reason {refused.reason!r} where a model may not be asked",
            )
    if scores_sessions(judge):
        await _check_judged_sessions(judge, ask)


async def _check_judged_sessions(judge: SessionScorer, ask: Ask) -> None:
    """The rules of `Judge.judge`, for whole sessions."""
    marked = SessionTurn(_marked_situation()[0])
    for turns, reference in (((marked, marked), None), *sessions()):
        with _naming(judge, turns, reference):
            _require(isinstance(judge, SessionJudge), "scores sessions, and has no judge_session")
            assert isinstance(judge, SessionJudge)
            before = deepcopy((turns, reference))
            recording = _RecordingAsk(ask)
            score = await judge.judge_session(turns, reference, recording)
            _check_score(judge, score)
            _require(before == (turns, reference), "changes what it judges")
            leaks = any(_MARKER in question.instructions for question in recording.questions)
            _require(not leaks, "lets what it judges into instructions")
            if recording.questions:
                refused = await judge.judge_session(turns, reference, _refuse)
                _require(refused.reason == "budget", "scores where a model may not be asked")


class _ViolationError(Exception):
    """A broken rule of the contract."""


@contextmanager
def _naming(scorer: object, *situation: object) -> Iterator[None]:
    """Add the scorer and its input to the message of a violation, or to an exception of the scorer.
    Only here, because the text of a large input takes long.
    """
    try:
        yield
    except _ViolationError as violation:
        raise AssertionError(f"{violation}: {_place(scorer, situation)}") from violation
    except Exception as error:
        error.add_note(f"raised by {_place(scorer, situation)}")
        raise


def _place(scorer: object, situation: Sequence[object]) -> str:
    if not situation:
        return repr(scorer)
    actual, expected = (str(value)[:300] for value in situation)
    return f"{scorer!r} on {actual} against {expected}"


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise _ViolationError(problem)


_MARKER = "«planted»"


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


def _check_declaration(scorer: Scorer) -> None:
    _require(isinstance(scorer, Scorer), "lacks an attribute of pathgauge.scorers.types.Scorer")
    _require(is_dataclass(scorer), "is not a dataclass")
    snake_case = re.fullmatch("[a-z][a-z0-9_]*", scorer.name) is not None
    _require(snake_case, f"has the name {scorer.name!r}, expected snake_case")
    _require(bool(scorer.version), "has no version")
    valid = math.isfinite(scorer.low) and scorer.low < scorer.high
    _require(valid, f"has the range [{scorer.low}, {scorer.high}]")
    _check_options(scorer)


def _check_options(scorer: Any) -> None:
    _require(scorer.__dataclass_params__.frozen, "is not frozen")
    options = {field.name: getattr(scorer, field.name) for field in fields(scorer) if field.init}
    twin = replace(scorer, **options)
    try:
        same = twin == scorer and hash(twin) == hash(scorer)
    except TypeError as error:
        raise _ViolationError(f"has an option without a hash ({error})") from error
    _require(same, "differs from a scorer with the same options")


def _check_score(scorer: Scorer, score: Score) -> None:
    _require(isinstance(score, Score), f"returns {type(score).__name__}, expected a Score")
    _require(
        score.reason in (None, *get_args(Reason)),
        f"gives the reason {score.reason!r}, which is not in pathgauge.scorers.types.Reason",
    )
    consistent = (score.value is None) == (score.reason is not None)
    _require(consistent, f"returns {score.value} with the reason {score.reason}")
    if score.value is not None:
        inside = math.isfinite(score.value) and scorer.low <= score.value <= scorer.high
        _require(inside, f"returns {score.value}, outside [{scorer.low}, {scorer.high}]")
        binary = not is_binary(scorer) or score.value in {0, 1}
        _require(binary, f"returns {score.value}, and says that its values are 0 or 1")
    explained = len(score.explanation.splitlines()) == 1 and bool(score.explanation.strip())
    _require(explained, f"explains itself with {score.explanation!r}, expected one line")
    try:
        json.dumps(score.details, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _ViolationError(f"has details that are not JSON ({error})") from error
