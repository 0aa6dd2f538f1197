"""Step efficiency, similarity and the first divergence: golden values, options, and what optional
and grouped calls change.
"""

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
from pathgauge.scorers.trajectories.steps import (
    FirstDivergence,
    StepEfficiency,
    TrajectorySimilarity,
)
from pathgauge.scorers.types import ExpectedCall, Flag, ReferenceTurn, Score, Scorer, ToolCall
from support.examples import examples

LEVENSHTEIN, OSA, LCS = (
    TrajectorySimilarity(),
    TrajectorySimilarity("osa"),
    TrajectorySimilarity("lcs"),
)
BY_NAME = StepEfficiency(), LEVENSHTEIN, OSA, LCS, FirstDivergence()
SCORERS: list[Scorer] = [
    *BY_NAME,
    FirstDivergence("name_and_args"),
    FirstDivergence("name_and_required_args"),
]
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
        ("", "", [None, 1, 1, 1, 1]),
        ("", "a", [None, 0, 0, 0, 0]),
        ("a", "", [0, 0, 0, 0, 0]),
        ("ba", "ab", [1, 0, 1 / 2, 1 / 2, 0]),
        ("acb", "ab", [2 / 3, 2 / 3, 2 / 3, 2 / 3, 1 / 2]),
        ("abc", "abcd", [1, 3 / 4, 3 / 4, 3 / 4, 3 / 4]),
        ("abcd", "abc", [3 / 4, 3 / 4, 3 / 4, 3 / 4, 1]),
        ("axc", "abc", [1, 2 / 3, 2 / 3, 2 / 3, 1 / 3]),
        ("aaaaab", "ab", [1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 2]),
        ("adca", "abca", [1, 3 / 4, 3 / 4, 3 / 4, 1 / 4]),
    ],
)
def test_golden_values(actual: str, expected: str, values: list[float | None]) -> None:
    assert [score(scorer, actual, expected).value for scorer in BY_NAME] == pytest.approx(values)


def test_efficiency_without_calls_is_undefined() -> None:
    assert [score(StepEfficiency(), "", expected).reason for expected in ("", "a")] == [
        "undefined"
    ] * 2


@pytest.mark.parametrize(
    ("scorer", "actual", "expected", "line"),
    [
        (StepEfficiency(), "aab", "ab", "3 calls where 2 were expected"),
        (StepEfficiency(), "a", "ab", "1 call where 2 were expected"),
        (LEVENSHTEIN, "aab", "ab", "edit distance 1 between 3 calls and 2 expected ones"),
        (OSA, "ba", "ab", "edit distance 1 between 2 calls and 2 expected ones"),
        (LCS, "b", "ab", "1 call in common, in order, of 1 made and 2 expected"),
        (FirstDivergence(), "abx", "abcd", "the first 2 of 4 steps agree; then x instead of c"),
        (
            FirstDivergence(),
            "ab",
            "abcd",
            "the first 2 of 4 steps agree; then nothing instead of c",
        ),
        (FirstDivergence(), "abx", "ab", "the first 2 of 2 steps agree; then x"),
        (FirstDivergence(), "ab", "ab", "the first 2 of 2 steps agree"),
        (FirstDivergence(), "a", "", "no steps expected; then a"),
        (FirstDivergence(), "", "", "no steps expected"),
    ],
)
def test_explanations(scorer: Scorer, actual: str, expected: str, line: str) -> None:
    assert score(scorer, actual, expected).explanation == line


def test_the_evidence_of_the_first_divergence() -> None:
    assert score(FirstDivergence(), "abx", "abcd").details == {
        "matched": [[0, 0, "a"], [1, 1, "b"]],
        "missing": [[2, "c"], [3, "d"]],
        "unexpected": [[2, "x"]],
        "counts": {"matched": 2, "actual": 3, "expected": 4},
        "divergence": {"actual": [2, "x"], "expected": [2, "c"]},
    }
    assert score(FirstDivergence(), "a", "ab").details["divergence"] == {
        "actual": None,
        "expected": [1, "b"],
    }
    assert score(FirstDivergence(), "ab", "a").details["divergence"] == {
        "actual": [1, "b"],
        "expected": None,
    }
    assert score(FirstDivergence(), "ab", "ab").details["divergence"] is None


@pytest.mark.parametrize(
    ("mode", "agreeing"), [("name_only", 4), ("name_and_required_args", 3), ("name_and_args", 2)]
)
def test_the_match_mode_says_what_makes_a_call_the_expected_one(mode: Any, agreeing: int) -> None:
    actual = invocation(
        tool_call("a"), tool_call("a", x=1), tool_call("b", x=1, y=2), tool_call("b", x=2)
    )
    expected = reference_turn(
        ExpectedCall("a"), expected_call("a", x=1), expected_call("b", x=1), expected_call("b", x=1)
    )
    result = FirstDivergence(mode).score(actual, expected)
    assert result.value == agreeing / 4
    if mode != "name_only":
        assert (
            result.explanation
            == f"the first {agreeing} of 4 steps agree; then b with other arguments"
        )


def test_a_call_that_is_paired_with_a_later_step_still_agrees_with_its_own() -> None:
    actual = invocation(tool_call("a", x=1), tool_call("b"), tool_call("a", x=1))
    expected = reference_turn(ExpectedCall("a"), expected_call("a", x=1))
    assert FirstDivergence("name_and_args").score(actual, expected).value == 1 / 2


@pytest.mark.parametrize(
    ("scorer", "option", "message"),
    [
        (
            TrajectorySimilarity,
            "measure",
            "measure: found 'jaro', expected one of levenshtein, osa, lcs",
        ),
        (FirstDivergence, "match_mode", "match_mode: found 'jaro', expected one of name_only, "),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(
    scorer: Any, option: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        scorer("jaro")
    with pytest.raises(ValidationError, match=option):
        TypeAdapter(scorer).validate_python({option: "jaro"})


OPTIONAL = reference_turn(ExpectedCall("a"), ExpectedCall("b", optional=True), ExpectedCall("c"))


@pytest.mark.parametrize(
    ("actual", "values"),
    [
        ("ac", [1, 1, 1, 1, 1]),
        ("abc", [1, 1, 1, 1, 1]),
        ("abbc", [3 / 4, 3 / 4, 3 / 4, 3 / 4, 2 / 3]),
        ("axc", [2 / 3, 2 / 3, 2 / 3, 2 / 3, 1 / 2]),
        ("cab", [1, 1 / 3, 1 / 3, 2 / 3, 0]),
        ("b", [1, 1 / 3, 1 / 3, 1 / 3, 0]),
    ],
)
def test_optional_calls_are_steps_only_when_they_were_made(
    actual: str, values: list[float]
) -> None:
    found = [
        scorer.score(invocation(*tool_calls(" ".join(actual))), OPTIONAL).value
        for scorer in BY_NAME
    ]
    assert found == pytest.approx(values)


GROUPED = reference_turn(
    ExpectedCall("a"), ExpectedCall("b", group=1), ExpectedCall("c", group=1), ExpectedCall("d")
)


@pytest.mark.parametrize(
    ("actual", "values"),
    [
        ("abcd", [1, 1, 1, 1, 1]),
        ("acbd", [1, 1, 1, 1, 1]),
        ("acd", [1, 3 / 4, 3 / 4, 3 / 4, 1 / 2]),
        ("acxd", [1, 3 / 4, 3 / 4, 3 / 4, 1 / 2]),
        ("bacd", [1, 1 / 2, 3 / 4, 3 / 4, 0]),
    ],
)
def test_grouped_calls_are_steps_in_the_order_in_which_they_were_made(
    actual: str, values: list[float]
) -> None:
    found = [
        scorer.score(invocation(*tool_calls(" ".join(actual))), GROUPED).value for scorer in BY_NAME
    ]
    assert found == pytest.approx(values)


def test_the_alternative_that_agrees_best_counts_and_is_the_one_of_the_evidence() -> None:
    expected = ReferenceTurn(
        tool_calls=expected_calls("a b"),
        alternatives=(expected_calls("c d e"), expected_calls("c d")),
    )
    actual = invocation(*tool_calls("c d"))
    assert [scorer.score(actual, expected).value for scorer in BY_NAME] == [1.0] * 5
    result = FirstDivergence().score(invocation(*tool_calls("c d x")), expected)
    assert (result.value, result.details["alternative"], result.details["divergence"]) == (
        1.0,
        2,
        {"actual": [2, "x"], "expected": None},
    )


@pytest.mark.parametrize("flag", ["no_tool_spans", "dropped_spans"])
@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_calls_that_may_be_missing_from_the_telemetry_are_not_scored(
    scorer: Scorer, flag: Flag
) -> None:
    result = scorer.score(
        invocation(tool_call("a"), flags=frozenset({flag})), reference_turn(expected_call("a"))
    )
    assert (result.reason, result.details) == ("tools_not_recorded", {})


ARGUMENTS = st.sampled_from([None, {}, {"x": 1}, {"x": 2}, {"x": 1, "y": 1}])
GUESSES: tuple[dict[str, Any], ...] = ({}, {"x": 1}, {"x": 2}, {"x": 1, "y": 1}, {"z": 0})


def recordings(calls: list[ToolCall]) -> list[tuple[ToolCall, ...]]:
    """All ways to give arguments to the calls whose arguments were not recorded."""
    ways: list[tuple[ToolCall, ...]] = [()]
    for call in calls:
        known = GUESSES if call.arguments is None else (call.arguments,)
        ways = [(*way, ToolCall(call.name, arguments)) for way in ways for arguments in known]
    return ways


@pytest.mark.parametrize("scorer", SCORERS[-3:], ids=repr)
@settings(deadline=None, max_examples=examples(60))
@given(
    made=st.lists(st.builds(ToolCall, st.sampled_from("ab"), ARGUMENTS), max_size=3),
    asked=st.lists(st.builds(ExpectedCall, st.sampled_from("ab"), ARGUMENTS), max_size=3),
)
def test_a_value_is_given_exactly_when_no_recording_of_the_arguments_would_change_it(
    scorer: Scorer, made: list[ToolCall], asked: list[ExpectedCall]
) -> None:
    possible = {
        scorer.score(invocation(*way), reference_turn(*asked)).value for way in recordings(made)
    }
    result = scorer.score(invocation(*made), reference_turn(*asked))
    assert (result.reason == "args_not_recorded") == (len(possible) > 1)
    assert result.reason == "args_not_recorded" or {result.value} == possible


def test_steps_that_depend_on_arguments_that_were_not_recorded_are_not_certain() -> None:
    actual = invocation(ToolCall("a"), ToolCall("a"), ToolCall("a"))
    expected = reference_turn(ExpectedCall("a"), ExpectedCall("a", {"x": 1}, optional=True))
    assert FirstDivergence("name_and_args").score(actual, expected).reason == "args_not_recorded"
    assert FirstDivergence().score(actual, expected).value == 1.0


@pytest.mark.parametrize("scorer", SCORERS[-3:], ids=repr)
@settings(deadline=None, max_examples=examples(60))
@given(
    made=st.lists(st.builds(ToolCall, st.sampled_from("ab"), ARGUMENTS), max_size=3),
    asked=st.lists(
        st.builds(
            ExpectedCall,
            st.sampled_from("ab"),
            ARGUMENTS,
            st.booleans(),
            st.sampled_from([None, 1]),
        ),
        max_size=3,
    ),
)
def test_a_value_holds_for_every_recording_of_the_arguments(
    scorer: Scorer, made: list[ToolCall], asked: list[ExpectedCall]
) -> None:
    result = scorer.score(invocation(*made), reference_turn(*asked))
    if result.value is not None:
        assert {
            scorer.score(invocation(*way), reference_turn(*asked)).value for way in recordings(made)
        } == {result.value}


@settings(deadline=None)
@given(LETTERS, LETTERS)
def test_similarities_are_symmetric_ordered_and_1_for_the_same_calls_alone(
    actual: list[str], expected: list[str]
) -> None:
    one, other = "".join(actual), "".join(expected)
    values = [score(scorer, one, other).value for scorer in (LEVENSHTEIN, OSA, LCS)]
    assert values == [score(scorer, other, one).value for scorer in (LEVENSHTEIN, OSA, LCS)]
    assert [value == 1 for value in values] == [one == other] * 3
    levenshtein, osa, lcs = (value or 0.0 for value in values)
    assert levenshtein <= osa
    assert levenshtein <= lcs


@settings(deadline=None)
@given(LETTERS, LETTERS)
def test_the_first_divergence_is_the_common_beginning(
    actual: list[str], expected: list[str]
) -> None:
    agreeing = next(
        (i for i, (one, other) in enumerate(zip(actual, expected, strict=False)) if one != other),
        min(len(actual), len(expected)),
    )
    value = agreeing / len(expected) if expected else float(not actual)
    assert score(FirstDivergence(), "".join(actual), "".join(expected)).value == value


def test_two_thousand_calls_are_scored_and_one_more_is_too_long() -> None:
    for scorer in SCORERS:
        assert score(scorer, "a" * 2000, "a" * 2000).value == 1.0
        assert score(scorer, "a" * 2001, "a").reason == "too_long"


def test_explanations_are_one_line_whatever_the_tools_are_called() -> None:
    actual, expected = invocation(tool_call("a\nb")), reference_turn(expected_call("c\nd"))
    assert (
        FirstDivergence().score(actual, expected).explanation
        == "the first 0 of 1 steps agree; then a b instead of c d"
    )
