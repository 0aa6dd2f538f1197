"""Describes the installed scorers for users: summary, range, direction and options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from pathgauge.collector.api.attribute_docstrings import attribute_docstrings
from pathgauge.collector.config.plugins.scorers import SCORERS, option_adapter, scorer_class
from pathgauge.scorers.types import Json, Scorer

_TYPE_NAMES = {
    "boolean": "true | false",
    "integer": "whole number",
    "null": "null",
    "number": "number",
    "object": "mapping",
    "string": "text",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a scorer."""

    name: str
    type: str
    """Readable text, such as `true | false`."""
    default: Json = None
    required: bool = False
    text: str = ""
    """The docstring of the option."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """The description of one scorer."""

    name: str
    summary: str
    options: tuple[Option, ...]
    low: float
    high: float
    higher_is_better: bool
    needs_reference: bool
    version: str


def catalogue() -> Iterator[CatalogueEntry]:
    """All installed scorers, sorted by name."""
    for name in SCORERS.names():
        yield describe(name, scorer_class(name))


def describe(name: str, kind: type[Scorer]) -> CatalogueEntry:
    """Describe one scorer."""
    return CatalogueEntry(
        name=name,
        summary=(inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " "),
        options=tuple(_options(kind)),
        low=kind.low,
        high=kind.high,
        higher_is_better=kind.higher_is_better,
        needs_reference=kind.needs_reference,
        version=kind.version,
    )


class _OptionSchema(GenerateJsonSchema):
    """Leaves the type open where JSON Schema cannot express it, instead of raising an error."""

    # pydantic declares it as a class variable of this type.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Json]:
        return {}


def _options(kind: type[Scorer]) -> Iterator[Option]:
    schema = option_adapter(kind).json_schema(schema_generator=_OptionSchema)
    declared = dataclasses.fields(kind)  # type: ignore[arg-type]
    written = {field.name: field.metadata.get("written") for field in declared}
    texts = attribute_docstrings(kind)
    for name, option in schema.get("properties", {}).items():
        yield Option(
            name,
            written[name] or _type_text(option, schema),
            option.get("default"),
            required=name in schema.get("required", ()),
            text=texts.get(name, ""),
        )


def _type_text(schema: Json, whole: Json, within: tuple[str, ...] = ()) -> str:
    """A JSON schema as readable text: the possible values, or else the name of a type.

    `whole` is the schema with the definitions, `within` the definitions being expanded.
    """
    match schema:
        case {"$ref": str(name)} if name not in within:
            definition = whole["$defs"][name.rpartition("/")[2]]
            return _type_text(definition, whole, (*within, name))
        case {"const": choice}:
            return str(choice)
        case {"enum": choices}:
            return " | ".join(map(str, choices))
        case {"anyOf": members} | {"oneOf": members} | {"allOf": members}:
            return " | ".join(
                dict.fromkeys(_type_text(member, whole, within) for member in members)
            )
        case {"type": "array", "prefixItems": items}:
            return f"list of {' and '.join(_type_text(item, whole, within) for item in items)}"
        case {"type": "array"}:
            return f"list of {_type_text(schema.get('items', {}), whole, within)}"
        case {"type": "object", "properties": properties}:
            return f"mapping of {', '.join(properties)}"
    return _TYPE_NAMES.get(schema.get("type"), "anything")
