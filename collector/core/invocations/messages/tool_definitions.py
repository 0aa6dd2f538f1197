"""Finds the JSON schemas of tool arguments in the definitions of the tools offered to a model.

A definition is a name with a schema, in the format of OpenAI, Anthropic, Bedrock, Google or MCP,
possibly inside lists, requests and objects of frameworks. Google's own schemas (`OBJECT`, `any_of`)
are converted to JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from pathgauge.collector.core.invocations.messages.values import as_id, as_object, as_text, decoded
from pathgauge.collector.core.reading_budget import spend
from pathgauge.scorers.types import Json

MAX_CHARACTERS = 262_144
"""Longer definitions are not read: they exceed the context of any model."""
MAX_TOOLS = 500

_MAX_LEVELS = 8
"""Lists and objects around a definition."""

_SCHEMA_KEYS = (
    "parameters",
    "parameters_json_schema",
    "parametersJsonSchema",
    "input_schema",
    "inputSchema",
)
_CONTAINERS = (
    *("function", "tool", "json_schema", "toolSpec", "data", "content"),
    *("tools", "function_declarations", "functionDeclarations", "function_tools", "output_tools"),
)
"""Keys that contain definitions."""


def schemas(recorded: Any) -> Mapping[str, Json]:
    """The schemas by tool name. Tools without a schema are left out.

    Agents repeat their definitions with every call, so the result is cached by text and must not be
    changed.
    """
    try:
        text = as_text(recorded) or ""
    except TypeError:  # A value decoded from a Python `repr` may have no JSON form.
        return {}
    if len(text) <= MAX_CHARACTERS:
        return _read(text)
    return {}


@lru_cache(maxsize=32)
def _read(text: str) -> Mapping[str, Json]:
    found: dict[str, Json] = {}
    for name, schema in islice(_definitions(text, _MAX_LEVELS), MAX_TOOLS):
        found.setdefault(name, schema)
    return found


def _definitions(recorded: Any, levels: int) -> Iterator[tuple[str, Json]]:
    spend()
    value = decoded(recorded)
    if not levels:
        return
    if isinstance(value, list):
        for item in value:
            yield from _definitions(item, levels - 1)
    elif isinstance(value, dict):
        name, schema = as_id(value.get("name")), _schema(value)
        if name is not None and schema:
            yield name, schema
        for key in _CONTAINERS if schema is None else ():
            if key in value:
                yield from _definitions(value[key], levels - 1)


def _schema(definition: Mapping[str, Any]) -> Mapping[str, Json] | None:
    values = (as_object(decoded(definition.get(key))) for key in _SCHEMA_KEYS)
    schema = next((value for value in values if value is not None), None)
    if schema is None:
        return None
    schema = as_object(schema.get("json")) or schema  # Bedrock wraps it.
    if _has_parameters_only(schema):
        return None
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _GOOGLE_TYPES:
        converted: Mapping[str, Json] = _from_google(schema)
        return converted
    return schema


def _has_parameters_only(schema: Mapping[str, Json]) -> bool:
    """Whether each member is the schema of a parameter, as DSPy writes them. As a schema of the
    arguments it would allow everything; which parameters are required is unknown.
    """
    if not schema or "properties" in schema:
        return False
    return all(isinstance(member, dict) for member in schema.values())


_GOOGLE_TYPES = frozenset({"OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "NULL"})
_KEYWORDS = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "ref": "$ref",
    "max_items": "maxItems",
    "max_length": "maxLength",
    "max_properties": "maxProperties",
    "min_items": "minItems",
    "min_length": "minLength",
    "min_properties": "minProperties",
}
_DROPPED = frozenset({"nullable", "property_ordering", "propertyOrdering"})


def _from_google(schema: Any) -> Any:
    """Convert one of Google's schemas, or a list of them, to JSON Schema."""
    if isinstance(schema, list):
        return [_from_google(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = ((_KEYWORDS.get(key) or key, value) for key, value in schema.items())
    converted = {word: _keyword(word, value) for word, value in renamed if word not in _DROPPED}
    kind = converted.get("type")
    if schema.get("nullable") is True and isinstance(kind, str):
        converted["type"] = [kind, "null"]
    return converted


def _keyword(word: str, value: Any) -> Any:
    if word == "type":
        if isinstance(value, str):
            return value.lower()
        return value
    if word in ("properties", "$defs") and isinstance(value, dict):
        return {name: _from_google(below) for name, below in value.items()}
    if word in ("items", "anyOf", "additionalProperties"):
        return _from_google(value)
    return value
