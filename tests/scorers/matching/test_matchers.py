"""Matchers: what each accepts, how they are read and written, and that none of them can stall."""

import json
import math
from copy import deepcopy
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge import TooLongError
from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.matching.matchers import (
    MAX_ITEMS,
    AnyOrder,
    Anything,
    AtLeast,
    Ignored,
    Matcher,
    Near,
    OneOf,
    Pattern,
    holds_matcher,
    matches,
    read,
    written,
)
from pathgauge.scorers.matching.patterns import MAX_PATTERN, MAX_TEXT

NAN = math.nan

ACCEPTED: list[tuple[Any, Any]] = [
    (Anything(), None),
    (Anything(), {"a": [1]}),
    ({"a": Anything()}, {"a": None}),
    (Ignored(), 7),
    ({"a": Ignored()}, {}),
    ({"a": Ignored()}, {"a": 1}),
    ([Ignored()], [1]),
    (Pattern("[a-z]+"), "tea"),
    (Pattern(""), ""),
    (Pattern("(?i)tea|coffee"), "Coffee"),
    (Pattern("(?s).*"), "x" * MAX_TEXT),
    (Near(12.5, abs=0.01), 12.51),
    (Near(12.5, abs=0.01), 12.49),
    (Near(100, rel=0.1), 110),
    (Near(1), 1 + 1e-10),
    (Near(0.1 + 0.2), 0.3),
    (Near(0), -0.0),
    (Near(3, rel=0), 3),
    (AnyOrder([]), []),
    (AnyOrder([1, "a", 1]), ["a", 1.0, 1]),
    (AnyOrder([{"a": 1}, [2]]), [[2], {"a": 1}]),
    (AnyOrder([Anything(), 1]), [1, 2]),
    (AnyOrder([Anything(), OneOf([1, 2]), OneOf([1])]), [1, 2, 3]),
    (AnyOrder([OneOf([1, 2]), OneOf([1, 3]), Near(1)]), [1, 2, 3]),
    (AtLeast({}), {"a": 1}),
    (AtLeast({"a": 1}), {"a": 1.0, "b": 2}),
    (AtLeast({"a": Ignored()}), {}),
    (AtLeast({"a": {"b": Anything()}}), {"a": {"b": 1}, "c": 2}),
    (OneOf([1, None]), None),
    (OneOf([Pattern("x+"), 3]), "xx"),
    ({"a": [1, {"b": Pattern(".")}]}, {"a": [1.0, {"b": "c"}]}),
    ((1, Anything()), [1, 2]),
    ({}, {}),
    (NAN, NAN),
]
REFUSED: list[tuple[Any, Any]] = [
    ({"a": Anything()}, {}),
    ({"a": Ignored()}, {"b": 1}),
    ([Ignored()], []),
    (Pattern("[a-z]+"), "tea!"),
    (Pattern("[a-z]+"), "a tea"),
    (Pattern("1"), 1),
    (Pattern("null"), None),
    (Near(12.5, abs=0.01), 12.52),
    (Near(100, rel=0.1), 112),
    (Near(0), 1e-300),
    (Near(1), True),
    (Near(1), "1"),
    (Near(1), None),
    (Near(1), NAN),
    (Near(1, abs=1e308), math.inf),
    (Near(1, abs=1e308), 10**400),
    (AnyOrder([1, 1, 2]), [1, 2, 2]),
    (AnyOrder([1]), [1, 1]),
    (AnyOrder([1]), []),
    (AnyOrder([]), {}),
    (AnyOrder(["a"]), "a"),
    (AnyOrder([OneOf([1, 2]), OneOf([1]), OneOf([1])]), [1, 2, 1.5]),
    (AnyOrder([1, Anything()]), [2, 3]),
    (AnyOrder([True]), [1]),
    (AtLeast({"a": 1}), {"a": 2}),
    (AtLeast({"a": 1}), {"b": 1}),
    (AtLeast({"a": None}), {}),
    (AtLeast({}), []),
    (OneOf([1]), True),
    ({"a": 1}, {"a": 1, "b": 1}),
    ({"a": 1, "b": Anything()}, {"a": 1}),
    ({}, []),
    ([], {}),
    ([1], [1, 2]),
    ([1, 2], [2, 1]),
    ("a", ["a"]),
    (1, True),
    (None, {}),
]


@pytest.mark.parametrize(("expected", "actual"), ACCEPTED, ids=repr)
def test_what_is_accepted(expected: Any, actual: Any) -> None:
    assert matches(expected, actual) is True


@pytest.mark.parametrize(("expected", "actual"), REFUSED, ids=repr)
def test_what_is_not(expected: Any, actual: Any) -> None:
    assert matches(expected, actual) is False


READ: list[tuple[Any, Any]] = [
    ({"$any": True}, Anything()),
    ({"$ignore": True}, Ignored()),
    ({"$regex": "a+"}, Pattern("a+")),
    ({"$near": 12.5}, Near(12.5, abs=0, rel=1e-9)),
    ({"$near": 12.5, "abs": 0.01, "rel": 0}, Near(12.5, abs=0.01, rel=0)),
    ({"$any_order": [1, {"$any": True}]}, AnyOrder([1, Anything()])),
    ({"$at_least": {"a": {"$regex": "x"}}}, AtLeast({"a": Pattern("x")})),
    ({"$one_of": [1, {"$near": 2}]}, OneOf([1, Near(2)])),
    ({"$literal": {"$any": True, "b": {"$regex": 1}}}, {"$any": True, "b": {"$regex": 1}}),
    ({"$literal": 5}, 5),
    ({"a": [{"b": {"$any": True}}], "c": "$any"}, {"a": [{"b": Anything()}], "c": "$any"}),
    ({"abs": 1, "rel": "$"}, {"abs": 1, "rel": "$"}),
    ([1, (2,)], [1, [2]]),
]


@pytest.mark.parametrize(("text", "value"), READ, ids=repr)
def test_what_is_read(text: Any, value: Any) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            {"$foo": 1},
            (
                r"\$foo: found an unknown key, expected one of \$any, \$ignore, \$regex, .*,"
                r" \$one_of, \$literal"
            ),
        ),
        ({"a": [1, {"b": {"$foo": 1}}]}, r"a\[1\]\.b\.\$foo: found an unknown key"),
        (
            {"a": {"$any": True, "b": 1, "$ignore": True}},
            r"a\.\$any: found b, \$ignore beside it, expected nothing else",
        ),
        ({"a": {"$regex": "x", "abs": 1}}, r"a\.\$regex: found abs beside it"),
        ({"$literal": {}, "a": 1}, r"\$literal: found a beside it"),
        ({"$any": False}, r"\$any: found False, expected true"),
        ({"$ignore": 1}, r"\$ignore: found 1, expected true"),
        ({"$regex": 1}, r"\$regex: found 1, expected a pattern of at most 1,000 characters"),
        (
            {"$regex": "x" * (MAX_PATTERN + 1)},
            r"\$regex: found 'x+…, expected a pattern of at most 1,000 characters",
        ),
        ({"$regex": "("}, r"\$regex: found '\(', expected a regular expression: missing \)"),
        ({"$near": "1"}, r"\$near: found '1', expected a number"),
        ({"$near": True}, r"\$near: found True, expected a number"),
        ({"$near": NAN}, r"\$near: found nan, expected a number"),
        ({"$near": 1, "abs": -1}, r"\$near: abs: found -1, expected a number that is not negative"),
        (
            {"$near": 1, "rel": math.inf},
            r"\$near: rel: found inf, expected a number that is not negative",
        ),
        ({"$any_order": {}}, r"\$any_order: found {}, expected a list"),
        ({"$at_least": []}, r"\$at_least: found \[\], expected an object"),
        ({"$one_of": "ab"}, r"\$one_of: found 'ab', expected a list"),
        ({"$one_of": []}, r"\$one_of: found an empty list, expected at least one value"),
        (
            {"a": {"$one_of": [1, {"$any_order": [{"$near": None}]}]}},
            r"a\.\$one_of\[1\]\.\$any_order\[0\]\.\$near: found None, expected a",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        read(text)


SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, "", "a", "$any"])
KEYS = st.sampled_from(["a", "b", "$any", "$x", "abs"])
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=5,
)
TOLERANCE = st.sampled_from([0.0, 0.5, 1])
LEAVES: st.SearchStrategy[Any] = (
    PLAIN
    | st.builds(Anything)
    | st.builds(Ignored)
    | st.builds(Pattern, st.sampled_from(["a*", "."]))
    | st.builds(Near, st.integers(-2, 2), TOLERANCE, TOLERANCE)
)
MATCHERS: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
        | st.builds(AnyOrder, st.lists(inner, max_size=3))
        | st.builds(AtLeast, st.dictionaries(st.sampled_from("ab"), inner, max_size=2))
        | st.builds(OneOf, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)


@given(MATCHERS)
def test_what_is_written_is_read_again(value: Any) -> None:
    text = written(value)
    assert read(json.loads(json.dumps(text))) == value
    assert not holds_matcher(text)


def test_a_matcher_beside_a_key_with_a_dollar_cannot_be_written() -> None:
    with pytest.raises(
        ValueError, match=r"found a matcher in an object with \$x, expected no other matchers"
    ):
        written({"$x": 1, "a": [Anything()]})


@given(PLAIN, PLAIN)
def test_without_matchers_values_are_compared_as_json(expected: Any, actual: Any) -> None:
    assert matches(expected, actual) == (canonical(expected) == canonical(actual))
    assert matches(expected, expected)


@settings(deadline=None)
@given(st.lists(MATCHERS, max_size=4), st.lists(SCALARS, max_size=4))
def test_any_order_is_some_order(expected: list[Any], actual: list[Any]) -> None:
    assert matches(AnyOrder(expected), actual) == any(
        matches(expected, list(order)) for order in permutations(actual)
    )


@given(MATCHERS, MATCHERS)
def test_matchers_are_equal_and_have_the_same_hash_when_they_are_written_the_same(
    one: Any, other: Any
) -> None:
    one, other = OneOf([one]), OneOf([other])
    assert (one == other) == (canonical(written(one)) == canonical(written(other)))
    assert one != other or hash(one) == hash(other)


def test_a_matcher_is_no_json_and_not_what_it_holds() -> None:
    assert Anything() != {"$any": True}
    assert OneOf([1]) != AnyOrder([1])
    assert OneOf([1]) != OneOf([True])
    assert [
        holds_matcher(value) for value in (Anything(), [{"a": Anything()}], {"$any": True}, "a")
    ] == [True, True, False, False]


@pytest.mark.parametrize(
    "matcher", [value for _, value in READ if isinstance(value, Matcher)], ids=repr
)
def test_matchers_can_be_copied(matcher: Matcher) -> None:
    assert deepcopy(matcher) == matcher


def test_a_pattern_that_explodes_is_too_long() -> None:
    with pytest.raises(
        TooLongError, match=r"the pattern '.*' takes too long on text of 200 characters"
    ):
        matches({"q": Pattern(r"(?:(a+)(?:b|\1))+c")}, {"q": "a" * 200})


def test_text_that_is_too_long_for_a_pattern_is_neither_matched_nor_not() -> None:
    with pytest.raises(
        TooLongError,
        match="text of 10,001 characters for the pattern 'x'; at most 10,000 are tried",
    ):
        matches(Pattern("x"), "x" * (MAX_TEXT + 1))


def test_long_lists_in_any_order_are_too_long_with_matchers_only() -> None:
    many = list(range(MAX_ITEMS + 1))
    assert matches(AnyOrder(many[::-1]), many)
    assert not matches(AnyOrder(many), ["x"] * len(many))
    assert matches(AnyOrder([*many, Anything()]), ["x", *many])
    assert matches(AnyOrder([Anything()] * MAX_ITEMS), many[1:])
    with pytest.raises(
        TooLongError,
        match="201 items of a list in any order; at most 200 are compared with matchers",
    ):
        matches(AnyOrder([Anything()] * (MAX_ITEMS + 1)), many)
