"""Argument accuracy: counted arguments, compared calls, and cases without a value."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import TypeAdapter, ValidationError

from pathgauge.scorers.authoring.builders import (
    expected_call,
    invocation,
    reference_turn,
    tool_call,
)
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.matching.differences import MAX_DIFFERENCES
from pathgauge.scorers.matching.matchers import (
    AnyOrder,
    Anything,
    AtLeast,
    Ignored,
    Near,
    OneOf,
    Pattern,
)
from pathgauge.scorers.trajectories.arguments import ArgumentAccuracy
from pathgauge.scorers.types import ExpectedCall, Flag, Json, ReferenceTurn, Score, Scorer, ToolCall
from support.examples import examples

IN_ORDER, ANY_ORDER = ArgumentAccuracy(), ArgumentAccuracy(ordered=False)
COUNTING = ArgumentAccuracy(extra="count")
SCORERS: list[Scorer] = [
    IN_ORDER,
    ANY_ORDER,
    COUNTING,
    ArgumentAccuracy(ordered=False, extra="count"),
]
A, E = tool_call, expected_call


def score(actual: list[ToolCall], expected: list[ExpectedCall], scorer: Scorer = IN_ORDER) -> Score:
    return scorer.score(invocation(*actual), reference_turn(*expected))


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_the_contract_is_kept(scorer: Scorer) -> None:
    texts = ["", "{", "[1]", "null", '{"q": "tea"}', '"{\\"q\\": \\"tea\\"}"']
    check_scorer(
        scorer,
        [
            (invocation(ToolCall("search", text)), reference_turn(E("search", q="tea")))
            for text in texts
        ],
    )


VALUES: list[tuple[dict[str, Json], dict[str, Json], float]] = [
    ({"x": 1, "y": 2}, {"x": 1, "y": 2}, 1.0),
    ({"x": 1, "y": 2}, {"x": 1, "y": 3}, 1 / 2),
    ({"x": 1}, {"x": 1, "y": 3}, 1 / 2),
    ({}, {"x": 1, "y": 3}, 0.0),
    ({"x": 1, "z": 9}, {"x": 1}, 1.0),
    ({"x": 1.0}, {"x": 1}, 1.0),
    ({"x": True}, {"x": 1}, 0.0),
    ({"x": None}, {"x": None}, 1.0),
    ({}, {"x": None}, 0.0),
    ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}, 1.0),
    ({"x": {"a": 1, "b": 2}}, {"x": {"a": 1}}, 0.0),
    ({"x": [1, 2]}, {"x": [2, 1]}, 0.0),
]


@pytest.mark.parametrize(("given_", "asked", "value"), VALUES)
def test_the_value_of_a_call_is_the_share_of_expected_arguments_that_it_has(
    given_: Any, asked: Any, value: float
) -> None:
    assert score([A("a", **given_)], [E("a", **asked)]).value == value


@pytest.mark.parametrize(
    ("matcher", "right", "wrong"),
    [
        (Anything(), None, ...),
        (Pattern("[a-z]+"), "tea", "Tea"),
        (Near(12.5, abs=0.01), 12.505, 12.6),
        (AnyOrder([1, 2]), [2, 1], [1, 1]),
        (AtLeast({"a": 1}), {"a": 1, "b": 2}, {"b": 2}),
        (OneOf(["tea", "coffee"]), "coffee", "water"),
    ],
)
def test_expected_arguments_may_be_matchers(matcher: Any, right: Json, wrong: Any) -> None:
    asked = [E("a", x=matcher, y=1)]
    assert score([A("a", x=right, y=1)], asked).value == 1.0
    assert score([A("a", y=1) if wrong is ... else A("a", x=wrong, y=1)], asked).value == 0.5


def test_an_ignored_argument_asks_for_nothing_and_is_not_extra() -> None:
    asked = [E("a", x=Ignored(), y=1)]
    assert [score([A("a", y=1, **extra)], asked, COUNTING).value for extra in ({}, {"x": 5})] == [
        1.0,
        1.0,
    ]
    assert score([A("a", x=1)], [E("a", x=Ignored())]).reason == "not_applicable"


def test_extra_arguments_are_ignored_or_count_as_wrong() -> None:
    actual, asked = [A("a", x=1, y=2, z=3)], [E("a", x=1)]
    assert (score(actual, asked).value, score(actual, asked, COUNTING).value) == (1.0, 1 / 3)


def test_calls_weigh_the_same_however_many_arguments_they_have() -> None:
    asked = [E("a", v=1, w=1, x=1, y=1), E("b", x=1)]
    assert score([A("a", v=1, w=1, x=1, y=1), A("b", x=2)], asked).value == 0.5


def test_only_expected_calls_that_were_made_and_ask_for_arguments_count() -> None:
    asked = [E("a", x=1), ExpectedCall("b"), E("c"), E("d", x=1)]
    assert score([A("a", x=1), A("b", x=5), A("c", x=5), A("e", x=5)], asked).value == 1.0


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([], []),
        ([A("a", x=1)], []),
        ([A("a", x=1)], [ExpectedCall("a")]),
        ([A("a", x=1)], [E("a")]),
        ([A("b", x=1)], [E("a", x=1)]),
        ([], [E("a", x=1)]),
    ],
)
def test_without_arguments_to_compare_there_is_nothing_to_judge(
    actual: list[ToolCall], expected: list[ExpectedCall]
) -> None:
    result = score(actual, expected)
    assert (result.reason, result.explanation) == (
        "not_applicable",
        "no expected call that was made asks for arguments",
    )


def test_calls_stand_for_expected_ones_of_their_tool_in_their_order_or_in_any() -> None:
    asked = [E("a", x=1), E("b", x=1), E("a", x=2)]
    swapped = [A("a", x=2), A("b", x=1), A("a", x=1)]
    assert (score(swapped, asked).value, score(swapped, asked, ANY_ORDER).value) == (1 / 3, 1.0)
    turned = [A("b", x=9), A("a", x=1)]
    assert (score(turned, asked).value, score(turned, asked, ANY_ORDER).value) == (0.0, 0.5)


def test_in_any_order_what_no_call_answers_is_beside_another_call_of_its_tool() -> None:
    result = score(
        [A("a", x=9, y=2), A("a", x=1, y=1)],
        [E("a", x=1, y=1), E("a", x=1, y=2), E("a", x=3)],
        ANY_ORDER,
    )
    assert result.value == 0.75
    assert result.details["arguments"] == [[0, 1, "a", 1, 2], [1, 0, "a", 2, 2]]
    assert (result.details["matched"], result.details["missing"]) == (
        [[0, 1, "a"], [1, 0, "a"]],
        [[2, "a"]],
    )


def test_the_evidence_names_the_arguments_that_differ() -> None:
    result = score(
        [A("book", beds=3, city="Rome"), A("pay"), A("mail")],
        [E("book", beds=2, city="Rome"), E("pay", sum=Near(5))],
    )
    assert result == Score(
        0.25,
        None,
        "1 of 3 arguments are right; book beds: expected 2, found 3",
        {
            "matched": [[0, 0, "book"], [1, 1, "pay"]],
            "missing": [],
            "unexpected": [[2, "mail"]],
            "counts": {"matched": 2, "actual": 3, "expected": 2},
            "arguments": [[0, 0, "book", 1, 2], [1, 1, "pay", 0, 1]],
            "different": [
                [0, 0, "book", {"beds": ["2", "3"]}],
                [1, 1, "pay", {"sum": [result.details["different"][1][3]["sum"][0], None]}],
            ],
        },
    )
    assert (
        score([A("a", x=1, z=1)], [E("a", x=1)], COUNTING).explanation
        == "1 of 2 arguments are right; a z: expected nothing, found 1"
    )
    assert (
        score([ToolCall("a", "x=1")], [E("a", x=1)]).explanation
        == "0 of 1 arguments are right; a with other arguments"
    )


def test_text_that_is_no_object_has_none_of_the_arguments() -> None:
    asked = [E("a", x=1)]
    assert [
        score([ToolCall("a", text)], asked).value
        for text in ("", "{", "[1]", '{"x": 1.0}', '"{\\"x\\": 1}"')
    ] == [0, 0, 0, 1, 1]


def test_other_choices_are_refused() -> None:
    forbid: Any = "forbid"
    with pytest.raises(ValueError, match="extra: found 'forbid', expected one of ignore, count"):
        ArgumentAccuracy(extra=forbid)
    with pytest.raises(ValidationError, match="extra"):
        TypeAdapter(ArgumentAccuracy).validate_python({"extra": "forbid"})


def test_optional_calls_are_judged_when_they_were_made() -> None:
    asked = [E("a", x=1), ExpectedCall("b", {"x": 1}, optional=True)]
    for scorer in (IN_ORDER, ANY_ORDER):
        assert [
            score([A("a", x=1), *more], asked, scorer).value for more in ([], [A("b", x=2)])
        ] == [1.0, 0.5]
    several = [ExpectedCall("a", {"x": 1}, optional=True), E("a", x=2)]
    assert score([A("a", x=3)], several, ANY_ORDER).details["arguments"] == [[0, 1, "a", 0, 1]]


def test_the_alternative_that_agrees_best_counts_and_is_the_one_of_the_evidence() -> None:
    expected = ReferenceTurn(
        tool_calls=(E("a", x=1),), alternatives=((E("b", x=1),), (E("a", x=2),))
    )
    result = IN_ORDER.score(invocation(A("a", x=2)), expected)
    assert (result.value, result.details["alternative"], result.details["arguments"]) == (
        1.0,
        2,
        [[0, 0, "a", 1, 1]],
    )


@pytest.mark.parametrize("flag", ["no_tool_spans", "dropped_spans"])
@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_calls_that_may_be_missing_from_the_telemetry_are_not_scored(
    scorer: Scorer, flag: Flag
) -> None:
    result = scorer.score(
        invocation(A("a", x=1), flags=frozenset({flag})), reference_turn(E("a", x=1))
    )
    assert (result.reason, result.details) == ("tools_not_recorded", {})


def test_without_recorded_arguments_there_is_no_value_where_they_are_asked_for() -> None:
    asked = [E("a", x=1), ExpectedCall("b")]
    assert score([ToolCall("a"), A("b")], asked).reason == "args_not_recorded"
    assert score([A("a", x=1), ToolCall("b"), ToolCall("c")], asked).value == 1.0
    for scorer, value in ((IN_ORDER, 0.0), (ANY_ORDER, None)):
        assert score([A("a", x=9), ToolCall("a")], asked, scorer).value == value


def test_a_call_that_could_stand_for_another_optional_one_leaves_the_value_open() -> None:
    asked = [
        E("a", x=1),
        ExpectedCall("b", None, optional=True),
        ExpectedCall("b", {"x": 1}, optional=True),
    ]
    made = [A("a"), ToolCall("b")]
    assert [
        score([A("a"), A("b", **given)], asked, ANY_ORDER).value for given in ({}, {"x": 1})
    ] == [0.0, 0.5]
    assert score(made, asked, ANY_ORDER).reason == "args_not_recorded"


def test_the_evidence_shows_some_of_many_differences() -> None:
    result = score([A("a", x=1)] * 30, [E("a", x=2)] * 30)
    assert (len(result.details["different"]), len(result.details["arguments"])) == (
        MAX_DIFFERENCES,
        30,
    )


ARGUMENTS = st.sampled_from([None, {}, {"x": 1}, {"x": 2}, {"x": 1, "y": 1}, {"x": 2, "y": 1}])
GUESSES: tuple[dict[str, Any], ...] = ({}, {"x": 1}, {"x": 2}, {"x": 1, "y": 1}, {"x": 2, "y": 1})
MADE = st.lists(st.builds(ToolCall, st.sampled_from("ab"), ARGUMENTS), max_size=3)
ASKED = st.lists(
    st.builds(ExpectedCall, st.sampled_from("ab"), ARGUMENTS, st.booleans()), max_size=3
)


def recordings(calls: list[ToolCall]) -> list[list[ToolCall]]:
    """All ways to give arguments to the calls whose arguments were not recorded."""
    ways: list[list[ToolCall]] = [[]]
    for call in calls:
        known = GUESSES if call.arguments is None else (call.arguments,)
        ways = [[*way, ToolCall(call.name, arguments)] for way in ways for arguments in known]
    return ways


@pytest.mark.parametrize("scorer", SCORERS[:2], ids=repr)
@settings(deadline=None, max_examples=examples(60))
@given(MADE, ASKED)
def test_a_value_holds_for_every_recording_of_the_arguments(
    scorer: Scorer, made: list[ToolCall], asked: list[ExpectedCall]
) -> None:
    result = score(made, asked, scorer)
    if result.value is not None:
        assert {score(way, asked, scorer).value for way in recordings(made)} == {result.value}


RECORDED = st.lists(st.builds(ToolCall, st.sampled_from("ab"), ARGUMENTS.filter(bool)), max_size=4)
LITERAL = st.lists(
    st.builds(ExpectedCall, st.sampled_from("ab"), ARGUMENTS.filter(bool)), max_size=4
)


@settings(deadline=None, max_examples=examples(60))
@given(RECORDED, LITERAL, st.randoms(use_true_random=False))
def test_in_any_order_the_order_means_nothing_to_calls_that_are_all_right(
    made: list[ToolCall], asked: list[ExpectedCall], random: Any
) -> None:
    right = [ToolCall(call.name, call.arguments) for call in asked]
    random.shuffle(right)
    assert score(right, asked, ANY_ORDER).value == (1.0 if asked else None)
    assert score([*made, *right], asked, ANY_ORDER).value == (1.0 if asked else None)


@settings(deadline=None, max_examples=examples(60))
@given(RECORDED, LITERAL)
def test_counting_extra_arguments_never_gives_more(
    made: list[ToolCall], asked: list[ExpectedCall]
) -> None:
    free, counting = score(made, asked).value, score(made, asked, COUNTING).value
    assert (free is None) == (counting is None)
    assert free is None or counting is None or counting <= free


@pytest.mark.slow
def test_two_thousand_calls_are_scored_and_one_more_is_too_long() -> None:
    made, asked = [A("a", x=i) for i in range(2001)], [E("a", x=i) for i in range(2000)]
    for scorer in SCORERS:
        assert score(made[:2000], asked, scorer).value == 1.0
        assert score(made, asked, scorer).reason == "too_long"


def test_what_takes_too_long_to_match_has_no_value() -> None:
    assert score([A("a", x="a" * 60 + "!")], [E("a", x=Pattern("(a|a)*"))]).reason == "too_long"
    nested: Json = 1
    for _ in range(5000):
        nested = [nested]
    assert score([A("a", x=nested)], [E("a", x=nested)]).reason == "too_long"


@pytest.mark.parametrize("extra", ["ignore", "count"])
def test_in_any_order_an_equal_call_comes_before_one_with_more_arguments(extra: str) -> None:
    scorer = ArgumentAccuracy(ordered=False, extra="count" if extra == "count" else "ignore")
    actual = [A("search", q="tea", lang="en"), A("search", q="tea")]
    expected = [E("search", q="tea")]
    for calls in (actual, actual[::-1]):
        found = score(calls, expected, scorer)
        assert (found.value, found.details["different"]) == (1.0, [])


def test_in_any_order_an_equal_call_does_not_take_the_only_partner_of_another() -> None:
    """The first call is equal to the second expected one, too."""
    actual = [A("search", x="b", y="a"), A("search", x="a", y="c", z="c")]
    expected = [E("search", x=OneOf(("b", "c"))), E("search", x=OneOf(("a", "b")), y=Anything())]
    assert score(actual, expected, ANY_ORDER).value == 1.0


def test_in_any_order_other_calls_have_the_rest_of_the_expected_ones() -> None:
    actual = [A("search", q="tea", lang="en"), A("search", q="tea"), A("search", q="oil")]
    expected = [E("search", q="tea"), E("search", lang="en"), E("search", q="tin")]
    for calls in permutations(actual):
        assert score(list(calls), expected, ANY_ORDER).value == 2 / 3


def test_an_unrecorded_call_that_an_equal_one_makes_needless_has_no_influence() -> None:
    scorer = ArgumentAccuracy(ordered=False, extra="count")
    actual = [ToolCall("search"), A("search", q="tea")]
    assert score(actual, [E("search", q="tea")], scorer).value == 1.0
