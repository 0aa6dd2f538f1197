"""JSON with positions."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Position,
    json_source,
)
from pathgauge.scorers.types import Json
from support.positions import at, keys, values


def message(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        json_source.read(text, "f.json")
    return str(caught.value)


def test_every_key_and_value_has_its_position() -> None:
    document = json_source.read('{\n\t"a": 1,\n\t"b": ["x",\n {"c": null}]}\n', "f.json")
    assert document == Document("f.json", {"a": 1, "b": ["x", {"c": None}]})
    assert values(document) == {
        (): Position(1, 1),
        ("a",): Position(2, 7),
        ("b",): Position(3, 7),
        ("b", 0): Position(3, 8),
        ("b", 1): Position(4, 2),
        ("b", 1, "c"): Position(4, 8),
    }
    assert keys(document) == {
        ("a",): Position(2, 2),
        ("b",): Position(3, 2),
        ("b", 1, "c"): Position(4, 3),
    }


@pytest.mark.parametrize(
    ("path", "of_key", "expected"),
    [
        (("a", "x"), False, (2, 7)),
        (("b", 1, "d"), False, (4, 2)),
        (("b", 1, "d"), True, (4, 2)),
        (("b", 7), False, (3, 7)),
        (("b", "x", 0), False, (3, 7)),
        (("z", "x"), True, (1, 1)),
        (("b", 1), True, (4, 2)),
        ((), True, (1, 1)),
    ],
)
def test_a_path_that_does_not_exist_has_the_position_of_its_longest_part(
    path: KeyPath, of_key: bool, expected: tuple[int, int]
) -> None:
    document = json_source.read('{\n\t"a": 1,\n\t"b": ["x",\n {"c": null}]}\n', "f.json")
    assert document.position(path, of_key=of_key) == Position(*expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "f.json:1:1: not JSON: found the end of the file, expected a value"),
        (" \n", "f.json:2:1: not JSON: found the end of the file, expected a value"),
        ("{", "f.json:1:2: not JSON: found the end of the file, expected a key in double quotes"),
        ("{a: 1}", "f.json:1:2: not JSON: found 'a', expected a key in double quotes"),
        ("{'a': 1}", 'f.json:1:2: not JSON: found "\'", expected a key in double quotes'),
        ('{"a" 1}', "f.json:1:6: not JSON: found '1', expected ':'"),
        ('{"a": 1 "b": 2}', "f.json:1:9: not JSON: found '\"', expected ','"),
        ('{"a": 1,}', "f.json:1:9: not JSON: found '}', expected a key in double quotes"),
        ("[1, 2,]", "f.json:1:7: not JSON: found ']', expected a value"),
        ("[1\n 2]", "f.json:2:2: not JSON: found '2', expected ','"),
        ("{} {}", "f.json:1:4: not JSON: found '{', expected the end of the file"),
        ('["a\nb"]', "f.json:1:4: not JSON: Invalid control character at"),
        ('["\\x"]', "f.json:1:3: not JSON: Invalid \\escape"),
        ("[NaN]", "f.json:1:2: found NaN, expected a number"),
        ('{"a": -Infinity}', "f.json:1:7: found -Infinity, expected a number"),
        (
            '{"x": {"a": 1, "a": 2}}',
            "f.json:1:16: x.a: found the key again, expected it once (first in line 1)",
        ),
        (
            '["x\\ud800"]',
            "f.json:1:2: [0]: found text with '\\ud800', expected text that UTF-8 can hold",
        ),
        (
            '{"a": {"x\\udfff": 1}}',
            "f.json:1:8: a: found a key with '\\udfff', expected text that UTF-8 can hold",
        ),
        ("1" * 5000, "f.json:1:1: found a number with thousands of digits, expected a shorter one"),
        ("[" * 102, "f.json:1:102: found more than 100 levels, expected fewer"),
        ("// x", "f.json:1:1: not JSON: found '/', expected a value"),
    ],
)
def test_invalid_json_is_refused(text: str, expected: str) -> None:
    assert message(text) == expected


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


def inside(value: Json, path: tuple[str | int, ...]) -> Json:
    for step in path:
        value = value[step]
    return value


@given(VALUES, st.sampled_from([None, 0, 2, "\t", "\r\n "]), st.booleans())
def test_any_json_is_read_with_correct_positions(
    value: Json, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    document = json_source.read(text, "f.json")
    assert document.data == value
    offsets = {at(text, offset): offset for offset in range(len(text) + 1)}
    for path, position in values(document).items():
        found = json.JSONDecoder().raw_decode(text[offsets[position] :])[0]
        assert found == inside(value, path)
    for path, position in keys(document).items():
        assert json.JSONDecoder().raw_decode(text[offsets[position] :])[0] == path[-1]


@given(
    st.text(alphabet='{}[]",:0123.eE+-\\/u truefalsn\n\t')
    | st.text()
    | VALUES.map(json.dumps).flatmap(lambda text: st.just(text[: len(text) // 2]))
)
def test_any_text_gives_the_same_as_the_standard_library_or_is_refused(text: str) -> None:
    with suppress(ConfigError):
        assert json_source.read(text, "f.json").data == json.loads(text)


def test_numbers_beyond_floats_are_infinite() -> None:
    assert json_source.read("1e999", "f.json").data == math.inf
