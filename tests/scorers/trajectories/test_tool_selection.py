"""Which tools were picked: precision, recall, accuracy and F1 by tool, each call counting once."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import TypeAdapter, ValidationError

from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation,
    reference_turn,
    tool_call,
    tool_calls,
)
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.trajectories.tool_selection import (
    PerToolF1,
    ToolPrecision,
    ToolRecall,
    ToolSelectionAccuracy,
)
from pathgauge.scorers.types import ExpectedCall, Flag, ReferenceTurn, Score, Scorer, ToolCall

SCORERS: list[Scorer] = [
    ToolPrecision(),
    ToolPrecision("name_and_args"),
    ToolRecall(),
    ToolRecall("name_and_required_args"),
    ToolSelectionAccuracy(),
    PerToolF1(),
]
BY_NAME = ToolPrecision(), ToolRecall(), ToolSelectionAccuracy(), PerToolF1()
LETTERS = st.lists(st.sampled_from("abc"), max_size=6)


def score(scorer: Scorer, actual: str, expected: str) -> Score:
    """Score calls given as letters."""
    return scorer.score(
        invocation(*tool_calls(" ".join(actual))),
        reference_turn(*expected_calls(" ".join(expected))),
    )


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_the_contract_is_kept(scorer: Scorer) -> None:
    check_scorer(scorer)


@pytest.mark.parametrize(
    ("actual", "expected", "values"),
    [
        ("", "", [1.0, 1.0, 1.0, 1.0]),
        ("a", "", [0.0, None, 0.0, 0.0]),
        ("", "a", [0.0, 0.0, 0.0, 0.0]),
        ("ab", "ab", [1.0, 1.0, 1.0, 1.0]),
        ("ba", "ab", [1.0, 1.0, 1.0, 1.0]),
        ("aaaa", "a", [1 / 4, 1.0, 1 / 4, 2 / 5]),
        ("a", "aaaa", [1.0, 1 / 4, 1 / 4, 2 / 5]),
        ("ac", "ab", [1 / 2, 1 / 2, 1 / 2, 1 / 3]),
        ("abc", "ab", [2 / 3, 1.0, 2 / 3, 2 / 3]),
        ("aaaaaaab", "aaaaaaac", [7 / 8, 7 / 8, 7 / 8, 1 / 3]),
    ],
)
def test_values_by_name(actual: str, expected: str, values: list[float | None]) -> None:
    assert [score(scorer, actual, expected).value for scorer in BY_NAME] == pytest.approx(values)


def test_recall_of_calls_that_nobody_expected_is_undefined() -> None:
    assert score(ToolRecall(), "a", "").reason == "undefined"


@pytest.mark.parametrize(
    ("mode", "matched"), [("name_only", 3), ("name_and_required_args", 2), ("name_and_args", 1)]
)
def test_the_match_mode_says_what_makes_a_call_the_expected_one(mode: Any, matched: int) -> None:
    actual = invocation(
        tool_call("a", x=1), tool_call("a", x=2, y=1), tool_call("a", x=9), tool_call("b")
    )
    expected = reference_turn(
        expected_call("a", x=1), expected_call("a", x=2), expected_call("a", x=3)
    )
    assert ToolPrecision(mode).score(actual, expected).value == matched / 4
    assert ToolRecall(mode).score(actual, expected).value == matched / 3


@pytest.mark.parametrize("scorer", [ToolPrecision, ToolRecall])
def test_other_match_modes_are_refused(scorer: Any) -> None:
    with pytest.raises(ValueError, match="match_mode: found 'args', expected one of name_only, "):
        scorer("args")
    with pytest.raises(ValidationError, match="match_mode"):
        TypeAdapter(scorer).validate_python({"match_mode": "args"})


def test_the_evidence_by_tool() -> None:
    assert score(PerToolF1(), "aabd", "abc") == Score(
        (2 / 3 + 1 + 0 + 0) / 4,
        None,
        "the calls of 1 of 4 tools are the expected ones; not those of c, d, a",
        {
            "matched": [[0, 0, "a"], [2, 1, "b"]],
            "missing": [[2, "c"]],
            "unexpected": [[1, "a"], [3, "d"]],
            "counts": {"matched": 2, "actual": 4, "expected": 3},
            "tools": {
                "a": {
                    "precision": 0.5,
                    "recall": 1.0,
                    "f1": 2 / 3,
                    "matched": 1,
                    "actual": 2,
                    "expected": 1,
                },
                "b": {
                    "precision": 1.0,
                    "recall": 1.0,
                    "f1": 1.0,
                    "matched": 1,
                    "actual": 1,
                    "expected": 1,
                },
                "c": {
                    "precision": None,
                    "recall": 0.0,
                    "f1": 0.0,
                    "matched": 0,
                    "actual": 0,
                    "expected": 1,
                },
                "d": {
                    "precision": 0.0,
                    "recall": None,
                    "f1": 0.0,
                    "matched": 0,
                    "actual": 1,
                    "expected": 0,
                },
            },
        },
    )
    assert (
        score(PerToolF1(), "ab", "ba").explanation
        == "the calls of 2 of 2 tools are the expected ones"
    )


@pytest.mark.parametrize(
    ("actual", "values"),
    [
        ("a", [1.0] * 4),
        ("ab", [1.0] * 4),
        ("abb", [2 / 3, 1.0, 2 / 3, 5 / 6]),
        ("b", [1.0, 0.5, 0.5, 0.5]),
    ],
)
def test_optional_calls_may_be_left_out_and_may_be_made(actual: str, values: list[float]) -> None:
    expected = reference_turn(ExpectedCall("a"), ExpectedCall("b", optional=True))
    assert [
        scorer.score(invocation(*tool_calls(" ".join(actual))), expected).value
        for scorer in BY_NAME
    ] == pytest.approx(values)


def test_the_alternative_that_agrees_best_counts_and_is_the_one_of_the_evidence() -> None:
    expected = ReferenceTurn(
        tool_calls=expected_calls("a b"), alternatives=(expected_calls("c"), expected_calls("c d"))
    )
    for scorer in BY_NAME:
        assert scorer.score(invocation(*tool_calls("d c")), expected).value == 1.0
    result = PerToolF1().score(invocation(*tool_calls("c d d")), expected)
    assert result.value == pytest.approx(5 / 6)
    assert (result.details["alternative"], sorted(result.details["tools"])) == (2, ["c", "d"])


@pytest.mark.parametrize("flag", ["no_tool_spans", "dropped_spans"])
@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_calls_that_may_be_missing_from_the_telemetry_are_not_scored(
    scorer: Scorer, flag: Flag
) -> None:
    result = scorer.score(
        invocation(tool_call("a"), flags=frozenset({flag})), reference_turn(expected_call("a"))
    )
    assert (result.reason, result.details) == ("tools_not_recorded", {})


def test_arguments_that_were_not_recorded_matter_only_where_they_are_looked_at() -> None:
    actual, expected = (
        invocation(ToolCall("a"), tool_call("b")),
        reference_turn(expected_call("a", x=1), expected_call("b")),
    )
    assert [scorer.score(actual, expected).value for scorer in BY_NAME] == [1.0] * 4
    assert [
        scorer("name_and_args").score(actual, expected).reason
        for scorer in (ToolPrecision, ToolRecall)
    ] == ["args_not_recorded"] * 2


@settings(deadline=None)
@given(LETTERS, LETTERS)
def test_values_are_those_of_multisets(actual: list[str], expected: list[str]) -> None:
    made, asked = Counter(actual), Counter(expected)
    common = (made & asked).total()
    tools = made | asked
    by_tool = [2 * min(made[tool], asked[tool]) / (made[tool] + asked[tool]) for tool in tools]
    recall_of_nothing = None if actual else 1.0
    wanted = [
        common / len(actual) if actual else float(not expected),
        common / len(expected) if expected else recall_of_nothing,
        common / max(len(actual), len(expected)) if tools else 1.0,
        sum(by_tool) / len(by_tool) if by_tool else 1.0,
    ]
    assert [
        score(scorer, "".join(actual), "".join(expected)).value for scorer in BY_NAME
    ] == pytest.approx(wanted)


@settings(deadline=None)
@given(LETTERS, LETTERS)
def test_accuracy_is_the_lower_of_precision_and_recall(
    actual: list[str], expected: list[str]
) -> None:
    values = [score(scorer, "".join(actual), "".join(expected)).value for scorer in BY_NAME[:3]]
    assert values[2] == min(value for value in values[:2] if value is not None)


def test_two_thousand_calls_are_scored_and_one_more_is_too_long() -> None:
    for scorer in SCORERS:
        assert score(scorer, "a" * 2000, "a" * 2000).value == 1.0
        assert score(scorer, "a" * 2001, "a").reason == "too_long"
