"""The quick reader of plain literals: it has the value that the full reader has, or none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from pathgauge.collector.core.invocations.messages.literals import MAX_LEVELS, literal
from pathgauge.collector.core.invocations.messages.plain_literals import plain_literal

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text("'\"\\ {}[]:,TrueNon", max_size=12)
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


def value(read: Any, text: str) -> Any:
    """The value with the types of all numbers; `...` if there is none."""
    try:
        return repr(read(text))
    except ValueError:
        return ...


def agrees(text: str) -> bool:
    return value(plain_literal, text) in (value(literal, text), ...)


@given(PLAIN)
@example([-0.0, 2**53 + 1, -(2**63), 10**20, 1e300, 5e-324])
def test_a_plain_literal_has_the_value_that_the_full_reader_has(written: Any) -> None:
    assert agrees(repr(written))


@given(st.text("'\"\\{}[]():,.0123456789eE+-_ \n\ttruefalsnTFNabx#", max_size=40))
@example("['''']")
@example("['' 'a']")
@example("{'a': true}")
@example("{'a': 1, 'a': 2}")
@example("['a', ]")
@example("[r'\\n', b'a', u'b']")
@example("[1e400, -1e400, 01, 1_0, +1, 1.]")
@example('["a\'b", \'a"b\', "\\u00e9", "\\/", \'\\x41\']')
def test_any_text_has_the_value_that_the_full_reader_has_or_none(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize(
    "written",
    [
        [{"role": "user", "content": "It's 5\" wide,\nsays C:\\temp"}, None, True, False],
        {"usage": {"prompt_tokens": 12, "cost": 0.25}, "id": "chatcmpl-1", "e": []},
    ],
)
def test_what_frameworks_write_is_plain(written: Any) -> None:
    assert plain_literal(repr(written)) == written


@pytest.mark.parametrize(
    "text",
    ["[(1, 2)]", "{1: 2}", "{'a'}", "[nan]", "[b'a']", "[datetime(1)]", "[" * MAX_LEVELS + "[]"],
)
def test_anything_else_is_left_to_the_full_reader(text: str) -> None:
    assert value(plain_literal, text) is ...
