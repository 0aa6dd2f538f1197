"""The data that judges get: members by name; missing ones give a reason instead of a value."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import (
    FinalResponseMatch,
    Hallucinations,
    LlmJudge,
    ResponseEvaluationScore,
    RubricBasedFinalResponseQuality,
    RubricBasedToolUseQuality,
    Safety,
    TrajectoryAccuracy,
    TrajectoryAccuracyWithReference,
)
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation,
    reference_turn,
    tool_call,
)
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.prompt_members import MEMBERS
from pathgauge.scorers.matching.matchers import AtLeast, OneOf, Pattern
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, ToolCall
from support.scripted_models import FirstFittingAnswer

CALLS = (
    ToolCall("search", {"q": "tea"}, result=["green"], agent="finder"),
    ToolCall("buy", None, error="sold out"),
    ToolCall("say", {}),
)
ACTUAL = invocation(
    *CALLS, user_input="tea?", final_response="No tea.", tool_schemas={"search": {"type": "object"}}
)
EXPECTED = reference_turn(
    expected_call("search", q=Pattern("t.*")),
    ExpectedCall("buy", optional=True),
    response="Sold out.",
)
TRAJECTORY = [
    {"tool": "search", "arguments": {"q": "tea"}, "result": ["green"], "agent": "finder"},
    {"tool": "buy", "error": "sold out"},
    {"tool": "say", "arguments": {}},
]


async def data_of(
    judge: ModelJudge, actual: Invocation = ACTUAL, expected: ReferenceTurn | None = EXPECTED
) -> Json:
    """The data sent to the model, or the reason why it was not asked."""
    ask = FirstFittingAnswer()
    score = await judge.judge(actual, expected, ask)
    return ask.questions[0].data if ask.questions else score.reason


async def member(
    name: str, actual: Invocation = ACTUAL, expected: ReferenceTurn | None = EXPECTED
) -> Json:
    data = await data_of(LlmJudge("{response}", inputs=(name,)), actual, expected)
    return data if isinstance(data, str) else data[next(iter(data))]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_input", "tea?"),
        ("trajectory", TRAJECTORY),
        ("response", "No tea."),
        ("expected_response", "Sold out."),
        (
            "expected_trajectory",
            [
                {"tool": "search", "arguments": {"q": {"$regex": "t.*"}}},
                {"tool": "buy", "optional": True},
            ],
        ),
        ("tools", {"search": {"type": "object"}}),
    ],
)
async def test_members_are_sent_as_data(name: str, value: Json) -> None:
    assert await member(name) == value
    assert name in MEMBERS


@pytest.mark.parametrize(
    ("name", "aliases"),
    [
        ("user_input", ["prompt", "input", "inputs", "query"]),
        ("trajectory", ["predicted_trajectory", "outputs"]),
        ("response", ["final_response", "output"]),
        ("expected_response", ["reference", "reference_response"]),
        ("expected_trajectory", ["reference_trajectory", "reference_outputs"]),
        ("tools", ["available_tools"]),
    ],
)
def test_members_have_aliases_from_other_tools(name: str, aliases: list[str]) -> None:
    plain = LlmJudge("{response}", inputs=(name,))
    assert {LlmJudge("{response}", inputs=(alias,)).template for alias in aliases} == {
        plain.template
    }


@pytest.mark.parametrize(
    ("name", "actual", "expected", "reason"),
    [
        ("response", invocation(final_response=None), None, "response_not_recorded"),
        ("trajectory", invocation(flags=frozenset({"no_tool_spans"})), None, "tools_not_recorded"),
        ("trajectory", invocation(flags=frozenset({"dropped_spans"})), None, "tools_not_recorded"),
        ("expected_response", ACTUAL, ReferenceTurn(), "no_reference"),
        ("expected_response", ACTUAL, reference_turn(response=" \n"), "no_reference"),
        ("expected_trajectory", ACTUAL, ReferenceTurn(response="x"), "no_reference"),
        ("expected_trajectory", ACTUAL, None, "no_reference"),
        ("tools", invocation(), None, "schema_not_recorded"),
    ],
)
async def test_missing_members_give_a_reason(
    name: str, actual: Invocation, expected: ReferenceTurn | None, reason: str
) -> None:
    assert await member(name, actual, expected) == reason


async def test_recorded_members_may_be_empty() -> None:
    assert await data_of(Safety(), invocation(user_input="", final_response="")) == {
        "user_input": "",
        "response": "",
    }
    assert await member("trajectory", invocation()) == []
    assert await member("expected_trajectory", ACTUAL, reference_turn()) == []


async def test_a_missing_user_input_comes_from_the_reference_or_is_null() -> None:
    asked = reference_turn(user_input="Is there tea?")
    assert await member("user_input", invocation(), asked) == "Is there tea?"
    assert await member("user_input", invocation(), None) is None


async def test_alternatives_are_listed_under_any_of() -> None:
    turn = ReferenceTurn(tool_calls=expected_calls("a"), alternatives=(expected_calls("b"),))
    assert await member("expected_trajectory", ACTUAL, turn) == {
        "any_of": [[{"tool": "a", "arguments": {}}], [{"tool": "b", "arguments": {}}]]
    }


async def test_arguments_without_a_json_form_are_sent_as_text() -> None:
    turn = reference_turn(expected_call("a", x={"$dollars": OneOf([1, AtLeast({"b": 2})])}))
    [call] = await member("expected_trajectory", ACTUAL, turn)
    assert "OneOf" in call["arguments"]["x"]


REFERENCE_CALLS = [{"tool": "search", "arguments": {"q": "tea"}}]
KNOWN = invocation(tool_call("search", q="tea"), user_input="tea?", final_response="No tea.")


@pytest.mark.parametrize(
    ("judge", "data"),
    [
        (
            ResponseEvaluationScore(),
            {"user_input": "tea?", "response": "No tea.", "expected_response": "Sold out."},
        ),
        (Safety(), {"user_input": "tea?", "response": "No tea."}),
        (
            FinalResponseMatch(),
            {"user_input": "tea?", "expected_response": "Sold out.", "response": "No tea."},
        ),
        (
            TrajectoryAccuracy(),
            {"user_input": "tea?", "trajectory": REFERENCE_CALLS, "response": "No tea."},
        ),
        (
            TrajectoryAccuracyWithReference(),
            {
                "user_input": "tea?",
                "expected_trajectory": REFERENCE_CALLS,
                "trajectory": REFERENCE_CALLS,
                "response": "No tea.",
            },
        ),
        (
            RubricBasedFinalResponseQuality(("It is short.",)),
            {
                "user_input": "tea?",
                "tools": None,
                "trajectory": REFERENCE_CALLS,
                "response": "No tea.",
            },
        ),
        (
            RubricBasedToolUseQuality(("It searches.",)),
            {"user_input": "tea?", "tools": None, "trajectory": REFERENCE_CALLS},
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_members_and_their_order_for_each_judge(
    judge: ModelJudge, data: dict[str, Json]
) -> None:
    expected = reference_turn(expected_call("search", q="tea"), response="Sold out.")
    seen = await data_of(judge, KNOWN, expected)
    assert list(seen.items()) == list(data.items())


@pytest.mark.parametrize(
    ("judge", "actual", "expected", "reason"),
    [
        (
            ResponseEvaluationScore(),
            invocation(final_response=None),
            EXPECTED,
            "response_not_recorded",
        ),
        (FinalResponseMatch(), invocation(final_response=None), EXPECTED, "response_not_recorded"),
        (FinalResponseMatch(), ACTUAL, None, "no_reference"),
        (FinalResponseMatch(), ACTUAL, ReferenceTurn(tool_calls=()), "no_reference"),
        (
            TrajectoryAccuracy(),
            invocation(flags=frozenset({"no_tool_spans"})),
            None,
            "tools_not_recorded",
        ),
        (TrajectoryAccuracyWithReference(), KNOWN, ReferenceTurn(response="x"), "no_reference"),
        (
            TrajectoryAccuracyWithReference(),
            invocation(ToolCall("search")),
            EXPECTED,
            "args_not_recorded",
        ),
        (
            RubricBasedToolUseQuality(("It searches.",)),
            invocation(ToolCall("search")),
            None,
            "args_not_recorded",
        ),
        (Hallucinations(), invocation(ToolCall("search")), None, "results_not_recorded"),
        (Hallucinations(), invocation(final_response=None), None, "response_not_recorded"),
    ],
)
async def test_the_model_is_not_asked_if_required_data_is_missing(
    judge: ModelJudge, actual: Invocation, expected: ReferenceTurn | None, reason: str
) -> None:
    assert await data_of(judge, actual, expected) == reason


@pytest.mark.parametrize(
    ("judge", "actual", "expected"),
    [
        (TrajectoryAccuracy(), invocation(ToolCall("search"), final_response=None), None),
        (
            TrajectoryAccuracyWithReference(),
            invocation(ToolCall("search")),
            reference_turn(ExpectedCall("search")),
        ),
        (RubricBasedToolUseQuality(("It searches.",)), invocation(), None),
        (
            Hallucinations(),
            invocation(ToolCall("to_sales", kind="handoff"), ToolCall("buy", error="sold out")),
            None,
        ),
    ],
)
async def test_optional_members_may_be_missing(
    judge: ModelJudge, actual: Invocation, expected: Any
) -> None:
    assert isinstance(await data_of(judge, actual, expected), dict)
