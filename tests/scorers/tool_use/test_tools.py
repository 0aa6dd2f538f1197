"""Required, essential and forbidden tools, in any order."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation,
    tool_call,
    tool_calls,
)
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.matching.matchers import Near, Pattern
from pathgauge.scorers.tool_use.tools import EssentialToolsPresent, ForbiddenTools, RequiredTools
from pathgauge.scorers.types import ExpectedCall, ReferenceTurn, Score, ToolCall

UNKNOWN = frozenset({"no_tool_spans"})


def value_or_reason(score: Score) -> float | str | None:
    return score.reason or score.value


# "Evaluator Catalog & Scoring": eval_level_1_2, but a tool expected twice is called twice


@pytest.mark.parametrize(
    ("calls", "required", "value"),
    [
        ("lookup_order", "lookup_order", 1.0),
        ("create_ticket lookup_order send_email", "lookup_order create_ticket", 1.0),
        ("lookup_order", "lookup_order create_ticket", 0.0),
        ("a", "a a", 0.0),
        ("a b a", "a a", 1.0),
        ("", "a", 0.0),
    ],
)
def test_every_required_tool_is_called_as_often_as_required(
    calls: str, required: str, value: float
) -> None:
    actual = invocation(*tool_calls(calls))
    assert RequiredTools(tuple(required.split())).score(actual, None).value == value
    assert (
        RequiredTools().score(actual, ReferenceTurn(tool_calls=expected_calls(required))).value
        == value
    )


@pytest.mark.parametrize(
    ("turn", "value"),
    [
        (ReferenceTurn(tool_calls=()), 1.0),
        (ReferenceTurn(tool_calls=(ExpectedCall("a"), ExpectedCall("b", optional=True))), 1.0),
        (
            ReferenceTurn(
                tool_calls=expected_calls("b"),
                alternatives=(expected_calls("c"), expected_calls("a")),
            ),
            1.0,
        ),
        (ReferenceTurn(tool_calls=expected_calls("b"), alternatives=(expected_calls("c"),)), 0.0),
        (ReferenceTurn(tool_calls=(expected_call(" a\n", x=1),)), 1.0),
    ],
)
def test_the_reference_requires_its_calls_whatever_their_arguments(
    turn: ReferenceTurn, value: float
) -> None:
    assert RequiredTools().score(invocation(*tool_calls("a")), turn).value == value


def test_the_options_go_before_the_reference() -> None:
    score = RequiredTools(("a", "b", "b")).score(
        invocation(*tool_calls("a b")), ReferenceTurn(tool_calls=())
    )
    assert score == Score(0.0, None, "missing b", {"required": ["a", "b", "b"], "missing": ["b"]})
    found = RequiredTools(("a",)).score(invocation(*tool_calls("a")), None)
    assert found == Score(
        1.0, None, "all required tools were called: a", {"required": ["a"], "missing": []}
    )


@pytest.mark.parametrize(
    ("calls", "turn", "expected"),
    [
        ("a", None, "no_reference"),
        ("a", ReferenceTurn(), "no_reference"),
        ("a", ReferenceTurn(tool_calls=expected_calls("a")), 1.0),
        ("a", ReferenceTurn(tool_calls=expected_calls("a b")), "tools_not_recorded"),
    ],
)
def test_tools_that_were_seen_are_certain(
    calls: str, turn: ReferenceTurn | None, expected: float | str
) -> None:
    assert (
        value_or_reason(RequiredTools().score(invocation(*tool_calls(calls), flags=UNKNOWN), turn))
        == expected
    )


# Vertex AI, "Evaluate Gen AI agents": its custom metric essential_tools_present


@pytest.mark.parametrize(
    ("required", "value"),
    [
        (("tool1", "tool2"), 1.0),
        (("tool1", "tool3"), 0.5),
        (("tool3",), 0.0),
        ((), 1.0),
        (("tool1", "tool1", "tool3"), 2 / 3),
        (("tool2", "tool2"), 1.0),
    ],
)
def test_essential_tools_count_by_membership(required: tuple[str, ...], value: float) -> None:
    assert (
        EssentialToolsPresent(required)
        .score(invocation(*tool_calls("tool1 tool2 tool1")), None)
        .value
        == value
    )


def test_missing_essential_tools_are_named() -> None:
    score = EssentialToolsPresent(("a", "b", "b")).score(invocation(*tool_calls("a")), None)
    assert score == Score(
        1 / 3, None, "1 of 3 essential tools were called; missing b x2", {"missing": ["b", "b"]}
    )


@pytest.mark.parametrize(
    ("required", "expected"), [(("a",), 1.0), ((), 1.0), (("a", "b"), "tools_not_recorded")]
)
def test_essential_tools_that_were_seen_are_certain(
    required: tuple[str, ...], expected: float | str
) -> None:
    assert (
        value_or_reason(
            EssentialToolsPresent(required).score(invocation(*tool_calls("a"), flags=UNKNOWN), None)
        )
        == expected
    )


DELETE = ToolCall("delete")
FORCED = expected_call("delete", force=True)


@pytest.mark.parametrize(
    ("call", "forbidden", "expected"),
    [
        pytest.param(tool_call("delete"), ExpectedCall("delete"), 0.0, id="whatever the arguments"),
        pytest.param(
            DELETE, ExpectedCall(" delete "), 0.0, id="arguments not recorded, and none asked for"
        ),
        pytest.param(DELETE, ExpectedCall("delete", {}), 0.0, id="no particular arguments"),
        pytest.param(tool_call("delete", force=True), FORCED, 0.0, id="the arguments"),
        pytest.param(
            tool_call("delete", force=True, path="/"), FORCED, 0.0, id="the arguments and others"
        ),
        pytest.param(
            ToolCall("delete", '"{\\"force\\": true}"'),
            FORCED,
            0.0,
            id="the arguments as text of text",
        ),
        pytest.param(tool_call("delete", force=1), FORCED, 1.0, id="other arguments"),
        pytest.param(tool_call("delete"), FORCED, 1.0, id="no arguments"),
        pytest.param(ToolCall("delete", "--force"), FORCED, 1.0, id="arguments that are no object"),
        pytest.param(DELETE, FORCED, "args_not_recorded", id="arguments not recorded"),
        pytest.param(tool_call("remove", force=True), FORCED, 1.0, id="another tool"),
        pytest.param(
            tool_call("delete", path="/etc/x"),
            expected_call("delete", path=Pattern("/etc/.*")),
            0.0,
            id="a matcher",
        ),
        pytest.param(
            tool_call("delete", path="/tmp/x"),
            expected_call("delete", path=Pattern("/etc/.*")),
            1.0,
            id="a matcher that fails",
        ),
        pytest.param(
            tool_call("delete", path="a" * 20_000),
            expected_call("delete", path=Pattern("a*")),
            "too_long",
            id="too long",
        ),
    ],
)
def test_forbidden_calls_of_the_reference(
    call: ToolCall, forbidden: ExpectedCall, expected: float | str
) -> None:
    assert (
        value_or_reason(
            ForbiddenTools().score(
                invocation(*tool_calls("search"), call), ReferenceTurn(forbidden=(forbidden,))
            )
        )
        == expected
    )


def test_a_forbidden_call_that_was_seen_is_certain() -> None:
    turn = ReferenceTurn(forbidden=(FORCED, expected_call("pay", amount=Near(1_000, rel=0.5))))
    actual = invocation(
        DELETE, tool_call("pay", amount=900), *tool_calls("shutdown shutdown"), flags=UNKNOWN
    )
    score = ForbiddenTools(("shutdown",)).score(actual, turn)
    assert score == Score(
        0.0,
        None,
        "called pay, shutdown x2",
        {"calls": [[1, "pay"], [2, "shutdown"], [3, "shutdown"]]},
    )


def test_no_forbidden_call_is_certain_when_all_calls_are_known() -> None:
    assert ForbiddenTools(("a", "b")).score(invocation(), None) == Score(
        1.0, None, "no call of a, b", {"calls": []}
    )
    assert (
        ForbiddenTools(("a",)).score(invocation(flags=UNKNOWN), None).reason == "tools_not_recorded"
    )


def test_calls_that_may_be_forbidden_are_named() -> None:
    score = ForbiddenTools().score(
        invocation(*tool_calls("a"), DELETE), ReferenceTurn(forbidden=(FORCED,))
    )
    line = "arguments not recorded; some arguments are forbidden for delete"
    assert score == Score(None, "args_not_recorded", line, {"calls": [[1, "delete"]]})


@pytest.mark.parametrize("turn", [None, ReferenceTurn(), ReferenceTurn(tool_calls=())])
def test_where_nothing_is_forbidden_there_is_no_value(turn: ReferenceTurn | None) -> None:
    assert ForbiddenTools().score(invocation(*tool_calls("a")), turn) == Score.not_evaluated(
        "no_reference", "no tool is forbidden"
    )


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        (RequiredTools, "tools"),
        (EssentialToolsPresent, "required_tools"),
        (ForbiddenTools, "tools"),
    ],
)
def test_tools_have_names(kind: Any, option: str) -> None:
    turn = ReferenceTurn(forbidden=(expected_call("search", q="tea"),))
    check_scorer(kind(("search", "book")), [(invocation(tool_call("search", q=[1])), turn)])
    with pytest.raises(ValueError, match=f"{option}: found '', expected the name of a tool"):
        kind(("search", ""))


NAMES = st.lists(st.sampled_from("abc"), max_size=6)


@given(NAMES, NAMES)
def test_required_tools_are_all_there_when_each_is_essential_and_none_is_repeated(
    calls: list[str], required: list[str]
) -> None:
    actual = invocation(*tool_calls(" ".join(calls)))
    distinct = tuple(dict.fromkeys(required))
    essential = EssentialToolsPresent(distinct).score(actual, None).value
    assert RequiredTools(distinct).score(actual, ReferenceTurn(tool_calls=())).value == float(
        essential == 1.0
    )
