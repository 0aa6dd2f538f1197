"""YAML with positions: types of values, and refused text."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, strategies as st

from pathgauge.collector.core.documents import ConfigError, Document, Position, yaml_source
from pathgauge.scorers.types import Json
from support.positions import keys, values


@pytest.fixture(params=["libyaml", "PyYAML"])
def _parsers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with both parsers."""
    if request.param == "PyYAML":
        monkeypatch.setattr(yaml_source, "FAST_PARSER", None)


pytestmark = pytest.mark.usefixtures("_parsers")


def data(text: str, **environment: str) -> Json:
    (document,) = yaml_source.read(text, "f.yaml", environment)
    return document.data


def message(text: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        yaml_source.read(text, "f.yaml", environment)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("NO", "NO"),
        ("on", "on"),
        ("7", 7),
        ("-7", -7),
        ("012", 12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.inf", -math.inf),
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("'7'", "7"),
        ('"true"', "true"),
        ("=", "="),
        ("!!str 7", "7"),
        ("!!int '7'", 7),
        ("!!float 7", 7.0),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_scalars_have_the_types_of_the_core_schema(text: str, expected: Json) -> None:
    found = data(f"key: {text}")["key"]
    assert (found, type(found)) == (expected, type(expected))


def test_not_a_number_is_a_number() -> None:
    assert math.isnan(data(".nan"))


def test_keys_are_text() -> None:
    assert data("{1: a, true: b, ~: c, 'x y': d}") == {"1": "a", "true": "b", "~": "c", "x y": "d"}


def test_aliases_repeat_their_value() -> None:
    assert data("a: &x [1, 2]\nb: *x") == {"a": [1, 2], "b": [1, 2]}


def test_every_key_and_value_has_its_position() -> None:
    (document,) = yaml_source.read("a: 1\nb:\n  - x\n  - {c: 'y'}\n", "f.yaml")
    assert document == Document("f.yaml", {"a": 1, "b": ["x", {"c": "y"}]})
    assert values(document) == {
        (): Position(1, 1),
        ("a",): Position(1, 4),
        ("b",): Position(3, 3),
        ("b", 0): Position(3, 5),
        ("b", 1): Position(4, 5),
        ("b", 1, "c"): Position(4, 9),
    }
    assert keys(document) == {
        ("a",): Position(1, 1),
        ("b",): Position(2, 1),
        ("b", 1, "c"): Position(4, 6),
    }


def test_what_an_alias_repeats_has_the_positions_of_its_anchor() -> None:
    (document,) = yaml_source.read("a: &x [1, {b: &y 2}]\nc:\n  d: *x\ne: *y\n", "f.yaml")
    assert document.data == {"a": [1, {"b": 2}], "c": {"d": [1, {"b": 2}]}, "e": 2}
    assert values(document) == {
        (): Position(1, 1),
        ("a",): Position(1, 4),
        ("a", 0): Position(1, 8),
        ("a", 1): Position(1, 11),
        ("a", 1, "b"): Position(1, 15),
        ("c",): Position(3, 3),
        ("c", "d"): Position(1, 4),
        ("c", "d", 0): Position(1, 8),
        ("c", "d", 1): Position(1, 11),
        ("c", "d", 1, "b"): Position(1, 15),
        ("e",): Position(1, 15),
    }
    assert keys(document) == {
        ("a",): Position(1, 1),
        ("a", 1, "b"): Position(1, 12),
        ("c",): Position(2, 1),
        ("c", "d"): Position(3, 3),
        ("c", "d", 1, "b"): Position(1, 12),
        ("e",): Position(4, 1),
    }


def test_every_use_of_an_alias_is_a_value_of_its_own() -> None:
    read = data("a: &x {b: [1]}\nc: *x")
    read["a"]["b"].append(2)
    assert read["c"] == {"b": [1]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("&k a: 1\nb: *k", {"a": 1, "b": "a"}),
        ("a: &k b\n*k : 1", {"a": "b", "b": 1}),
        ("--- &x\na: 1\n", {"a": 1}),
        ("a: [&x 1, *x, &y {b: *x}, *y]", {"a": [1, 1, {"b": 1}, {"b": 1}]}),
    ],
)
def test_keys_and_values_of_every_kind_can_have_anchors(text: str, expected: Json) -> None:
    assert data(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: 1\nb: 2\na: 3",
            "f.yaml:3:1: a: found the key again, expected it once (first in line 1)",
        ),
        (
            "x: {a: 1, a: 2}",
            "f.yaml:1:11: x.a: found the key again, expected it once (first in line 1)",
        ),
        ("1: a\n'1': b", "f.yaml:2:1: 1: found the key again, expected it once (first in line 1)"),
        ("[a]: 1", "f.yaml:1:1: found a list or a mapping as a key, expected text"),
        ("<<: {a: 1}", "f.yaml:1:1: <<: found a merge key, expected the keys themselves"),
        (
            "a: &x [*x]",
            "f.yaml:1:8: a[0]: found an alias of the value it is part of, expected a value",
        ),
        ("a: !!int x", "f.yaml:1:4: a: found 'x', expected !!int"),
        ("a: !secret x", "f.yaml:1:4: a: found the tag !secret, expected plain YAML"),
        (
            "a: !!python/object:x {}",
            "f.yaml:1:4: a: found the tag !!python/object:x, expected plain YAML",
        ),
        ("a: !!binary eA==", "f.yaml:1:4: a: found the tag !!binary, expected plain YAML"),
        ("a: [1", "f.yaml:1:6: not YAML: expected ',' or ']', but got '<stream end>'"),
        ("a:\n\tb: 1", "f.yaml:2:1: not YAML: found character '\\t' that cannot start any token"),
        ("a: *x", "f.yaml:1:4: not YAML: found undefined alias 'x'"),
        ("a: 1\nb: \x07", "f.yaml:2:4: not YAML: found the character '\\x07'"),
        (
            'a: ["x\\ud800"]',
            "f.yaml:1:5: a[0]: found text with '\\ud800', expected text that UTF-8 can hold",
        ),
        (
            'a: {"x\\udfff": 1}',
            "f.yaml:1:5: a: found a key with '\\udfff', expected text that UTF-8 can hold",
        ),
        (
            "a: " + "1" * 5000,
            "f.yaml:1:4: a: found a number with thousands of digits, expected a shorter one",
        ),
        ("[" * 102 + "]" * 102, "f.yaml:1:102: found more than 100 levels, expected fewer"),
        ("[" * 10_000, "f.yaml:1:102: found more than 100 levels, expected fewer"),
        (
            "a: &x " + "[" * 60 + "]" * 60 + "\nb: " + "[" * 60 + "*x" + "]" * 60,
            "f.yaml:2:64: found more than 100 levels, expected fewer",
        ),
        ("a: &x 1\nb: &x 2", "f.yaml:2:4: found the anchor 'x' again, expected it once"),
        ("a: &x [1]\n*x : 2", "f.yaml:2:1: found a list or a mapping as a key, expected text"),
        ("a: !!seq {}", "f.yaml:1:4: a: found the tag !!seq, expected plain YAML"),
        ("a: !!map []", "f.yaml:1:4: a: found the tag !!map, expected plain YAML"),
    ],
)
def test_ambiguous_yaml_is_refused(text: str, expected: str) -> None:
    assert message(text) == expected


@pytest.mark.parametrize("text", ['"\\UFFFFFFFF"', '"\\U00110000"', f"%YAML {'1' * 5000}.1\n--- a"])
def test_text_that_makes_pyyaml_raise_is_refused(text: str) -> None:
    assert message(text).startswith("f.yaml: not YAML: ")


def test_a_hundred_levels_are_read() -> None:
    levels = data("[" * 101 + "]" * 101)
    assert str(levels) == "[" * 101 + "]" * 101


@pytest.mark.parametrize("item", ["x", "'" + 600 * "x" + "'"])
def test_exponential_aliases_are_refused(item: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_source, "MAX_REPEATED", 5000)
    bomb = f"a0: &a0 [{', '.join([item] * 10)}]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    assert message(bomb).endswith("found aliases that repeat more than 5000 values, expected fewer")


@pytest.mark.parametrize(
    ("uses", "column"),
    [(f"[{', '.join(['*x'] * 10)}]", 21), (f"[{', '.join(['{*x : 1}'] * 10)}]", 46)],
)
def test_long_text_may_not_be_repeated_often(
    uses: str, column: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_source, "MAX_REPEATED", 5000)
    assert message(f"a: &x {'x' * 100_000}\nb: {uses}") == (
        f"f.yaml:2:{column}: found aliases that repeat more than 5000 values, expected fewer"
    )


ENVIRONMENT = {
    "HOST": "example.org",
    "PORT": "4317",
    "EMPTY": "",
    "TRICKY": "a: b\n- c",
    "DOLLAR": "$$ ${HOST}",
    "YES": "true",
    "BYTES": "x\udcff",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${env:HOST}", "example.org"),
        ("${HOST}", "example.org"),
        ("${env:HOST}:${PORT}", "example.org:4317"),
        ("${env:PORT}", 4317),
        ("'${env:PORT}'", "4317"),
        ('"${env:PORT}"', "4317"),
        ("${env:YES}", True),
        ("${env:EMPTY}", None),
        ("'${env:EMPTY}'", ""),
        ("${env:NONE:-7}", 7),
        ("'${env:NONE:-7}'", "7"),
        ("${env:NONE:-}", None),
        ("${env:NONE:-a:-b}", "a:-b"),
        ("${env:HOST:-other}", "example.org"),
        ("${env:EMPTY:-other}", None),
        ("${env:TRICKY}", "a: b\n- c"),
        ("${env:DOLLAR}", "$$ ${HOST}"),
        ("$$5", "$5"),
        ("$${env:HOST}", "${env:HOST}"),
        ("$$$${HOST}", "$${HOST}"),
        ("$$${HOST}", "$example.org"),
        ("$HOST costs $", "$HOST costs $"),
        ("|\n  ${HOST}\n", "example.org\n"),
        ("!!str ${PORT}", "4317"),
        ("!!int '${PORT}'", 4317),
    ],
)
def test_variables_are_replaced_inside_values(text: str, expected: Json) -> None:
    found = data(f"key: {text}", **ENVIRONMENT)["key"]
    assert (found, type(found)) == (expected, type(expected))


def test_keys_are_not_replaced() -> None:
    assert data("'${HOST}': 1", **ENVIRONMENT) == {"${HOST}": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${env:NONE}", "found ${env:NONE}, expected the environment variable NONE to be set"),
        (
            "${file:secret}",
            (
                "found '${file:secret}', expected ${env:NAME} or ${env:NAME:-default} ($$ is a"
                " dollar sign)"
            ),
        ),
        (
            "${1X}",
            "found '${1X}', expected ${env:NAME} or ${env:NAME:-default} ($$ is a dollar sign)",
        ),
        ("${}", "found '${}', expected ${env:NAME} or ${env:NAME:-default} ($$ is a dollar sign)"),
        ("${env:BYTES}", "found text with '\\udcff', expected text that UTF-8 can hold"),
        (
            "a ${HOST",
            "found '${', expected ${env:NAME} or ${env:NAME:-default} ($$ is a dollar sign)",
        ),
        (
            "${A:-${HOST}}",
            "found '${', expected ${env:NAME} or ${env:NAME:-default} ($$ is a dollar sign)",
        ),
    ],
)
def test_a_variable_that_cannot_be_replaced_is_an_error(text: str, expected: str) -> None:
    assert message(f"a: 1\nkey: {text}", ENVIRONMENT) == f"f.yaml:2:6: key: {expected}"


@pytest.mark.parametrize("text", ["é: {key: ${env:HOST}}", "é: [x, [${env:HOST}]]"])
def test_a_variable_without_quotes_between_brackets_is_told_that_it_needs_them(text: str) -> None:
    place = f"f.yaml:1:{text.index('{env') + 1}: not YAML: "
    hint = '; between brackets, a variable needs quotes: {key: "${env:NAME}"}'
    with_variables, without = message(text, ENVIRONMENT), message(text)
    assert with_variables.startswith(place)
    assert with_variables == without + hint


def test_without_an_environment_variables_are_not_replaced() -> None:
    (document,) = yaml_source.read("a: ${HOST}\nb: $$", "f.yaml")
    assert document.data == {"a": "${HOST}", "b": "$$"}


def test_all_problems_of_a_document_are_found() -> None:
    assert message("a: ${X}\nb: !x 1\na: 2", {}).count("\n") == 2


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_yaml_written_by_pyyaml_is_read_back(value: Json) -> None:
    text = yaml.safe_dump(
        value, default_style='"'
    )  # plain text such as 0E0 is a number in the core schema only
    (document,) = yaml_source.read(text, "f.yaml")
    assert document.data == value


@given(
    st.text(alphabet="ab:-[]{}#&*!|>'\"%@`?, \n\t$\\/U0F~<=.")
    | st.text()
    | st.binary().map(lambda raw: raw.decode("utf-8", "replace"))
)
def test_any_text_is_read_or_refused(text: str) -> None:
    for environment in (None, ENVIRONMENT):
        with suppress(ConfigError):
            assert all(
                document.file == "f.yaml"
                for document in yaml_source.read(text, "f.yaml", environment)
            )


@given(VALUES, st.sampled_from([True, False, None]), st.sampled_from([None, '"', "'"]))
def test_both_parsers_read_the_same(value: Json, flow: bool | None, style: str | None) -> None:
    text = yaml.safe_dump_all([value, value], default_flow_style=flow, default_style=style)
    read = yaml_source.read(text, "f.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_source, "FAST_PARSER", None)
        expected = yaml_source.read(text, "f.yaml")
    assert [*map(values, read)] == [*map(values, expected)]
    assert [*map(keys, read)] == [*map(keys, expected)]
    assert read == expected
