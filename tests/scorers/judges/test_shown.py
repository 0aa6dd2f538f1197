"""What judges are shown: members by name, as data; what was not recorded is a reason to judge
nothing.
"""

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
from pathgauge.scorers.authoring.testing import (
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
from support.asked import Obliging

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
    """What the model is shown; the reason where it is not asked."""
    ask = Obliging()
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
async def test_members_are_shown_as_data(name: str, value: Json) -> None:
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
def test_members_have_the_names_that_other_tools_give_them(name: str, aliases: list[str]) -> None:
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
async def test_what_was_not_recorded_is_a_reason_and_no_empty_text(
    name: str, actual: Invocation, expected: ReferenceTurn | None, reason: str
) -> None:
    assert await member(name, actual, expected) == reason


async def test_what_was_recorded_may_be_empty() -> None:
    assert await data_of(Safety(), invocation(user_input="", final_response="")) == {
        "user_input": "",
        "response": "",
    }
    assert await member("trajectory", invocation()) == []
    assert await member("expected_trajectory", ACTUAL, reference_turn()) == []


async def test_a_question_that_was_not_recorded_is_that_of_the_reference_or_not_known() -> None:
    asked = reference_turn(user_input="Is there tea?")
    assert await member("user_input", invocation(), asked) == "Is there tea?"
    assert await member("user_input", invocation(), None) is None


async def test_alternatives_are_shown_beside_each_other() -> None:
    turn = ReferenceTurn(tool_calls=expected_calls("a"), alternatives=(expected_calls("b"),))
    assert await member("expected_trajectory", ACTUAL, turn) == {
        "any_of": [[{"tool": "a", "arguments": {}}], [{"tool": "b", "arguments": {}}]]
    }


async def test_a_reference_that_cannot_be_written_is_shown_all_the_same() -> None:
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
async def test_each_judge_is_shown_what_it_judges_in_this_order(
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
async def test_nobody_is_asked_where_what_would_be_judged_is_not_known(
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
async def test_what_is_not_needed_may_be_missing(
    judge: ModelJudge, actual: Invocation, expected: Any
) -> None:
    assert isinstance(await data_of(judge, actual, expected), dict)
