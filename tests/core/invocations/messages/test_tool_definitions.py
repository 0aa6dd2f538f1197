"""Tool definitions in every format of the instrumentations, and values that are no definitions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.invocations.messages.tool_definitions import (
    MAX_CHARACTERS,
    MAX_TOOLS,
    schemas,
)

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TEXT = json.dumps(CITY)

SHAPES: dict[str, Any] = {
    "conventions": [{"type": "function", "name": "look", "description": "d", "parameters": CITY}],
    "OpenAI": [
        {"type": "function", "function": {"name": "look", "parameters": CITY, "strict": True}}
    ],
    "Anthropic": [{"name": "look", "description": "d", "input_schema": CITY}],
    "Bedrock": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": CITY}}}]},
    "MCP": {"tools": [{"name": "look", "inputSchema": CITY}]},
    "AI SDK": [json.dumps({"type": "function", "name": "look", "inputSchema": CITY})],
    "Google": [{"function_declarations": [{"name": "look", "parameters_json_schema": CITY}]}],
    "Google's REST API": [
        {"functionDeclarations": [{"name": "look", "parametersJsonSchema": CITY}]}
    ],
    "pydantic-ai": {
        "function_tools": [{"name": "look", "parameters_json_schema": CITY, "kind": "function"}],
        "allow_text_output": True,
    },
    "pydantic-ai's output": {
        "function_tools": [],
        "output_tools": [{"name": "look", "parameters_json_schema": CITY}],
    },
    "Haystack": [
        {
            "type": "haystack.tools.tool.Tool",
            "data": {"name": "look", "parameters": CITY, "function": "f"},
        }
    ],
    "Haystack's toolset": {
        "type": "haystack.tools.toolset.Toolset",
        "data": {"tools": [{"data": {"name": "look", "parameters": CITY}}]},
    },
    "OpenInference": [
        {
            "tool": {
                "json_schema": json.dumps(
                    {"type": "function", "function": {"name": "look", "parameters": CITY}}
                )
            }
        }
    ],
    "OpenLLMetry": [{"name": "look", "description": "d", "parameters": TEXT}],
    "Langfuse": [
        {
            "role": "tool",
            "content": {"type": "function", "function": {"name": "look", "parameters": CITY}},
        }
    ],
    "one alone": {"name": "look", "parameters": CITY},
}


@pytest.mark.parametrize(
    "encode", [lambda value: value, json.dumps, lambda value: json.dumps(json.dumps(value)), repr]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_definition(shape: str, encode: Any) -> None:
    assert schemas(encode(SHAPES[shape])) == {"look": CITY}


def test_all_tools_are_read_the_first_of_a_name_counts() -> None:
    other = {"type": "object", "properties": {}}
    tools = [
        {"name": "a", "parameters": CITY},
        {"name": "b", "parameters": other},
        {"name": "a", "parameters": other},
    ]
    assert schemas(tools) == {"a": CITY, "b": other}


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        "",
        "<elided>",
        "look",
        7,
        b"look",
        [],
        {},
        [None, 1, "x", []],
        [{"name": "look", "type": "function"}],
        [{"name": "look", "parameters": None}],
        [{"name": "look", "parameters": {}}],
        [{"name": "look", "parameters": "a city"}],
        [{"name": "", "parameters": CITY}],
        [{"name": ["look"], "parameters": CITY}],
        [{"parameters": CITY}],
        json.dumps([{"name": "look", "parameters": CITY}])[:-5],
        [{"name": "\ud800", "parameters": CITY}],
        [[[[[[[[[[{"name": "too deep", "parameters": CITY}]]]]]]]]]],
    ],
)
def test_what_says_nothing_of_arguments_is_not_known(recorded: Any) -> None:
    assert schemas(recorded) == {}


def test_googles_schemas_become_json_schemas() -> None:
    google = {
        "type": "OBJECT",
        "property_ordering": ["city", "days"],
        "required": ["city"],
        "properties": {
            "city": {
                "type": "STRING",
                "enum": ["PARIS", "ROME"],
                "min_length": 1,
                "nullable": True,
            },
            "days": {
                "type": "ARRAY",
                "items": {"any_of": [{"type": "INTEGER"}, {"type": "NULL"}]},
                "min_items": 1,
                "maxItems": 7,
            },
            "type": {
                "type": "OBJECT",
                "properties": {"type": {"type": "BOOLEAN"}},
                "additional_properties": {"type": "NUMBER"},
            },
        },
    }
    assert schemas([{"function_declarations": [{"name": "look", "parameters": google}]}]) == {
        "look": {
            "type": "object",
            "required": ["city"],
            "properties": {
                "city": {"type": ["string", "null"], "enum": ["PARIS", "ROME"], "minLength": 1},
                "days": {
                    "type": "array",
                    "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "minItems": 1,
                    "maxItems": 7,
                },
                "type": {
                    "type": "object",
                    "properties": {"type": {"type": "boolean"}},
                    "additionalProperties": {"type": "number"},
                },
            },
        }
    }


def test_other_schemas_stay_as_they_are() -> None:
    odd = {
        "type": ["object"],
        "properties": {"kind": {"type": "string", "nullable": True, "const": "OBJECT"}},
        "any_of": 1,
    }
    assert schemas([{"name": "look", "parameters": odd}]) == {"look": odd}


def test_no_more_is_read_than_a_model_could_use() -> None:
    many = [{"name": f"tool{n}", "parameters": CITY} for n in range(MAX_TOOLS + 1)]
    assert list(schemas(many)) == [f"tool{n}" for n in range(MAX_TOOLS)]
    long = [{"name": "look", "description": "x" * MAX_CHARACTERS, "parameters": CITY}]
    assert schemas(long) == schemas(json.dumps(long)) == {}


def test_equal_texts_are_read_once() -> None:
    [first, second] = [
        schemas(json.dumps([{"name": "look", "parameters": CITY}])) for _ in range(2)
    ]
    assert first["look"] is second["look"]
    assert (
        schemas([{"parameters": CITY, "name": "see"}])["see"]
        is schemas([{"parameters": dict(CITY), "name": "see"}])["see"]
    )


WORDS = [
    "name",
    "look",
    "parameters",
    "type",
    "OBJECT",
    "properties",
    "items",
    "function",
    "tools",
    "json",
    "nullable",
    "anyOf",
    "any_of",
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=3)
    | st.sampled_from(WORDS)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(VALUES | VALUES.map(repr) | VALUES.map(lambda value: json.dumps(value, default=str)))
def test_no_value_makes_it_raise(recorded: Any) -> None:
    assert all(
        isinstance(name, str) and name and isinstance(schema, dict)
        for name, schema in schemas(recorded).items()
    )


def test_schemas_of_any_depth_do_not_make_it_raise() -> None:
    schema: dict[str, Any] = {"type": "STRING"}
    for _ in range(120):
        schema = {"type": "ARRAY", "items": schema}
    for deep in (schema, {"type": "OBJECT", "properties": {"x": {"items": [schema]}}}):
        for recorded in (
            [{"name": "look", "parameters": deep}],
            json.dumps([{"name": "look", "parameters": deep}]),
        ):
            assert schemas(recorded).keys() <= {"look"}


def test_parameters_without_a_schema_around_them_are_no_schema() -> None:
    by_name = {"id": {"type": "string"}, "amount": {"type": "number"}}
    assert schemas([{"name": "refund", "parameters": by_name}]) == {}
    whole = {"properties": by_name}
    assert schemas([{"name": "refund", "parameters": whole}]) == {"refund": whole}
