"""The catalogue of scorers: the installed scorers come in, what a person needs to know of each to
use it goes out.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from pathgauge.collector.config.plugins import option_adapter, scorer_class, scorer_names
from pathgauge.scorers.types import Json, Scorer

_WORDS = {
    "boolean": "true | false",
    "integer": "whole number",
    "null": "null",
    "number": "number",
    "object": "mapping",
    "string": "text",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a scorer. `type` is for people, such as `true | false`; `default` is a JSON
    value.
    """

    name: str
    type: str
    default: Json = None
    required: bool = False
    text: str = ""
    """What it means, as its docstring says."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """What a person needs to know of a scorer to use it."""

    name: str
    summary: str
    options: tuple[Option, ...]
    low: float
    high: float
    higher_is_better: bool
    needs_reference: bool
    version: str


def catalogue() -> Iterator[CatalogueEntry]:
    """All installed scorers, in the order of their names."""
    for name in scorer_names():
        yield describe(name, scorer_class(name))


def describe(name: str, kind: type[Scorer]) -> CatalogueEntry:
    """The catalogue entry of one scorer."""
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
    """JSON schemas that leave open what JSON cannot say, instead of failing."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as pydantic declares it

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Json]:
        return {}


def _options(kind: type[Scorer]) -> Iterator[Option]:
    schema = option_adapter(kind).json_schema(schema_generator=_OptionSchema)
    written = {field.name: field.metadata.get("written") for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    texts = _attribute_docstrings(kind)
    for name, option in schema.get("properties", {}).items():
        shown, required = (
            written[name] or _show_type(option, schema),
            name in schema.get("required", ()),
        )
        yield Option(name, shown, option.get("default"), required, texts.get(name, ""))


def _attribute_docstrings(kind: type[Scorer]) -> Mapping[str, str]:
    """The texts below the fields of a class, which Python itself forgets; none where there is no
    source.
    """
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        try:
            tree = ast.parse(dedent(inspect.getsource(owner)))
        except (OSError, TypeError):
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for field, below in pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
            ):
                texts[field.target.id] = " ".join(
                    inspect.cleandoc(ast.literal_eval(below.value)).split()
                )
    return texts


def _show_type(schema: Json, whole: Json, within: tuple[str, ...] = ()) -> str:
    """A JSON schema as the catalogue shows it: the values to choose from where there are few, else
    a plain word.
    """
    match schema:
        case {"$ref": str(name)}:
            return (
                "anything"
                if name in within
                else _show_type(whole["$defs"][name.rpartition("/")[2]], whole, (*within, name))
            )
        case {"const": choice}:
            return str(choice)
        case {"enum": choices}:
            return " | ".join(map(str, choices))
        case {"anyOf": members} | {"oneOf": members} | {"allOf": members}:
            return " | ".join(
                dict.fromkeys(_show_type(member, whole, within) for member in members)
            )
        case {"type": "array", "prefixItems": items}:
            return f"list of {' and '.join(_show_type(item, whole, within) for item in items)}"
        case {"type": "array"}:
            return f"list of {_show_type(schema.get('items', {}), whole, within)}"
        case {"type": "object", "properties": properties}:
            return f"mapping of {', '.join(properties)}"
    return _WORDS.get(schema.get("type"), "anything")
