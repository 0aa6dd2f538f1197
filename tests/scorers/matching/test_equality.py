"""When two tool calls are the same call."""

import json
import math
import unicodedata
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.matching.equality import canonical, canonical_arguments, tool_name

NAN = math.nan

EQUAL = [
    (1, 1.0),
    (0, -0.0),
    (10**15, 1e15),
    (NAN, float("nan")),
    (math.inf, math.inf),
    (None, None),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": {"x": 1, "y": [1, 2]}}, {"a": {"y": [1.0, 2.0], "x": 1}}),
    ([1, (2, 3)], [1, [2, 3]]),
    ({}, {}),
    ([NAN, {"a": NAN}], [NAN, {"a": float("nan")}]),
]

UNEQUAL = [
    (1, True),
    (0, False),
    (1.0, True),
    (1, "1"),
    ("true", True),
    (None, "null"),
    (None, False),
    (None, 0),
    (NAN, None),
    (NAN, "NaN"),
    ([1, 2], [2, 1]),
    ([], {}),
    ([], ""),
    ([["a", 1]], {"a": 1}),
    ({"a": None}, {}),
    ({"a": True}, {"a": 1}),
    ([True], [1]),
    ({"a": [1]}, {"a": 1}),
    (2**53, float(2**53) + 2),
    (2**53 + 1, float(2**53)),
    (10**400, math.inf),
    (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
    ("a", "A"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_values_that_are_the_same_json_are_equal(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(other)
    assert hash(canonical(one)) == hash(canonical(other))


@pytest.mark.parametrize(("one", "other"), UNEQUAL)
def test_values_that_are_different_json_differ(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"q": "tea"}', {"q": "tea"}),
        (' {"q": "tea"}\n', {"q": "tea"}),
        (json.dumps(json.dumps({"q": "tea"})), {"q": "tea"}),
        ('{"n": NaN}', {"n": NAN}),
        ('{"n": -0.0}', {"n": 0}),
        ("{}", {}),
    ],
)
def test_arguments_that_are_text_are_read_as_json_up_to_double_encoding(
    text: str, value: dict[str, Any]
) -> None:
    assert canonical_arguments(text) == canonical_arguments(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tea",
        '{"q": ',
        "[1, 2]",
        "null",
        "7",
        '"tea"',
        json.dumps(json.dumps(json.dumps({"q": "tea"}))),
        '{"n": ' + "9" * 5000 + "}",
    ],
)
def test_text_that_is_no_object_is_compared_as_it_stands(text: str) -> None:
    assert canonical_arguments(text) == text


def test_absent_arguments_are_not_empty_arguments() -> None:
    assert canonical_arguments(None) is None
    assert canonical_arguments({}) == frozenset()


def test_tool_names_are_stripped_and_keep_their_case() -> None:
    assert tool_name("  send_email\n") == "send_email"
    assert tool_name("Send_Email") != tool_name("send_email")


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3, width=16)
    | st.sampled_from(["", "1", "a", "null"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)


def spelled(value: Any) -> str:
    """An independent canonical form: text, as JSON writes it, with every number as a fraction."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, int | float):
        return "/".join(map(str, (value + 0).as_integer_ratio()))
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(f"{json.dumps(key)}:{spelled(value[key])}" for key in sorted(value))
            + "}"
        )
    return "[" + ",".join(map(spelled, value)) + "]"


@given(VALUES, VALUES)
def test_equality_is_json_equality(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == (spelled(one) == spelled(other))


@given(st.dictionaries(st.sampled_from("abc"), VALUES))
def test_the_encoding_of_arguments_makes_no_difference(arguments: dict[str, Any]) -> None:
    assert (
        canonical_arguments(json.dumps(arguments))
        == canonical_arguments(json.dumps(json.dumps(arguments)))
        == canonical(arguments)
    )
