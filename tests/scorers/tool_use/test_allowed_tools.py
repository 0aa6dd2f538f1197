"""Allowed tools: what counts as a call of another tool, and when that is not known."""

from typing import Any

import pytest

from pathgauge import AllowedTools, Score, ToolCall, check_scorer, invocation, tool_calls

INCOMPLETE = frozenset({"dropped_spans"})


def score(calls: str, tools: tuple[str, ...] | None, **options: Any) -> Score:
    flags = options.pop("flags", frozenset())
    actual = invocation(*tool_calls(calls), flags=flags)
    return AllowedTools(tools, **options).score(actual, None)


@pytest.mark.parametrize(
    ("calls", "tools", "value", "share"),
    [
        ("search fetch", ("search", "fetch"), 1.0, 1.0),
        ("search delete search delete", ("search",), 0.0, 0.5),
        ("mcp__git__push mcp__git__pull", ("mcp__git__*",), 1.0, 1.0),
        ("mcp__git__push", ("mcp__*__pull",), 0.0, 0.0),
        ("Search", ("search",), 0.0, 0.0),
        ("search", (" search ",), 1.0, 1.0),
        ("search", (), 0.0, 0.0),
        ("", (), 1.0, 1.0),
        ("", ("search",), 1.0, 1.0),
    ],
)
def test_only_allowed_tools_may_be_called(
    calls: str, tools: tuple[str, ...], value: float, share: float
) -> None:
    assert score(calls, tools).value == value
    assert score(calls, tools, partial=True).value == share


def test_the_explanation_names_other_tools() -> None:
    assert score("search delete wipe delete", ("search",)) == Score(
        0.0,
        None,
        "1 of 4 calls are allowed; not delete x2, wipe",
        {"calls": [[1, "delete"], [2, "wipe"], [3, "delete"]]},
    )


def test_delegations_and_final_answers_are_checked_on_request() -> None:
    calls = (
        ToolCall("transfer_to_billing", {}, kind="handoff"),
        ToolCall("researcher", {}, kind="agent"),
        ToolCall("final_answer", {}, kind="final_answer"),
    )
    assert AllowedTools(()).score(invocation(*calls), None).value == 1.0
    strict = AllowedTools(("researcher",), delegations=True).score(invocation(*calls), None)
    assert strict.details == {"calls": [[0, "transfer_to_billing"], [2, "final_answer"]]}


@pytest.mark.parametrize(
    ("calls", "partial", "value", "reason"),
    [
        ("delete", False, 0.0, None),
        ("search", False, None, "tools_not_recorded"),
        ("delete", True, None, "tools_not_recorded"),
    ],
)
def test_a_call_of_another_tool_is_certain_although_calls_may_be_missing(
    calls: str, partial: bool, value: float | None, reason: str | None
) -> None:
    found = score(calls, ("search",), partial=partial, flags=INCOMPLETE)
    assert (found.value, found.reason) == (value, reason)


def test_without_a_list_there_is_no_value() -> None:
    assert score("search", None).reason == "no_reference"


def test_a_blank_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="tools: found ' ', expected the name of a tool"):
        AllowedTools((" ",))


def test_it_keeps_the_contract() -> None:
    check_scorer(AllowedTools(("s*",), delegations=True, partial=True))
