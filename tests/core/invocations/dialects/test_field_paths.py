"""Where the value of a field may be in a span, and the precedence of field paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    FieldPath,
    Flattened,
    InEvent,
    JsonMember,
    first,
    unflattened,
)
from pathgauge.collector.testing import span

ATTRIBUTES = {
    "plain": "text",
    "empty": "",
    "off": "{}",
    "json": '{"a": [{"b": 1}], "c": null}',
    "list": [{"name": "x"}],
    "list.0.role": "user",
    "list.0.calls.0.name": "f",
    "list.0.calls.1.name": "g",
    "list.10.role": "late",
    "list.2.role": "early",
}
SPAN = span(
    "1",
    "s",
    ATTRIBUTES,
    events=[("told", {"other": 1}), ("told", {"key": "first"}), ("told", {"key": "second"})],
)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("plain", "text"),
        ("empty", None),
        ("absent", None),
        (JsonMember("json", ("a", 0, "b")), 1),
        (JsonMember("json", ("a", 1, "b")), None),
        (JsonMember("json", ("a", "b")), None),
        (JsonMember("json", (0,)), None),
        (JsonMember("json", ("c",)), None),
        (JsonMember("list", (0, "name")), "x"),
        (JsonMember("plain", ("a",)), None),
        (JsonMember("absent", ("a",)), None),
        (InEvent("told", "key"), "first"),
        (InEvent("told", "absent"), None),
        (InEvent("silent", "key"), None),
        (
            Flattened("list"),
            [
                {"role": "user", "calls": [{"name": "f"}, {"name": "g"}]},
                {"role": "early"},
                {"role": "late"},
            ],
        ),
        (Flattened("absent"), None),
        (Derived(lambda one: one.name * 2), "ss"),
    ],
)
def test_the_value_at_a_field_path(place: FieldPath, value: Any) -> None:
    assert first([SPAN], (place,)) == value


def test_the_first_span_with_a_value_at_any_field_path_wins() -> None:
    other = span("2", "s", {"b": 2})
    assert first([other, SPAN], ("plain", "b")) == 2
    assert first([SPAN, other], ("b", "plain")) == "text"


def test_an_empty_object_is_no_value_if_content_was_not_captured() -> None:
    assert (first([SPAN], ("off",)), first([SPAN], ("off", "plain"), frozenset({"off"}))) == (
        "{}",
        "text",
    )


json_values = st.recursive(
    st.text(max_size=3) | st.integers(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=12)
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
    ),
    max_leaves=20,
)


def flattened(value: Any, prefix: str) -> dict[str, Any]:
    """The law's other side: what instrumentations do."""
    if not isinstance(value, dict | list):
        return {prefix: value}
    members = value.items() if isinstance(value, dict) else enumerate(value)
    return {
        key: leaf
        for step, below in members
        for key, leaf in flattened(below, f"{prefix}.{step}").items()
    }


@given(st.lists(json_values, min_size=1, max_size=12))
def test_flattened_values_are_rebuilt(value: list[Any]) -> None:
    assert unflattened(flattened(value, "x"), "x.") == value


@given(
    st.dictionaries(
        st.text("x.0123456789٣a", max_size=12).map("x.".__add__), st.integers(), max_size=8
    )
)
def test_any_keys_are_rebuilt_without_an_error(attributes: dict[str, int]) -> None:
    unflattened(attributes, "x.")


def test_a_key_with_many_dots_gives_no_deep_value() -> None:
    value = unflattened({"x." + "a." * 5000 + "b": 1}, "x.")
    for _ in range(20):
        value = next(iter(value.values())) if isinstance(value, dict) else value
    assert value == 1
