"""Which arguments of a tool span may be those that a model asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.invocations.same_arguments import are_equal, contradict


@pytest.mark.parametrize(
    ("asked", "executed"),
    [
        ({"city": "Rome"}, {"city": "Oslo"}),
        ({"n": 1}, {"n": 2.0}),
        ({"n": 1, "city": "Rome"}, {"n": 1, "city": "Oslo"}),
        ({"deep": {"n": 1}}, {"deep": {"n": 2, "more": 3}}),
        ({"list": [1, 2]}, {"list": [1, 3]}),
        ({"list": [1, 2]}, {"list": [1]}),
        ({"flag": True}, {"flag": False}),
    ],
)
def test_another_value_of_the_same_type_contradicts(asked: Any, executed: Any) -> None:
    assert contradict(asked, executed)
    assert not are_equal(asked, executed)


@pytest.mark.parametrize(
    ("asked", "executed"),
    [
        ({"n": 100}, {"n": 100.0}),
        ({"n": 0.1}, {"n": 0.1 + 1e-17}),
        ({"n": 1}, {"n": 1, "timeout": 30}),
        ({"n": 1, "why": None}, {"n": 1}),
        ({"n": "1"}, {"n": 1}),
        ({"flag": True}, {"flag": 1}),
        ({"at": "2025-01-01"}, {"at": {"year": 2025}}),
        ({"text": "a long story"}, {"text": "a long"}),
        ({"text": "secret"}, {"text": "__REDACTED__"}),
        ({"n": 1}, {"input": {"n": 2}}),
        ({"n": 1}, "2"),
        ({"n": 1}, None),
        (None, {"n": 1}),
        ("text", {"n": 1}),
    ],
)
def test_what_may_be_the_same_does_not_contradict(asked: Any, executed: Any) -> None:
    assert not contradict(asked, executed)


def test_text_without_a_name_equals_the_only_argument() -> None:
    assert are_equal({"city": "Rome"}, "Rome")
    assert not are_equal({"city": "Rome", "n": 1}, "Rome")
    assert not are_equal({"city": "Rome"}, "Oslo")
    assert not are_equal({}, None)
    assert not are_equal(None, None)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=3))
def test_arguments_never_contradict_themselves(arguments: dict[str, Any]) -> None:
    assert are_equal(arguments, arguments)
    assert not contradict(arguments, arguments)
