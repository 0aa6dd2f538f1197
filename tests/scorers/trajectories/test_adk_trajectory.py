"""The trajectory scorers: golden values, options, edges, and when there is no value."""

import math
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import TypeAdapter, ValidationError

from pathgauge import (
    ExpectedCall,
    Flag,
    Invocation,
    MatchMode,
    MatchType,
    Reason,
    ReferenceTurn,
    Score,
    Scorer,
    ToolCall,
    ToolTrajectoryAvgScore,
    ToolTrajectoryF1,
    TrajectoryAnyOrderMatch,
    TrajectoryExactMatch,
    TrajectoryInOrderMatch,
    TrajectoryPrecision,
    TrajectoryRecall,
    TrajectorySingleToolUse,
)
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation,
    reference_turn,
    tool_call,
    tool_calls,
)
from pathgauge.scorers.matching.matchers import (
    AnyOrder,
    Anything,
    AtLeast,
    Ignored,
    Near,
    OneOf,
    Pattern,
)
from support.examples import examples

MODES: tuple[MatchMode, ...] = get_args(MatchMode)
EXACT, IN_ORDER, ANY_ORDER = (ToolTrajectoryAvgScore(match_type=kind) for kind in MatchType)
WITH_REFERENCE: list[Scorer] = [
    EXACT,
    IN_ORDER,
    ANY_ORDER,
    ToolTrajectoryF1(),
    ToolTrajectoryF1("name_and_required_args", ordered=False),
    TrajectoryExactMatch(),
    TrajectoryInOrderMatch(),
    TrajectoryAnyOrderMatch(),
    TrajectoryPrecision(),
    TrajectoryPrecision("multiset"),
    TrajectoryRecall(),
    TrajectoryRecall("multiset"),
]


def score(
    scorer: Scorer, actual: str | tuple[ToolCall, ...], expected: str | tuple[ExpectedCall, ...]
) -> Score:
    """Score calls given as letters, or as they are."""
    made = tool_calls(" ".join(actual)) if isinstance(actual, str) else actual
    asked = expected_calls(" ".join(expected)) if isinstance(expected, str) else expected
    return scorer.score(invocation(*made), reference_turn(*asked))


def value(
    scorer: Scorer, actual: str | tuple[ToolCall, ...], expected: str | tuple[ExpectedCall, ...]
) -> float | None:
    return score(scorer, actual, expected).value


A, E = tool_call, expected_call
F1_OF_NAMES = [
    ("abc", "abcd", 0.857, 0.857),
    ("acb", "ab", 0.8, 0.8),
    ("ba", "ab", 0.5, 1.0),
    ("aaa", "a", 0.5, 0.5),
    ("aba", "aab", 0.667, 1.0),
    ("ba", "aba", 0.8, 0.8),
    ("", "", 1.0, 1.0),
    ("", "a", 0.0, 0.0),
    ("a", "", 0.0, 0.0),
    ("axc", "abc", 0.667, 0.667),
    ("aaaaab", "ab", 0.5, 0.5),
    ("adca", "abca", 0.75, 0.75),
]
F1_OF_ARGUMENTS: list[
    tuple[tuple[ToolCall, ...], tuple[ExpectedCall, ...], tuple[float, ...], tuple[float, ...]]
] = [
    ((A("a", x=1),), (E("a", x=1.0),), (1, 1, 1), (1, 1, 1)),
    ((A("a", x=1),), (E("a", x=True),), (1, 0, 0), (1, 0, 0)),
    ((A("a", x=1, y=2),), (E("a", x=1),), (1, 0, 1), (1, 0, 1)),
    ((A("a", x=1, y=2), A("a", x=1)), (E("a", x=1), E("a", x=1, y=2)), (1, 0.5, 0.5), (1, 1, 1)),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("actual", "expected", "ordered", "unordered"), F1_OF_NAMES)
def test_f1_of_calls_without_arguments(
    mode: MatchMode, actual: str, expected: str, ordered: float, unordered: float
) -> None:
    assert value(ToolTrajectoryF1(mode), actual, expected) == pytest.approx(ordered, abs=5e-4)
    assert value(ToolTrajectoryF1(mode, ordered=False), actual, expected) == pytest.approx(
        unordered, abs=5e-4
    )


@pytest.mark.parametrize(("actual", "expected", "ordered", "unordered"), F1_OF_ARGUMENTS)
def test_f1_of_calls_with_arguments(
    actual: tuple[ToolCall, ...],
    expected: tuple[ExpectedCall, ...],
    ordered: tuple[float, ...],
    unordered: tuple[float, ...],
) -> None:
    assert tuple(value(ToolTrajectoryF1(mode), actual, expected) for mode in MODES) == ordered
    assert (
        tuple(value(ToolTrajectoryF1(mode, ordered=False), actual, expected) for mode in MODES)
        == unordered
    )


@pytest.mark.parametrize(
    ("actual", "expected", "exact", "in_order", "any_order"),
    [
        ("", "", 1, 1, 1),
        ("", "a", 0, 0, 0),
        ("a", "", 0, 1, 1),
        ("ab", "ab", 1, 1, 1),
        ("ba", "ab", 0, 0, 1),
        ("axb", "ab", 0, 1, 1),
        ("bxa", "ab", 0, 0, 1),
        ("a", "ab", 0, 0, 0),
        ("a", "aa", 0, 0, 0),
        ("aa", "a", 0, 1, 1),
        ("aba", "aab", 0, 0, 1),
    ],
)
def test_the_three_binary_modes(
    actual: str, expected: str, exact: float, in_order: float, any_order: float
) -> None:
    values = (exact, in_order, any_order)
    assert (
        tuple(value(scorer, actual, expected) for scorer in (EXACT, IN_ORDER, ANY_ORDER)) == values
    )
    vertex = (TrajectoryExactMatch(), TrajectoryInOrderMatch(), TrajectoryAnyOrderMatch())
    assert tuple(value(scorer, actual, expected) for scorer in vertex) == values


@pytest.mark.parametrize(
    ("actual", "expected", "membership", "multiset"),
    [
        ("aa", "a", (1.0, 1.0), (0.5, 1.0)),
        ("a", "aa", (1.0, 1.0), (1.0, 0.5)),
        ("ba", "ab", (1.0, 1.0), (1.0, 1.0)),
        ("axx", "ab", (1 / 3, 0.5), (1 / 3, 0.5)),
        ("", "", (1.0, 1.0), (1.0, 1.0)),
        ("", "a", (0.0, 0.0), (0.0, 0.0)),
        ("a", "", (0.0, None), (0.0, None)),
    ],
)
def test_precision_and_recall(
    actual: str,
    expected: str,
    membership: tuple[float, float | None],
    multiset: tuple[float, float | None],
) -> None:
    assert (
        value(TrajectoryPrecision(), actual, expected),
        value(TrajectoryRecall(), actual, expected),
    ) == membership
    assert (
        value(TrajectoryPrecision("multiset"), actual, expected),
        value(TrajectoryRecall("multiset"), actual, expected),
    ) == multiset


@pytest.mark.parametrize("duplicates", ["membership", "multiset"])
def test_recall_of_calls_that_nobody_expected_is_undefined(duplicates: Any) -> None:
    assert score(TrajectoryRecall(duplicates), "a", "").reason == "undefined"


def test_a_reference_call_without_arguments_accepts_any_and_one_with_empty_arguments_none() -> None:
    called = (A("a", x=1),)
    assert value(EXACT, called, (ExpectedCall("a"),)) == 1.0
    assert value(EXACT, called, (ExpectedCall("a", {}),)) == 0.0
    assert (
        value(ToolTrajectoryF1("name_and_required_args"), called, (ExpectedCall("a", {}),)) == 1.0
    )


def test_arguments_can_be_ignored() -> None:
    assert value(ToolTrajectoryAvgScore(ignore_args=True), (A("a", x=1),), (E("a", x=2),)) == 1.0
    assert value(ToolTrajectoryAvgScore(ignore_args=False), (A("a", x=1),), (E("a", x=2),)) == 0.0


def test_handoffs_and_final_answers_are_calls_like_others() -> None:
    made = (
        ToolCall("transfer_to_billing", {}, kind="handoff"),
        ToolCall("final_result", {}, kind="final_answer"),
    )
    assert value(EXACT, made, (E("transfer_to_billing"), E("final_result"))) == 1.0
    assert value(ToolTrajectoryF1(), made, (E("transfer_to_billing"),)) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [
        ("EXACT", MatchType.EXACT),
        ("exact", MatchType.EXACT),
        (0, MatchType.EXACT),
        ("in-order", MatchType.IN_ORDER),
        ("In Order", MatchType.IN_ORDER),
        (1, MatchType.IN_ORDER),
        ("any order", MatchType.ANY_ORDER),
        (" any_order ", MatchType.ANY_ORDER),
        (2, MatchType.ANY_ORDER),
        (MatchType.ANY_ORDER, MatchType.ANY_ORDER),
    ],
)
def test_match_types_are_understood_as_adk_spells_them(spelling: Any, meant: MatchType) -> None:
    assert ToolTrajectoryAvgScore(match_type=spelling).match_type is meant
    assert TypeAdapter(ToolTrajectoryAvgScore).validate_python(
        {"match_type": spelling}
    ) == ToolTrajectoryAvgScore(meant)


@pytest.mark.parametrize("spelling", ["1", "strict", "", 3, -1, True, None, 0.5])
def test_other_match_types_are_refused(spelling: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid MatchType"):
        ToolTrajectoryAvgScore(match_type=spelling)
    with pytest.raises(ValidationError, match="match_type"):
        TypeAdapter(ToolTrajectoryAvgScore).validate_python({"match_type": spelling})


@pytest.mark.parametrize(
    ("scorer", "option"),
    [
        (ToolTrajectoryF1, "match_mode"),
        (TrajectoryPrecision, "duplicates"),
        (TrajectoryRecall, "duplicates"),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(
    scorer: Any, option: str
) -> None:
    with pytest.raises(ValueError, match=f"^{option}: found 'names', expected one of [a-z_]+, "):
        scorer(**{option: "names"})
    with pytest.raises(ValidationError, match=option):
        TypeAdapter(scorer).validate_python({option: "names"})


@pytest.mark.parametrize("scorer", WITH_REFERENCE, ids=repr)
def test_without_a_reference_for_tools_there_is_no_value(scorer: Scorer) -> None:
    actual = invocation(A("a"))
    assert [scorer.score(actual, turn).reason for turn in (None, ReferenceTurn(response="x"))] == [
        "no_reference"
    ] * 2


@pytest.mark.parametrize("flag", ["no_tool_spans", "dropped_spans"])
@pytest.mark.parametrize("scorer", [*WITH_REFERENCE, TrajectorySingleToolUse("a")], ids=repr)
def test_calls_that_may_be_missing_from_the_telemetry_are_not_scored(
    scorer: Scorer, flag: Flag
) -> None:
    actual = invocation(A("a"), flags=frozenset({flag, "content_missing"}))
    result = scorer.score(actual, reference_turn(E("a")))
    assert (result.reason, result.explanation) == (
        "tools_not_recorded",
        f"tool calls may be missing from the telemetry: {flag}",
    )


LOST = ("lost_model_calls", "lost_parents", "lost_tool_calls")


@pytest.mark.parametrize("flag", LOST)
@pytest.mark.parametrize("scorer", [*WITH_REFERENCE, TrajectorySingleToolUse("a")], ids=repr)
def test_an_invocation_that_lost_spans_is_not_scored(scorer: Scorer, flag: Flag) -> None:
    actual = invocation(A("a"), flags=frozenset({flag, "dropped_spans"}))
    result = scorer.score(actual, reference_turn(E("a")))
    assert (result.reason, result.explanation) == ("lost_telemetry", f"spans were lost: {flag}")


@pytest.mark.parametrize("scorer", WITH_REFERENCE, ids=repr)
def test_other_flags_do_not_prevent_a_score(scorer: Scorer) -> None:
    missing = {"no_tool_spans", "dropped_spans", *LOST}
    flags: frozenset[Flag] = frozenset(set(get_args(Flag)) - missing)
    assert scorer.score(invocation(A("a"), flags=flags), reference_turn(E("a"))).value == 1.0


NOT_RECORDED: list[
    tuple[Scorer, tuple[ToolCall, ...], tuple[ExpectedCall, ...], float | Reason]
] = [
    (EXACT, (ToolCall("a"),), (E("a", x=1),), "args_not_recorded"),
    (EXACT, (ToolCall("a"),), (E("a"),), "args_not_recorded"),
    (EXACT, (ToolCall("a"),), (ExpectedCall("a"),), 1.0),
    (EXACT, (ToolCall("a"),), (E("b", x=1),), 0.0),
    (EXACT, (ToolCall("a"),), (E("a", x=1), E("b")), 0.0),
    (EXACT, (ToolCall("a"), A("b", x=2)), (E("a", x=1), E("b", x=1)), 0.0),
    (IN_ORDER, (ToolCall("b"), ToolCall("a")), (E("a", x=1), E("b", x=1)), 0.0),
    (ANY_ORDER, (ToolCall("b"), ToolCall("a")), (E("a", x=1), E("b", x=1)), "args_not_recorded"),
    (IN_ORDER, (ToolCall("a"), A("a", x=1)), (E("a", x=1),), 1.0),
    (ToolTrajectoryAvgScore(ignore_args=True), (ToolCall("a"),), (E("a", x=1),), 1.0),
    (ToolTrajectoryF1(), (ToolCall("a"),), (E("a", x=1),), 1.0),
    (
        ToolTrajectoryF1("name_and_args"),
        (ToolCall("a"), A("b")),
        (E("a", x=1), E("b")),
        "args_not_recorded",
    ),
    (
        ToolTrajectoryF1("name_and_required_args"),
        (ToolCall("a"),),
        (E("a", x=1),),
        "args_not_recorded",
    ),
    (ToolTrajectoryF1("name_and_required_args"), (ToolCall("a"),), (E("a"),), 1.0),
    (TrajectoryPrecision(), (ToolCall("a"),), (E("a", x=1),), "args_not_recorded"),
    (TrajectoryPrecision(), (ToolCall("a"), A("b")), (ExpectedCall("a"),), 0.5),
    (TrajectoryPrecision("multiset"), (ToolCall("a"), A("a", x=1)), (E("a", x=1),), 0.5),
    (
        TrajectoryPrecision("membership"),
        (ToolCall("a"), A("a", x=1)),
        (E("a", x=1),),
        "args_not_recorded",
    ),
    (TrajectoryRecall(), (ToolCall("a"), A("a", x=1)), (E("a", x=1),), 1.0),
    (TrajectoryRecall(), (ToolCall("a"),), (), "undefined"),
    (TrajectoryRecall(), (ToolCall("a"),), (E("a", x=1),), "args_not_recorded"),
]


@pytest.mark.parametrize(("scorer", "actual", "expected", "outcome"), NOT_RECORDED)
def test_arguments_that_were_not_recorded_matter_only_where_they_could_change_the_value(
    scorer: Scorer,
    actual: tuple[ToolCall, ...],
    expected: tuple[ExpectedCall, ...],
    outcome: float | Reason,
) -> None:
    result = score(scorer, actual, expected)
    assert outcome == (result.reason if result.value is None else result.value)


ARGUMENTS = st.sampled_from([None, {}, {"x": 1}, {"x": 2}, {"x": 1, "y": 1}])
GUESSES: tuple[dict[str, Any], ...] = ({}, {"x": 1}, {"x": 2}, {"x": 1, "y": 1}, {"z": 0})


@pytest.mark.parametrize("scorer", WITH_REFERENCE, ids=repr)
@settings(deadline=None, max_examples=examples(60))
@given(
    made=st.lists(st.builds(ToolCall, st.sampled_from("ab"), ARGUMENTS), max_size=3),
    asked=st.lists(st.builds(ExpectedCall, st.sampled_from("ab"), ARGUMENTS), max_size=3),
)
def test_a_value_is_given_exactly_when_no_recording_of_the_arguments_would_change_it(
    scorer: Scorer, made: list[ToolCall], asked: list[ExpectedCall]
) -> None:
    possible = {score(scorer, calls, tuple(asked)).value for calls in recordings(made)}
    result = score(scorer, tuple(made), tuple(asked))
    assert (result.reason == "args_not_recorded") == (len(possible) > 1)
    assert result.reason == "args_not_recorded" or {result.value} == possible


def recordings(calls: list[ToolCall]) -> list[tuple[ToolCall, ...]]:
    """All ways to give arguments to the calls whose arguments were not recorded."""
    ways: list[tuple[ToolCall, ...]] = [()]
    for call in calls:
        known = GUESSES if call.arguments is None else (call.arguments,)
        ways = [(*way, replace(call, arguments=arguments)) for way in ways for arguments in known]
    return ways


def test_malformed_arguments_are_a_mismatch_and_never_an_error() -> None:
    for text in ("", "{", "[1]", "tea", '"' * 3):
        assert value(EXACT, (ToolCall("a", text),), (E("a", x=1),)) == 0.0
        assert value(EXACT, (ToolCall("a", text),), (ExpectedCall("a"),)) == 1.0
        assert (
            value(
                ToolTrajectoryF1("name_and_required_args"), (ToolCall("a", text),), (E("a", x=1),)
            )
            == 0.0
        )
    assert value(EXACT, (ToolCall("a", '{"x": 1.0}'),), (E("a", x=1),)) == 1.0


def test_arguments_nested_too_deep_are_too_long() -> None:
    nested: Any = 1
    for _ in range(5000):
        nested = [nested]
    for arguments in ({"x": nested}, '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"):
        assert score(EXACT, (ToolCall("a", arguments),), (E("a", x=1),)).reason == "too_long"
        assert value(ToolTrajectoryF1(), (ToolCall("a", arguments),), (E("a", x=1),)) == 1.0


@pytest.mark.slow
def test_two_thousand_calls_are_scored_and_one_more_is_too_long() -> None:
    for scorer in WITH_REFERENCE:
        assert value(scorer, "a" * 2000, "a" * 2000) == 1.0
        result = score(scorer, "a" * 2001, "a")
        assert (result.reason, result.explanation) == (
            "too_long",
            "2001 calls against 1 expected ones; at most 2000 are compared",
        )


def test_the_evidence_names_what_was_matched_missing_and_unexpected() -> None:
    result = score(
        ToolTrajectoryF1(),
        tool_calls("search_web search_web fetch rank search_web"),
        expected_calls("fetch rank send_email"),
    )
    assert result == Score(
        0.5,
        None,
        "2 of 3 expected calls matched; missing send_email; unexpected search_web x3",
        {
            "matched": [[2, 0, "fetch"], [3, 1, "rank"]],
            "missing": [[2, "send_email"]],
            "unexpected": [[0, "search_web"], [1, "search_web"], [4, "search_web"]],
            "counts": {"matched": 2, "actual": 5, "expected": 3},
        },
    )


@pytest.mark.parametrize(
    ("scorer", "actual", "expected", "line"),
    [
        (EXACT, "ab", "ab", "2 of 2 expected calls matched"),
        (EXACT, "ba", "ab", "1 of 2 expected calls matched; missing b; unexpected b"),
        (EXACT, "", "", "no calls expected"),
        (IN_ORDER, "a", "", "no calls expected; unexpected a"),
        (
            ToolTrajectoryF1(),
            "aab",
            "cdc",
            "0 of 3 expected calls matched; missing c x2, d; unexpected a x2, b",
        ),
        (ToolTrajectoryF1(), "abcdefg", "", "no calls expected; unexpected a, b, c, d, e, 2 more"),
        (TrajectoryPrecision(), "aax", "a", "2 of 3 calls are in the reference"),
        (TrajectoryRecall(), "a", "aab", "2 of 3 expected calls were made"),
        (TrajectorySingleToolUse("a"), "b", "", "a was not called"),
        (TrajectorySingleToolUse("a"), "ab", "", "a was called"),
        (TrajectorySingleToolUse("a"), "aba", "", "a was called 2 times"),
    ],
)
def test_a_score_explains_itself_in_one_line(
    scorer: Scorer, actual: str, expected: str, line: str
) -> None:
    assert score(scorer, actual, expected).explanation == line


def test_what_lacks_arguments_is_told_with_the_evidence() -> None:
    result = score(EXACT, (ToolCall("a"),), (E("a", x=1),))
    assert (
        result.explanation
        == "arguments not recorded; without them 0 of 1 expected calls matched; arguments of a not"
        " recorded"
    )
    assert result.details["not_recorded"] == [[0, 0, "a"]]
    assert result.details["counts"] == {"matched": 0, "actual": 1, "expected": 1}


@pytest.mark.parametrize(
    ("scorer", "actual", "expected", "line"),
    [
        (
            EXACT,
            (ToolCall("a"), A("b"), ToolCall("a")),
            (E("a", x=1), E("b", x=1), E("c")),
            (
                "0 of 3 expected calls matched; b with other arguments (x: expected 1, found"
                " nothing); arguments of a not recorded; missing c; unexpected a"
            ),
        ),
        (
            EXACT,
            (ToolCall("a"), ToolCall("a")),
            (E("a", x=1), E("a", x=2), E("c")),
            "0 of 3 expected calls matched; arguments of a x2 not recorded; missing c",
        ),
        (  # the order is wrong, whatever the arguments were
            EXACT,
            (A("b"), ToolCall("a")),
            (ExpectedCall("a"), E("b")),
            "1 of 2 expected calls matched; missing b; unexpected b",
        ),
        (
            ToolTrajectoryAvgScore(ignore_args=True),
            (ToolCall("a"), ToolCall("b")),
            (E("b", x=1), E("a", x=1)),
            "1 of 2 expected calls matched; missing a; unexpected a",
        ),
    ],
)
def test_a_call_whose_arguments_were_not_recorded_is_not_called_a_wrong_one(
    scorer: Scorer, actual: tuple[ToolCall, ...], expected: tuple[ExpectedCall, ...], line: str
) -> None:
    result = score(scorer, actual, expected)
    assert (result.value, result.explanation) == (0.0, line)


def test_names_of_tools_cannot_break_the_line() -> None:
    assert "\n" not in score(EXACT, (A("a\nFAKE LOG LINE"),), ()).explanation


DIFFERENT: list[
    tuple[Scorer, tuple[ToolCall, ...], tuple[ExpectedCall, ...], str, list[Any] | None]
] = [
    (
        EXACT,
        (A("a"), A("book", room=3, date="May")),
        (E("book", room=2, date="May"), E("c")),
        (
            "0 of 2 expected calls matched; book with other arguments (room: expected 2, found 3);"
            " missing c; unexpected a"
        ),
        [[1, 0, "book", {"room": ["2", "3"]}]],
    ),
    (
        EXACT,
        (A("a", x=None, y=1),),
        (E("a", x="1", z=[1]),),
        (
            '0 of 1 expected calls matched; a with other arguments (x: expected "1", found null; z:'
            " expected [1], found nothing; y: expected nothing, found 1)"
        ),
        [[0, 0, "a", {"x": ['"1"', "null"], "z": ["[1]", None], "y": [None, "1"]}]],
    ),
    (
        ToolTrajectoryF1("name_and_required_args"),
        (A("a", x=1, y=1),),
        (E("a", x=2),),
        "0 of 1 expected calls matched; a with other arguments (x: expected 2, found 1)",
        [[0, 0, "a", {"x": ["2", "1"]}]],
    ),
    (
        EXACT,
        (ToolCall("a", '{"x": "tea"}'),),
        (E("a", x=Pattern("c+"), y=Ignored()),),
        (
            '0 of 1 expected calls matched; a with other arguments (x: expected {"$regex": "c+"},'
            ' found "tea")'
        ),
        [[0, 0, "a", {"x": ['{"$regex": "c+"}', '"tea"']}]],
    ),
    (
        EXACT,
        (A("a", x=1), A("a", x=2)),
        (E("a", x=3), E("a", x=2), E("a", x=4)),
        "1 of 3 expected calls matched; a with other arguments (x: expected 3, found 1); missing a",
        [[0, 0, "a", {"x": ["3", "1"]}]],
    ),
    (
        EXACT,
        (A("b", x=1), A("a", x=1)),
        (E("a", x=1), E("b", x=1)),
        "1 of 2 expected calls matched; missing b; unexpected b",
        None,
    ),
    (
        EXACT,
        (ToolCall("a", "tea"),),
        (E("a", x=1),),
        "0 of 1 expected calls matched; a with other arguments",
        [[0, 0, "a", {}]],
    ),
    (
        ToolTrajectoryF1(),
        (A("a", x=1), A("b")),
        (E("b"), E("a", x=2)),
        "1 of 2 expected calls matched; missing a; unexpected a",
        None,
    ),
    (
        TrajectoryPrecision(),
        (A("a", x=1),),
        (E("a", x=2),),
        "0 of 1 calls are in the reference",
        [[0, 0, "a", {"x": ["2", "1"]}]],
    ),
]


@pytest.mark.parametrize(("scorer", "actual", "expected", "line", "different"), DIFFERENT)
def test_wrong_arguments_are_told_apart_from_wrong_calls(
    scorer: Scorer,
    actual: tuple[ToolCall, ...],
    expected: tuple[ExpectedCall, ...],
    line: str,
    different: list[Any] | None,
) -> None:
    result = score(scorer, actual, expected)
    assert (result.explanation, result.details.get("different")) == (line, different)


def test_calls_at_another_place_are_listed_with_the_expected_ones() -> None:
    made = (A("a", x=3), A("b"), A("a", x=9), A("a", x=1), A("a", x=2))
    wanted = (E("b"), E("a", x=1), E("a", x=2), E("a", x=3), E("a", x=4))
    details = score(EXACT, made, wanted).details
    assert (details["matched"], details["moved"], details["different"]) == (
        [[1, 0, "b"], [3, 1, "a"], [4, 2, "a"]],
        [[0, 3, "a"]],
        [[2, 4, "a", {"x": ["4", "9"]}]],
    )


def test_long_arguments_are_cut_and_many_are_counted() -> None:
    made = [
        A(f"tool{index}", **{f"k{key}": "x\n" * 200 for key in range(5)}) for index in range(30)
    ]
    asked = [
        E(f"tool{index}", **{f"k{key}": "y\n" * 200 for key in range(5)}) for index in range(30)
    ]
    result = score(EXACT, tuple(made), tuple(asked))
    assert len(result.explanation) < 1500
    assert result.explanation.startswith(
        '0 of 30 expected calls matched; tool0 with other arguments (k0: expected "y\\ny\\n'
    )
    assert "; 2 more); tool1 with" in result.explanation
    assert result.explanation.endswith("; 27 more with other arguments")
    assert [bool(arguments) for *_, arguments in result.details["different"]] == [
        *[True] * 20,
        *[False] * 10,
    ]
    assert {
        len(text)
        for _, _, _, arguments in result.details["different"]
        for pair in arguments.values()
        for text in pair
    } == {200}


def test_arguments_that_cannot_be_shown_do_no_harm() -> None:
    strange = {"$x": Anything(), "y": math.nan, "z": 10**5000, "line\u2028break\x85": "\u2029"}
    result = score(EXACT, (A("a", **{key: 1 for key in strange}),), (ExpectedCall("a", strange),))
    assert result.value == 0.0
    assert len(result.explanation.splitlines()) == 1
    many = E("a", x=Pattern(".*"), y=1)
    assert score(EXACT, (A("a", x="x" * 20_000, z=1),), (many,)).value == 0.0


MATCHED: list[tuple[ToolCall, ExpectedCall, float, float]] = [
    (A("a", x=5), E("a", x=Anything()), 1, 1),
    (A("a"), E("a", x=Anything()), 0, 0),
    (A("a"), E("a", x=Ignored()), 1, 1),
    (A("a", x=5, y=6), E("a", x=Ignored()), 0, 1),
    (A("a", x=5, y=6), E("a", x=Anything()), 0, 1),
    (A("a", x=12.504), E("a", x=Near(12.5, abs=0.01)), 1, 1),
    (A("a", x=[{"y": "tea"}]), E("a", x=[{"y": Pattern("t..")}]), 1, 1),
    (A("a", x=[3, 2]), E("a", x=AnyOrder([2, 3])), 1, 1),
    (ToolCall("a", '{"x": {"y": 1, "z": 2}}'), E("a", x=AtLeast({"z": 2})), 1, 1),
    (A("a", x="c"), E("a", x=OneOf(["a", "b"])), 0, 0),
    (ToolCall("a", "tea"), E("a", x=Ignored()), 0, 1),
    (A("b", x=5), E("a", x=Anything()), 0, 0),
]


@pytest.mark.parametrize(("actual", "expected", "with_args", "with_required_args"), MATCHED)
def test_references_may_hold_matchers(
    actual: ToolCall, expected: ExpectedCall, with_args: float, with_required_args: float
) -> None:
    strict = [
        scorer
        for scorer in WITH_REFERENCE
        if scorer
        not in (
            ToolTrajectoryF1(),
            ToolTrajectoryF1("name_and_required_args", ordered=False),
        )
    ]
    assert [value(scorer, (actual,), (expected,)) for scorer in strict] == [with_args] * len(strict)
    for ordered in (True, False):
        assert (
            value(ToolTrajectoryF1("name_and_args", ordered), (actual,), (expected,)) == with_args
        )
        assert (
            value(ToolTrajectoryF1("name_and_required_args", ordered), (actual,), (expected,))
            == with_required_args
        )
        assert value(ToolTrajectoryF1("name_only", ordered), (actual,), (expected,)) == float(
            actual.name == expected.name
        )


def test_a_matcher_that_cannot_tell_in_time_is_too_long() -> None:
    explosive = Pattern(r"(?:(a+)(?:b|\1))+c")
    for expected, text in ((explosive, "a" * 200), (Pattern("x"), "x" * 10_001)):
        result = score(EXACT, (A("a", x=text),), (E("a", x=expected),))
        assert (result.value, result.reason) == (None, "too_long")
        assert value(ToolTrajectoryF1(), (A("a", x=text),), (E("a", x=expected),)) == 1.0


def loose(names: str) -> tuple[ExpectedCall, ...]:
    """Expected calls as letters, lower case required and upper case optional."""
    return tuple(ExpectedCall(name.lower(), optional=name.isupper()) for name in names)


@pytest.mark.parametrize(
    ("actual", "expected", "values"),
    [
        ("", "A", (1, 1, 1, 1, 1, 1)),
        ("a", "A", (1, 1, 1, 1, 1, 1)),
        ("b", "A", (0, 1, 1, 0, 0, None)),
        ("ac", "aBc", (1, 1, 1, 1, 1, 1)),
        ("abc", "aBc", (1, 1, 1, 1, 1, 1)),
        ("acb", "aBc", (0, 1, 1, 4 / 5, 1, 1)),
        ("ab", "aBc", (0, 0, 0, 4 / 5, 1, 2 / 3)),
        ("b", "aB", (0, 0, 0, 2 / 3, 1, 1 / 2)),
        ("abb", "aB", (0, 1, 1, 4 / 5, 1, 1)),
        ("cab", "ABc", (0, 1, 1, 2 / 4, 1, 1)),
        ("xx", "aB", (0, 0, 0, 0, 0, 0)),
        ("aa", "Aa", (1, 1, 1, 1, 1, 1)),
        ("a", "Aa", (1, 1, 1, 1, 1, 1)),
    ],
)
def test_optional_calls_count_only_when_they_are_made(
    actual: str, expected: str, values: tuple[float | None, ...]
) -> None:
    scorers = (
        EXACT,
        IN_ORDER,
        ANY_ORDER,
        ToolTrajectoryF1(),
        TrajectoryPrecision(),
        TrajectoryRecall(),
    )
    assert (
        tuple(value(scorer, tool_calls(" ".join(actual)), loose(expected)) for scorer in scorers)
        == values
    )


def test_duplicates_of_optional_calls() -> None:
    multiset = TrajectoryPrecision("multiset"), TrajectoryRecall("multiset")
    assert [value(scorer, tool_calls("a a"), loose("A")) for scorer in multiset] == [0.5, 1.0]
    assert [value(scorer, tool_calls("a"), loose("AAb")) for scorer in multiset] == [1.0, 0.5]
    assert value(TrajectoryRecall(), tool_calls("a"), loose("AAb")) == pytest.approx(2 / 3)


def test_an_optional_call_that_was_left_out_is_not_missing() -> None:
    assert score(EXACT, tool_calls("a"), loose("aB")) == Score(
        1.0,
        None,
        "1 of 1 expected calls matched",
        {
            "matched": [[0, 0, "a"]],
            "missing": [],
            "unexpected": [],
            "counts": {"matched": 1, "actual": 1, "expected": 1},
        },
    )


def test_the_order_inside_a_group_means_nothing() -> None:
    asked = (ExpectedCall("a", group=1), ExpectedCall("b", group=1), ExpectedCall("c"))
    for scorer in (
        EXACT,
        IN_ORDER,
        ToolTrajectoryF1(),
        TrajectoryExactMatch(),
        TrajectoryInOrderMatch(),
    ):
        assert value(scorer, tool_calls("b a c"), asked) == 1.0
    assert value(EXACT, tool_calls("b c a"), asked) == 0.0
    assert value(ToolTrajectoryF1(), tool_calls("b c a"), asked) == pytest.approx(2 / 3)


def test_calls_of_one_message_count_in_order_unless_told_otherwise() -> None:
    made = (ToolCall("b", {}, group=1), ToolCall("a", {}, group=1), ToolCall("c", {}, group=2))
    asked = expected_calls("a b c")
    assert value(ToolTrajectoryF1(), made, asked) == pytest.approx(2 / 3)
    assert value(ToolTrajectoryF1(parallel_calls="any_order"), made, asked) == 1.0
    assert value(
        ToolTrajectoryF1(parallel_calls="any_order"), (made[2], *made[:2]), asked
    ) == pytest.approx(2 / 3)


def between(*trajectories: str) -> ReferenceTurn:
    first, *others = (expected_calls(" ".join(names)) for names in trajectories)
    return ReferenceTurn(tool_calls=first, alternatives=tuple(others))


@pytest.mark.parametrize(
    ("scorer", "actual", "trajectories", "told"),
    [
        (
            EXACT,
            "ab",
            ("ab", "ba"),
            (1.0, 0, "2 of 2 expected calls matched; no alternative agrees better"),
        ),
        (
            EXACT,
            "ba",
            ("ab", "ba"),
            (1.0, 1, "2 of 2 expected calls matched; alternative 1 agrees best"),
        ),
        (
            EXACT,
            "abx",
            ("c", "ab", "x"),
            (0.0, 1, "2 of 2 expected calls matched; unexpected x; alternative 1 agrees best"),
        ),
        (EXACT, "", ("a", ""), (1.0, 1, "no calls expected; alternative 1 agrees best")),
        (
            ToolTrajectoryF1(),
            "ab",
            ("axxx", "abx", "b"),
            (0.8, 1, "2 of 3 expected calls matched; missing x; alternative 1 agrees best"),
        ),
        (
            TrajectoryRecall(),
            "ab",
            ("", "ac"),
            (0.5, 1, "1 of 2 expected calls were made; alternative 1 agrees best"),
        ),
        (
            TrajectoryRecall(),
            "ab",
            ("", ""),
            (None, 0, "0 of 0 expected calls were made; no alternative agrees better"),
        ),
    ],
)
def test_the_alternative_that_agrees_best_counts_and_is_named(
    scorer: Scorer, actual: str, trajectories: tuple[str, ...], told: tuple[float | None, int, str]
) -> None:
    result = scorer.score(invocation(*tool_calls(" ".join(actual))), between(*trajectories))
    assert (result.value, result.details["alternative"], result.explanation) == told


def test_without_alternatives_none_is_named() -> None:
    assert "alternative" not in score(EXACT, "a", "a").details


@pytest.mark.parametrize(
    ("first", "other", "outcome"),
    [
        (ExpectedCall("a"), E("a", x=1), 1.0),
        (E("b"), E("a", x=1), "args_not_recorded"),
        (E("b"), E("c", x=1), 0.0),
        (E("a", x=2), E("a", x=1), "args_not_recorded"),
    ],
)
def test_with_arguments_not_recorded_no_alternative_may_promise_more(
    first: ExpectedCall, other: ExpectedCall, outcome: Any
) -> None:
    result = EXACT.score(
        invocation(ToolCall("a")), ReferenceTurn(tool_calls=(first,), alternatives=((other,),))
    )
    assert outcome == (result.reason if result.value is None else result.value)


LOOSE = st.builds(
    ExpectedCall, st.sampled_from("ab"), ARGUMENTS, st.booleans(), st.none() | st.integers(1, 2)
)
RECORDABLE = st.builds(
    ToolCall, st.sampled_from("ab"), ARGUMENTS, group=st.none() | st.integers(1, 2)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scorer",
    [*WITH_REFERENCE, ToolTrajectoryF1("name_and_args", parallel_calls="any_order")],
    ids=repr,
)
@settings(deadline=None, max_examples=examples(60))
@given(
    made=st.lists(RECORDABLE, max_size=3),
    asked=st.lists(st.lists(LOOSE, max_size=4), min_size=1, max_size=2),
)
def test_a_value_is_given_only_when_no_recording_of_the_arguments_would_change_it(
    scorer: Scorer, made: list[ToolCall], asked: list[list[ExpectedCall]]
) -> None:
    first, *others = map(tuple, asked)
    turn = ReferenceTurn(tool_calls=first, alternatives=tuple(others))
    possible = {scorer.score(invocation(*calls), turn).value for calls in recordings(made)}
    result = scorer.score(invocation(*made), turn)
    assert result.reason == "args_not_recorded" or {result.value} == possible


def test_a_value_is_uncertain_if_one_required_pair_may_displace_optional_ones() -> None:
    asked = (E("a", x=1), E("b", x=1), *loose("CDEF"))
    values = {}
    for first, second in product((0, 1), repeat=2):
        made = (*tool_calls("c d e"), A("a", x=first), A("b", x=second), *tool_calls("f"))
        values[first, second] = value(ToolTrajectoryF1("name_and_args"), made, asked)
    assert values == {(0, 0): 8 / 12, (0, 1): 4 / 9, (1, 0): 4 / 9, (1, 1): 6 / 9}
    unknown = (*tool_calls("c d e"), ToolCall("a"), ToolCall("b"), *tool_calls("f"))
    assert score(ToolTrajectoryF1("name_and_args"), unknown, asked).reason == "args_not_recorded"


@pytest.mark.parametrize(("calls", "used"), [("", 0.0), ("b", 0.0), ("a", 1.0), ("bab", 1.0)])
def test_single_tool_use_needs_no_reference(calls: str, used: float) -> None:
    scorer = TrajectorySingleToolUse(" a ")
    assert scorer.score(invocation(*tool_calls(" ".join(calls))), None).value == used


def test_single_tool_use_needs_a_tool() -> None:
    with pytest.raises(ValueError, match="tool_name: found ' ', expected the name of a tool"):
        TrajectorySingleToolUse(" ")


def test_the_same_calls_compared_by_many_scorers_give_each_the_value_it_gives_alone() -> None:
    pairs = [("ab", "ab"), ("ba", "ab"), ("", "a")]
    alone = [[value(scorer, *pair) for scorer in WITH_REFERENCE] for pair in pairs]
    shared: list[tuple[Invocation, ReferenceTurn]] = [
        (invocation(*tool_calls(" ".join(made))), reference_turn(*expected_calls(" ".join(asked))))
        for made, asked in pairs
    ]
    for _ in range(2):
        assert [
            [scorer.score(*pair).value for scorer in WITH_REFERENCE] for pair in shared
        ] == alone
