"""What is recorded of the tools that a model was offered comes in, whatever its shape; the JSON
schemas of their arguments go out.

A definition is told by a name and a schema beside it, in the words of OpenAI, Anthropic, Bedrock,
Google or MCP; lists, requests and the objects of frameworks may lie around it. Google's own schemas
(`OBJECT`, `any_of`) are put into the words of JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from pathgauge.collector.core.invocations.messages.values import as_id, as_object, as_text, decoded
from pathgauge.scorers.types import Json

MAX_CHARACTERS = 262_144
"""Longer definitions are not read: no model could be shown them."""
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
_AROUND = (
    *("function", "tool", "json_schema", "toolSpec", "data", "content"),
    *("tools", "function_declarations", "functionDeclarations", "function_tools", "output_tools"),
)
"""Keys under which definitions lie."""


def schemas(recorded: Any) -> Mapping[str, Json]:
    """The schemas by the name of the tool, without tools of whose arguments nothing is said.

    Agents say the same with every call, so equal texts have one and the same answer: it must not be
    changed.
    """
    try:
        text = as_text(recorded) or ""
    except TypeError:  # what was decoded from a Python `repr` may have no JSON form
        return {}
    return _read(text) if len(text) <= MAX_CHARACTERS else {}


@lru_cache(maxsize=32)
def _read(text: str) -> Mapping[str, Json]:
    found: dict[str, Json] = {}
    for name, schema in islice(_definitions(text, _MAX_LEVELS), MAX_TOOLS):
        found.setdefault(name, schema)
    return found


def _definitions(recorded: Any, levels: int) -> Iterator[tuple[str, Json]]:
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
        for key in _AROUND if schema is None else ():
            if key in value:
                yield from _definitions(value[key], levels - 1)


def _schema(definition: Mapping[str, Any]) -> Mapping[str, Json] | None:
    schema = next(
        (
            found
            for key in _SCHEMA_KEYS
            if (found := as_object(decoded(definition.get(key)))) is not None
        ),
        None,
    )
    if schema is None:
        return None
    schema = as_object(schema.get("json")) or schema  # Bedrock
    google = isinstance(kind := schema.get("type"), str) and kind in _GOOGLE_TYPES
    return _in_json_schema(schema) if google else schema


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


def _in_json_schema(schema: Any) -> Any:
    """A schema of Google's, or several of them, in the words of JSON Schema."""
    if isinstance(schema, list):
        return [_in_json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = ((_KEYWORDS.get(key) or key, value) for key, value in schema.items())
    written = {word: _keyword(word, value) for word, value in renamed if word not in _DROPPED}
    if schema.get("nullable") is True and isinstance(kind := written.get("type"), str):
        written["type"] = [kind, "null"]
    return written


def _keyword(word: str, value: Any) -> Any:
    if word == "type":
        return value.lower() if isinstance(value, str) else value
    if word in ("properties", "$defs"):
        return (
            {name: _in_json_schema(below) for name, below in value.items()}
            if isinstance(value, dict)
            else value
        )
    return _in_json_schema(value) if word in ("items", "anyOf", "additionalProperties") else value
