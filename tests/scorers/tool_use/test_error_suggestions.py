"""Suggestions in the errors of tools, and in the answer."""

from typing import Any

import pytest

from pathgauge.scorers.authoring.builders import invocation, tool_call
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.error_suggestions import ErrorSuggestions
from pathgauge.scorers.types import Score, ToolCall


def value_or_reason(
    call: ToolCall, response: str | None = "Please retry later.", **options: Any
) -> float | str | None:
    score = ErrorSuggestions(**options).score(
        invocation(tool_call("search"), call, final_response=response), None
    )
    return score.reason or score.value


def error(*suggestions: Any, **others: Any) -> ToolCall:
    return ToolCall(
        "pay", {}, **({"result": {"error": "boom", "suggestions": list(suggestions)}} | others)
    )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(error("retry later"), 1.0, id="mentioned"),
        pytest.param(error("Retry LATER"), 1.0, id="in other letters"),
        pytest.param(error("use PayPal", "retry later"), 1.0, id="one of them"),
        pytest.param(error("use PayPal"), 0.0, id="not mentioned"),
        pytest.param(error(), 0.0, id="none"),
        pytest.param(error("", " "), 0.0, id="blank ones"),
        pytest.param(error(None, 3), 0.0, id="no text"),
        pytest.param(error({"action": "retry later", "tool": "pay"}), 1.0, id="objects"),
        pytest.param(error(["use PayPal", "retry later"]), 1.0, id="lists"),
        pytest.param(
            error(result={"error": "boom", "suggestions": "retry later"}), 1.0, id="one text"
        ),
        pytest.param(
            error(result={"error": "boom", "suggestions": {"first": "retry later"}}),
            1.0,
            id="an object",
        ),
        pytest.param(
            error(result={"error": {"code": 1, "suggestions": ["retry later"]}}),
            1.0,
            id="inside of the error",
        ),
        pytest.param(
            error(result='{"error": "boom", "suggestions": ["retry later"]}'),
            1.0,
            id="text that holds an object",
        ),
        pytest.param(error(result={"error": "boom"}), 0.0, id="no suggestions"),
        pytest.param(
            error(result={"suggestions": ["retry later"]}, error="boom"),
            1.0,
            id="the error in the span",
        ),
        pytest.param(error(result="boom", error="boom"), 0.0, id="text"),
        pytest.param(
            error(result=None, error="boom"), "results_not_recorded", id="the error alone"
        ),
        pytest.param(
            error(result=None, error='{"suggestions": ["retry later"]}'),
            1.0,
            id="an error that holds an object",
        ),
        pytest.param(error(result={"suggestions": []}), "not_applicable", id="no error"),
        pytest.param(error(result=None), "not_applicable", id="nothing known"),
    ],
)
def test_an_error_comes_with_suggestions_of_which_the_response_has_one(
    call: ToolCall, expected: float | str
) -> None:
    assert value_or_reason(call) == expected


@pytest.mark.parametrize(
    ("mention", "response", "expected"),
    [
        ("any", "use PayPal", 1.0),
        ("all", "use PayPal", 0.0),
        ("all", "use PayPal or retry later", 1.0),
        ("none", "Sorry.", 1.0),
        ("none", None, 1.0),
        ("any", "", 0.0),
        ("any", None, "response_not_recorded"),
        ("all", None, "response_not_recorded"),
    ],
)
def test_how_many_must_be_mentioned_can_be_chosen(
    mention: str, response: str | None, expected: float | str
) -> None:
    assert (
        value_or_reason(error("retry later", "use PayPal"), response, mention=mention) == expected
    )
    assert value_or_reason(error(), response, mention=mention) == 0.0


def test_every_error_is_judged() -> None:
    actual = invocation(
        error("retry later"), error("use PayPal"), error(), final_response="retry later"
    )
    problem = "failed, and the response does not have any of its 1 suggestion"
    expected = [[0, "pay", None], [1, "pay", problem], [2, "pay", "failed without suggestions"]]
    assert ErrorSuggestions().score(actual, None) == Score(
        0.0, None, f"pay (call 1) {problem}, and 1 more", {"errors": expected}
    )
    good = invocation(error("retry later"), error("retry"), final_response="retry later")
    details = {"errors": [[0, "pay", None], [1, "pay", None]]}
    assert ErrorSuggestions().score(good, None) == Score(
        1.0, None, "2 failed tool calls with suggestions", details
    )


def test_an_error_that_was_seen_without_suggestions_is_certain() -> None:
    lossy = {"flags": frozenset({"no_tool_spans"}), "final_response": "retry later"}
    assert (
        ErrorSuggestions()
        .score(invocation(error(), error(result=None, error="boom"), **lossy), None)
        .value
        == 0.0
    )
    assert (
        ErrorSuggestions().score(invocation(error("retry"), **lossy), None).reason
        == "tools_not_recorded"
    )


def test_the_choice_is_checked() -> None:
    for mention in ("any", "all", "none"):
        check_scorer(ErrorSuggestions(mention), [(invocation(error("retry")), None)])
    with pytest.raises(ValueError, match="mention: found 'one', expected one of any, all, none"):
        ErrorSuggestions("one")  # type: ignore[arg-type]
