"""Decoded attribute values: JSON, JSON in JSON, Python `repr`, text, placeholders, truncated
values.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.invocations.messages.literals import (
    MAX_LEVELS,
    MAX_LITERAL_CHARACTERS,
)
from pathgauge.collector.core.invocations.messages.values import Content, as_int, decode


@pytest.mark.parametrize(
    ("raw", "content"),
    [
        ('{"a": 1}', Content({"a": 1})),
        ('"{\\"a\\": 1}"', Content({"a": 1})),
        ("{'order_id': '42', 'rush': None}", Content({"order_id": "42", "rush": None})),
        ({"a": [1, None]}, Content({"a": [1, None]})),
        ("just text", Content("just text")),
        ("42", Content("42")),
        ("{not json}", Content("{not json}")),
        ("{['a list', 'which no set can hold']}", Content("{['a list', 'which no set can hold']}")),
        ("", Content("")),
        ('{"a": "cut he', Content(truncated=True)),
        ('[{"role":"assistant"', Content(truncated=True)),
        ("[", Content(truncated=True)),
        ('{"a": "cut he\n\n[TRUNCATED - Content exceeds 60KB limit]', Content(truncated=True)),
        ('[{"a": 1, "b... (truncated)', Content(truncated=True)),
        ('{"a": 12...truncated', Content(truncated=True)),
        ('"Odes" (truncated)', Content('"Odes" (truncated)')),
        ('{"a": "[truncated]"}', Content({"a": "[truncated]"})),
        ('{"a": 1} was the list, but truncated', Content('{"a": 1} was the list, but truncated')),
        ("[{'order_id': 'A-1", Content(truncated=True)),
        ('"The Hobbit" is in stock.', Content('"The Hobbit" is in stock.')),
        ("[Note] Closed on Sunday.", Content("[Note] Closed on Sunday.")),
        ("<elided>", Content(redacted=True)),
        ("__REDACTED__", Content(redacted=True)),
        ("[redacted]", Content(redacted=True)),
        ('"[redacted]"', Content(redacted=True)),
        ("<not specified>", Content()),
        (None, Content()),
        (0, Content(0)),
        ("{}", Content({})),
    ],
)
def test_decoding(raw: Any, content: Content) -> None:
    assert decode(raw) == content


@pytest.mark.parametrize("levels", [MAX_LEVELS, MAX_LEVELS + 1, 600, 5000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_text_nested_so_deep_that_nobody_could_walk_it_stays_text(
    levels: int, opening: str, closing: str
) -> None:
    text = opening * levels + "1" + closing * levels
    assert (decode(text).value == text) == (levels > MAX_LEVELS)
    assert repr(decode(text))


def test_text_that_is_wide_and_not_deep_is_decoded() -> None:
    assert decode(f"[{', '.join(['[{}]'] * 1000)}]").value == [[{}]] * 1000


def test_a_repr_holds_nothing_that_json_cannot_say() -> None:
    text = "{'a': (1, 2), 'b': {3}, 'c': b'4', (5,): None, 'half': '\\ud800', '\\udfff': 6}"
    assert decode(text) == Content(
        {"a": [1, 2], "b": "{3}", "c": "b'4'", "(5,)": None, "half": "?", "?": 6}
    )


def test_a_repr_that_is_too_long_stays_text() -> None:
    longest = "{'a': '" + "x" * (MAX_LITERAL_CHARACTERS - 9) + "'}"
    assert (decode(longest), decode(longest + " ")) == (
        Content({"a": "x" * (MAX_LITERAL_CHARACTERS - 9)}),
        Content(longest + " "),
    )


@given(st.text())
def test_any_text_decodes_without_an_error(raw: str) -> None:
    decode(raw)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (3, 3),
        (3.0, 3),
        ("3", 3),
        (3.5, None),
        (True, None),
        ("three", None),
        ("²", None),
        (None, None),
        ([3], None),
    ],
)
def test_counts(value: Any, count: int | None) -> None:
    assert as_int(value) == count
