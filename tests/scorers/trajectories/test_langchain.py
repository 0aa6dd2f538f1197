"""LangChain's trajectory match, without its mistakes: modes, ways to compare arguments, and
overrides of single tools.
"""

from collections.abc import Mapping
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from pathgauge import ExpectedCall, ToolCall
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation,
    reference_turn,
    tool_call,
    tool_calls,
)
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.matching.argument_rules import ArgumentMode, Rule
from pathgauge.scorers.matching.matchers import Anything, Ignored, Near, Pattern
from pathgauge.scorers.trajectories.langchain import Mode, TrajectoryMatch

A, E = tool_call, expected_call
MODES: tuple[Mode, ...] = (
    "exact",
    "in_order",
    "any_order",
    "unordered_exact",
    "subset",
    "superset",
)


def value(
    scorer: TrajectoryMatch,
    actual: str | tuple[ToolCall, ...],
    expected: str | tuple[ExpectedCall, ...],
) -> float | None:
    made = tool_calls(" ".join(actual)) if isinstance(actual, str) else actual
    asked = expected_calls(" ".join(expected)) if isinstance(expected, str) else expected
    return scorer.score(invocation(*made), reference_turn(*asked)).value


VALUES: list[tuple[str, str, tuple[float, ...]]] = [
    ("", "", (1, 1, 1, 1, 1, 1)),
    ("", "a", (0, 0, 0, 0, 1, 0)),
    ("a", "", (0, 1, 1, 0, 0, 1)),
    ("ab", "ab", (1, 1, 1, 1, 1, 1)),
    ("ba", "ab", (0, 0, 1, 1, 1, 1)),
    ("axb", "ab", (0, 1, 1, 0, 0, 1)),
    ("bxa", "ab", (0, 0, 1, 0, 0, 1)),
    ("a", "ab", (0, 0, 0, 0, 1, 0)),
    ("b", "ab", (0, 0, 0, 0, 1, 0)),
    ("aa", "a", (0, 1, 1, 0, 0, 1)),
    ("a", "aa", (0, 0, 0, 0, 1, 0)),
    ("ax", "ab", (0, 0, 0, 0, 0, 0)),
]


@pytest.mark.parametrize(("actual", "expected", "values"), VALUES)
def test_the_modes(actual: str, expected: str, values: tuple[float, ...]) -> None:
    assert tuple(value(TrajectoryMatch(mode), actual, expected) for mode in MODES) == values


@pytest.mark.parametrize(("actual", "expected", "values"), VALUES)
def test_modes_that_have_two_names(actual: str, expected: str, values: tuple[float, ...]) -> None:
    others: tuple[Mode, ...] = ("strict", "subsequence", "unordered")
    assert tuple(value(TrajectoryMatch(mode), actual, expected) for mode in others) == values[:3]


@pytest.mark.parametrize(
    ("actual", "expected", "accepted"),
    [
        ({"x": 1}, {"x": 1.0}, {"exact", "ignore", "subset", "superset"}),
        ({"x": 1}, {"x": True}, {"ignore"}),
        ({"x": 1, "y": 2}, {"x": 1}, {"ignore", "superset"}),
        ({"x": 1}, {"x": 1, "y": 2}, {"ignore", "subset"}),
        ({"x": 1}, {"y": 1}, {"ignore"}),
        ({}, {"x": 1}, {"ignore", "subset"}),
        ({"x": 1}, {}, {"ignore", "superset"}),
        ({}, {}, {"exact", "ignore", "subset", "superset"}),
        ({"x": {"p": 1, "q": 2}}, {"x": {"p": 1}}, {"ignore"}),
        (
            {"x": 5, "y": "tea"},
            {"x": Anything(), "y": Pattern("t.*")},
            {"exact", "ignore", "subset", "superset"},
        ),
        ({"x": 5}, {"x": Anything(), "y": Ignored()}, {"exact", "ignore", "subset", "superset"}),
        ({"y": 5}, {"x": Anything(), "y": Near(5)}, {"ignore", "subset"}),
        ({"x": 5, "y": 6}, {"x": Anything()}, {"ignore", "superset"}),
        ({"x": 5}, None, {"exact", "ignore", "subset", "superset"}),
        ('{"x": 1}', {"x": 1}, {"exact", "ignore", "subset", "superset"}),
        ("tea", {"x": 1}, {"ignore"}),
        ("tea", {"x": Ignored()}, {"ignore", "superset"}),
    ],
)
def test_the_ways_to_compare_arguments_mean_the_same_in_all_modes(
    actual: Any, expected: Any, accepted: set[str]
) -> None:
    made, asked = (ToolCall("a", actual),), (ExpectedCall("a", expected),)
    for mode in MODES:
        values = {
            way: value(TrajectoryMatch(mode, way), made, asked) for way in get_args(ArgumentMode)
        }
        assert values == {way: float(way in accepted) for way in values}


def test_which_call_comes_first_makes_no_difference() -> None:
    made, asked = (A("a", x=1, y=2), A("a", x=1)), (E("a", x=1), E("a", x=1, y=2))
    for way in ("superset", "exact", "subset"):
        scorer = TrajectoryMatch("unordered_exact", way)
        assert [value(scorer, calls, asked) for calls in (made, made[::-1])] == [1.0, 1.0]


PATHS: Mapping[str, Rule] = {"book": ("room.beds", "date"), "search": "ignore", " log ": ()}


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        (A("search", q="tea"), E("search", q="coffee"), True),
        (A("pay", q="tea"), E("pay", q="coffee"), False),
        (A("log", q="tea"), E("log", q="coffee"), True),
        (
            A("book", room={"beds": 2, "view": "sea"}, date="May"),
            E("book", room={"beds": 2.0}, date="May"),
            True,
        ),
        (A("book", room={"beds": 2}), E("book", room={"beds": 3}), False),
        (A("book", room={"beds": 2}), E("book", room={"beds": 2}, date="May"), False),
        (A("book", room={"beds": 2}, date=None), E("book", room={"beds": 2}), False),
        (A("book", room=2), E("book", room=3), True),
        (A("book", room={"beds": 2}), E("book", room={"beds": Anything()}), True),
        (A("book", room={}), E("book", room={"beds": Anything()}), False),
        (A("book", room={}), E("book", room={"beds": Ignored()}), True),
        (A("book", room={"beds": {"x": 1}}), E("book", room={"beds": {"x": Near(1)}}), True),
        (ToolCall("book", '{"room": {"beds": 2}, "guest": 1}'), E("book", room={"beds": 2}), True),
        (ToolCall("book", "tea"), E("book", room={"beds": 2}), False),
        (A("book", room={"beds": 2}), ExpectedCall("book"), True),
    ],
)
def test_overrides_of_single_tools(actual: ToolCall, expected: ExpectedCall, same: bool) -> None:
    for mode in MODES:
        assert (
            value(TrajectoryMatch(mode, tool_args_match_overrides=PATHS), (actual,), (expected,))
            == same
        )


@pytest.mark.parametrize(
    ("way", "overrides", "told"),
    [
        (
            "exact",
            {},
            "x: expected 1, found 2; y: expected 1, found nothing; z: expected nothing, found 1",
        ),
        ("superset", {}, "x: expected 1, found 2; y: expected 1, found nothing"),
        ("subset", {}, "x: expected 1, found 2; z: expected nothing, found 1"),
        ("exact", {"a": ("y", "x")}, "y: expected 1, found nothing; x: expected 1, found 2"),
        ("ignore", {"a": ("o.p", "o.r", "x")}, "x: expected 1, found 2"),
    ],
)
def test_only_what_is_compared_is_told(
    way: ArgumentMode, overrides: Mapping[str, Rule], told: str
) -> None:
    scorer = TrajectoryMatch("exact", way, overrides)
    actual, expected = A("a", x=2, z=1, o={"p": 1}), E("a", x=1, y=1, o={"p": 1})
    line = scorer.score(invocation(actual), reference_turn(expected)).explanation
    assert line == f"0 of 1 expected calls matched; a with other arguments ({told})"


def test_arguments_that_were_not_recorded_matter_where_they_are_looked_at() -> None:
    made, asked = (ToolCall("search"), ToolCall("book")), (E("search", q=1), E("book", date=1))
    tried: tuple[Mapping[str, Rule], ...] = ({}, {"book": ("date",)}, {"book": ()})
    scorers = [TrajectoryMatch(mode, "ignore", overrides) for mode in MODES for overrides in tried]
    reasons = [scorer.score(invocation(*made), reference_turn(*asked)).reason for scorer in scorers]
    assert reasons == [None, "args_not_recorded", None] * len(MODES)


def test_the_order_within_a_message_can_be_free() -> None:
    made = (ToolCall("b", {}, group=1), ToolCall("a", {}, group=1), ToolCall("c", {}))
    asked = expected_calls("a b c")
    assert [value(TrajectoryMatch(mode), made, asked) for mode in ("exact", "in_order")] == [
        0.0,
        0.0,
    ]
    assert [
        value(TrajectoryMatch(mode, parallel_calls="any_order"), made, asked)
        for mode in ("exact", "in_order")
    ] == [1.0, 1.0]


def test_optional_calls_and_alternatives_count_in_every_mode() -> None:
    asked = (ExpectedCall("a"), ExpectedCall("b", optional=True))
    assert [value(TrajectoryMatch(mode), "a", asked) for mode in MODES] == [1.0] * 6
    assert [value(TrajectoryMatch(mode), "ab", asked) for mode in MODES] == [1.0] * 6
    assert [value(TrajectoryMatch(mode), "b", asked) for mode in MODES] == [
        0.0,
        0.0,
        0.0,
        0.0,
        1.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fuzzy"}, "^mode: found 'fuzzy', expected one of exact, in_order"),
        (
            {"tool_args_match_mode": "equal"},
            "^tool_args_match_mode: found 'equal', expected one of exact, ignore, subset, superset",
        ),
        (
            {"parallel_calls": "free"},
            "^parallel_calls: found 'free', expected one of in_order, any_order",
        ),
        (
            {"tool_args_match_overrides": {"a": "equal"}},
            "^tool_args_match_overrides: a: found 'equal', expected one of exact",
        ),
        (
            {"tool_args_match_overrides": {" ": "exact"}},
            "^tool_args_match_overrides: found ' ', expected the name of a tool",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrajectoryMatch(**options)
    with pytest.raises(ValidationError):
        TypeAdapter(TrajectoryMatch).validate_python(options, extra="forbid")


def test_options_are_read_as_people_write_them() -> None:
    written = {
        "mode": "strict",
        "tool_args_match_mode": "superset",
        "tool_args_match_overrides": {"a": "ignore", "b": ["x.p", "y"]},
    }
    scorer = TrajectoryMatch("strict", "superset", {"a": "ignore", "b": ("x.p", "y")})
    assert TypeAdapter(TrajectoryMatch).validate_python(written, extra="forbid") == scorer
    assert TrajectoryMatch("strict", "superset", {"a": "ignore", "b": ["x.p", "y"]}) == scorer  # type: ignore[dict-item]
    assert scorer != TrajectoryMatch("strict", "superset", {"a": "ignore", "b": ("x.p",)})


@pytest.mark.parametrize(
    "scorer",
    [TrajectoryMatch(), TrajectoryMatch("subset", "superset", PATHS, "any_order")],
    ids=repr,
)
def test_the_contract_of_a_scorer_is_kept(scorer: TrajectoryMatch) -> None:
    check_scorer(scorer)
