"""Checks of arguments by untrusted JSON schemas: the results of jsonschema, within a budget."""

from itertools import islice
from time import process_time
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator

from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.tool_use.argument_schemas import (
    MAX_PROBLEMS,
    MAX_SCHEMA,
    Checker,
    Problem,
    read_schema,
)
from pathgauge.scorers.types import Json
from support.examples import examples

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "maximum": 50},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def problems(schema: Json, **arguments: Json) -> tuple[Problem, ...] | None:
    return Checker({"tool": schema}).problems("tool", arguments)


def property_x(schema: Json) -> Json:
    return {"properties": {"x": schema}}


NUMBERS = st.sampled_from([0, 1, 2, 1.0, 2.5, -1])
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "ab", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def schemas(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    several, named = (
        st.lists(inner, min_size=1, max_size=2),
        st.dictionaries(st.sampled_from("abx"), inner, max_size=2),
    )
    few = st.integers(0, 2)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
        "enum": st.lists(JSON, min_size=1, max_size=3),
        "const": JSON,
        "properties": named,
        "required": st.lists(st.sampled_from("abx"), max_size=2, unique=True),
        "additionalProperties": inner,
        "propertyNames": inner,
        "minProperties": few,
        "maxProperties": few,
        "dependentRequired": st.dictionaries(
            st.sampled_from("abx"), st.lists(st.sampled_from("abx"), max_size=1), max_size=1
        ),
        "dependentSchemas": named,
        "items": inner,
        "prefixItems": several,
        "contains": inner,
        "minContains": few,
        "maxContains": few,
        "minItems": few,
        "maxItems": few,
        "uniqueItems": st.booleans(),
        "minLength": few,
        "maxLength": few,
        "pattern": st.sampled_from(["a", "^a", "b$", "[0-9]"]),
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "exclusiveMinimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b"]),
    }
    return st.sets(st.sampled_from(sorted(keywords)), max_size=3).flatmap(
        lambda chosen: st.fixed_dictionaries({keyword: keywords[keyword] for keyword in chosen})
    )


SCHEMAS: st.SearchStrategy[Json] = st.recursive(
    st.booleans() | st.builds(dict), schemas, max_leaves=6
)


@settings(deadline=None, max_examples=examples(80))
@given(
    schemas(SCHEMAS),
    st.fixed_dictionaries({"a": SCHEMAS, "b": st.booleans()}),
    st.dictionaries(st.sampled_from("abx"), JSON, max_size=3),
)
def test_arguments_are_valid_when_jsonschema_says_so(
    schema: dict[str, Json], definitions: Json, arguments: dict[str, Json]
) -> None:
    whole = {**schema, "$defs": definitions}
    try:
        valid = Draft202012Validator(whole).is_valid(arguments)
    except RecursionError:
        assert problems(whole, **arguments) is None
    else:
        assert (problems(whole, **arguments) == ()) == valid


def test_problems_say_where_and_what() -> None:
    assert problems(SEARCH, query="tea") == ()
    assert problems(SEARCH, query="", limit=2.5, pages=1) == (
        Problem("$.query", "'' should be non-empty"),
        Problem("$.limit", "2.5 is not of type 'integer'"),
        Problem("$", "Additional properties are not allowed ('pages' was unexpected)"),
    )
    assert problems(
        {"properties": {"rooms": {"items": {"required": ["beds"]}}}}, rooms=[{"beds": 1}, {}]
    ) == (Problem("$.rooms[1]", "'beds' is a required property"),)


def test_few_problems_per_call_are_reported_each_on_one_short_line() -> None:
    found = problems(property_x({"items": {"type": "integer"}}), x=["line\n" * 100] * 9)
    assert found is not None
    assert len(found) == MAX_PROBLEMS
    assert all(
        len(message) == 200 and message.endswith("…") and len(message.splitlines()) == 1
        for _, message in found
    )


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        ({"type": "integer"}, 1.0, True),
        ({"type": "integer"}, True, False),
        ({"const": 1}, True, False),
        ({"enum": [1]}, 1.0, True),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], True),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], False),
        ({"uniqueItems": False}, [1, 1], True),
        ({"uniqueItems": True}, "aa", True),
        ({"pattern": "^a+$"}, "aa", True),
        ({"pattern": "^a+$"}, "ab", False),
        ({"pattern": "^a+$"}, 1, True),
        ({"multipleOf": 0.01}, 19.99, True),
        ({"multipleOf": 0.1}, 0.3, True),
        ({"multipleOf": 0.01}, 19.995, False),
        ({"multipleOf": 3}, 9.0, True),
        ({"multipleOf": 3}, 10**400, False),
        ({"multipleOf": 5e-324}, 1.7e308, True),
        ({"multipleOf": 2}, True, True),
        ({"multipleOf": 2}, "3", True),
        ({"format": "date"}, "no date", True),
        ({"type": "STRING"}, "a", True),
        ({"type": "STRING"}, 1, False),
        ({"type": "ARRAY", "items": {"type": "INTEGER"}}, ["a"], False),
        ({"type": "STRING", "nullable": True}, None, True),
        ({"type": "string", "nullable": False}, None, False),
        ({"type": "string", "nullable": True}, 1, False),
        ({"type": "string", "nullable": "false"}, None, False),
        ({"items": [{"type": "string"}]}, ["a", 1], True),
        ({"items": [{"type": "string"}]}, [1], False),
        ({"items": [{"type": "string"}], "additionalItems": False}, ["a", 1], False),
        ({"items": [{}], "additionalItems": {"type": "null"}}, ["a", None], True),
        (True, 1, True),
        (False, 1, False),
    ],
)
def test_schemas_of_this_draft_of_older_drafts_and_of_gemini(
    schema: Json, value: Json, valid: bool
) -> None:
    assert (problems(property_x(schema), x=value) == ()) == valid


def test_references_inside_the_schema_are_followed() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {"properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}
        },
    }
    assert problems(tree, value=1, next={"value": 2, "next": {}}) == ()
    assert problems(tree, value=1, next={"value": "2"}) == (
        Problem("$.next.value", "'2' is not of type 'integer'"),
    )
    assert (
        problems({"$id": "https://example.com/a", "properties": {"x": {"$ref": "#"}}}, x={"x": {}})
        == ()
    )


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("object", "is not of type 'object'"),
        (None, "is not of type 'object'"),
        (["object"], "is not of type 'object'"),
        ({"type": "text"}, "'text' is not"),
        ({"required": "query"}, "'query' is not of type 'array'"),
        ({"properties": {"x": 5}}, "5 is not of type"),
        (
            {"properties": {"x": {"minLength": -1}}},
            "$.properties.x.minLength: -1 is less than the minimum of 0",
        ),
        ({"exclusiveMinimum": True}, "True is not of type 'number'"),
        (
            {"$ref": "https://example.com/schema.json"},
            "found the reference 'https://example.com/schema.json', expected one inside the schema",
        ),
        (
            {"$defs": {"a": {"$ref": "other.json#/a"}}},
            "found the reference 'other.json#/a', expected one inside the schema",
        ),
        ({"$ref": "#anchor"}, "found the reference '#anchor', expected one inside the schema"),
        ({"pattern": "("}, "found '(', expected a pattern: "),
        ({"properties": {"x": {"pattern": "(?:a{1000}){1000}"}}}, "at most 10,000 elements"),
        ({"patternProperties": {"a": {}}}, "patternProperties is not supported"),
        (
            {"$defs": {"a": {"$id": "https://example.com/a"}}},
            "$id inside a schema is not supported",
        ),
        ({"unevaluatedProperties": False}, "unevaluatedProperties is not supported"),
        ({"default": {"items": {"$dynamicRef": "#a"}}}, "$dynamicRef is not supported"),
        ({"description": "d" * MAX_SCHEMA}, "characters, expected at most 32,768"),
        ({"const": {1, 2}}, "found no JSON"),
    ],
)
def test_an_unusable_schema_counts_as_none(schema: Json, reason: str) -> None:
    found = read_schema(schema)
    assert isinstance(found, str)
    assert reason in found
    assert len(found.splitlines()) == 1
    assert problems(schema, x=1) is None
    assert not Checker({"tool": schema}).knows("tool")


def test_a_tool_without_schema_is_not_known() -> None:
    checker = Checker({"search": SEARCH})
    assert (checker.knows("search"), checker.knows("Search"), checker.problems("Search", {})) == (
        True,
        False,
        None,
    )


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#/$defs/nowhere"}, 1),
        ({"$ref": "#/properties/x"}, 1),
        ({"allOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]}, 1),
        ({"$ref": "#/properties/x/default", "default": 5}, 1),
        ({"multipleOf": 0.5}, float("nan")),
        ({"multipleOf": 0.5}, float("inf")),
    ],
)
def test_a_schema_that_breaks_in_use_counts_as_none(schema: Json, value: Json) -> None:
    assert not isinstance(read_schema(property_x(schema)), str)
    assert problems(property_x(schema), x=value) is None


def test_a_part_of_a_schema_cannot_choose_other_checks() -> None:
    explosive = {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a|a)*$"}
    for schema in (
        property_x(explosive),
        {"default": explosive, **property_x({"$ref": "#/default"})},
    ):
        with pytest.raises(TooLongError, match="takes too long"):
            problems(schema, x="a" * 60 + "!")


def nested(depth: int) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_too_deep_refuses_schemas_and_raises_recursion_errors_for_arguments() -> None:
    deep: Json = {}
    for _ in range(2000):
        deep = {"not": deep}
    assert isinstance(read_schema(deep), str)
    with pytest.raises(RecursionError):
        problems({}, x=nested(5000))
    assert (
        problems(
            property_x({"$ref": "#/$defs/list", "$defs": {}})
            | {"$defs": {"list": {"items": {"$ref": "#/$defs/list"}}}},
            x=nested(500),
        )
        is None
    )


DOUBLING = {
    f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]}
    for i in range(40)
}
COSTLY: list[tuple[Json, Json]] = [
    ({"$ref": "#/$defs/d0"}, 1),
    ({"anyOf": [{"type": "string"}] * 1000}, list(range(20_000))),
    ({"anyOf": [{"type": "object"}] * 1000}, "a" * 200_000),
    ({"items": {"not": {"enum": list(range(5_000))}}}, [-1] * 20_000),
    ({"items": {"pattern": "^a*$"}}, ["a"] * 20_000),
    ({"items": {"anyOf": [{"not": {"enum": ["a" * 20_000, 1]}}, {}]}}, [1] * 20_000),
    ({"items": {"anyOf": [{"required": [f"r{i}" for i in range(2_000)]}, {}]}}, [{}] * 20_000),
]


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "value"), COSTLY, ids=range(len(COSTLY)))
def test_checks_that_would_take_long_exceed_the_budget(schema: Json, value: Json) -> None:
    start = process_time()
    with pytest.raises(TooLongError, match="takes too long"):
        problems({**property_x(schema), "$defs": {**DOUBLING, "d40": {"type": "string"}}}, x=value)
    assert process_time() - start < 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "calls"),
    [
        ({"$ref": "#/$defs/text", "$defs": {"text": {}}}, 9_200),
        ({"not": {"const": "a" * 16_000}}, 100),
        ({"anyOf": [{"enum": ["a" * 16_000]}, {}]}, 100),
        ({"properties": {f"p{i}": {} for i in range(1_600)}}, 500),
    ],
)
def test_calls_cost_as_much_as_the_checks_they_cause(schema: Json, calls: int) -> None:
    checker = Checker({"tool": schema})
    with pytest.raises(TooLongError):
        [checker.problems("tool", {}) for _ in range(calls)]


def test_unique_items_are_checked_in_linear_time() -> None:
    start = process_time()
    assert problems(property_x({"uniqueItems": True}), x=[{"a": i} for i in range(20_000)]) == ()
    assert process_time() - start < 1


def test_all_calls_of_an_invocation_share_the_budget() -> None:
    checker = Checker({"search": SEARCH})
    calls = (checker.problems("search", {"query": "tea", "limit": 10}) for _ in range(20_000))
    assert set(islice(calls, 2_000)) == {()}
    with pytest.raises(TooLongError):
        set(calls)


@pytest.mark.parametrize("kind", ["object", "broken"])
def test_reading_schemas_counts_as_well(kind: str) -> None:
    checker = Checker(
        {f"tool{i}": {"type": kind, "description": f"{i}" + "d" * 30_000} for i in range(10)}
    )
    with pytest.raises(TooLongError):
        [checker.knows(f"tool{i}") for i in range(10)]


def test_any_mapping_is_an_object() -> None:
    assert Checker({"search": SEARCH}).problems("search", MappingProxyType({"query": "tea"})) == ()


def test_a_parameter_may_be_called_as_a_keyword() -> None:
    schema = {
        "properties": {
            "$id": {"type": "string"},
            "$schema": {"type": "STRING"},
            "pattern": {},
            "type": {"type": "string"},
        }
    }
    assert problems(schema, **{"$id": "a", "$schema": "b", "pattern": "(", "type": "STRING"}) == ()
    assert problems(schema, **{"$id": 1}) == (Problem("$['$id']", "1 is not of type 'string'"),)


def test_schemas_and_arguments_are_left_as_they_were() -> None:
    schema = {
        "$schema": "x",
        "type": "OBJECT",
        "nullable": True,
        "items": [{}],
        "additionalItems": False,
    }
    copy, arguments = dict(schema), {"x": [1]}
    assert problems(schema, **arguments) == ()
    assert (schema, arguments) == (copy, {"x": [1]})
