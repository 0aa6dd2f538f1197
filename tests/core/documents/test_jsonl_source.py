"""JSON lines with positions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.documents import ConfigError, Document, Position, jsonl_source
from support.positions import keys, values

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def message(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        jsonl_source.read(text, "f.jsonl")
    return str(caught.value)


def test_each_line_is_a_row_with_its_own_position() -> None:
    document = jsonl_source.read('{"a": 1}\n \t\r\n  {"b": [true]}', "f.jsonl")
    assert document == Document("f.jsonl", [{"a": 1}, {"b": [True]}])
    assert values(document) == {
        (): Position(1, 1),
        (0,): Position(1, 1),
        (0, "a"): Position(1, 7),
        (1,): Position(3, 3),
        (1, "b"): Position(3, 9),
        (1, "b", 0): Position(3, 10),
    }
    assert keys(document) == {(0, "a"): Position(1, 2), (1, "b"): Position(3, 4)}


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n"])
def test_text_without_lines_has_no_rows(text: str) -> None:
    assert jsonl_source.read(text, "f.jsonl").data == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('1\n{"a": 1', "f.jsonl:2:8: not JSON: found the end of the line, expected ','"),
        ("1\n2 3", "f.jsonl:2:3: not JSON: found '3', expected the end of the line"),
        (
            '1\n\n{"a": 1, "a": 2}',
            "f.jsonl:3:10: a: found the key again, expected it once (first in line 3)",
        ),
        (
            "[\n1]",
            (
                "f.jsonl:1:2: not JSON: found the end of the line, expected a value\n"
                "f.jsonl:2:2: not JSON: found ']', expected"
                " the end of the line"
            ),
        ),
    ],
)
def test_problems_of_all_lines_are_reported_with_positions(text: str, expected: str) -> None:
    assert message(text) == expected


@given(st.lists(VALUES), st.booleans())
def test_each_written_line_is_read_as_a_row(rows: list[object], ascii_only: bool) -> None:
    text = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
    assert jsonl_source.read(text, "f.jsonl").data == rows
