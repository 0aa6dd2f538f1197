"""Finds what other packages add. A scorer's name comes in, as people write it in their configuration, and the scorer with its options
goes out; all installed dialects go out as one registry.

The name of a scorer is that of an entry point in the group `pathgauge.scorers`, or `module:Class`. Modules are imported when asked for,
since some scorers are heavy. Dialects are the entry points of the group `pathgauge.dialects`, each a `Dialect`.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from pydantic import PydanticUserError, TypeAdapter

from collector.dialects import BUILT_IN, Dialect, Registry
from collector.documents import did_you_mean
from scorers.types import Json, Scorer

SCORERS, DIALECTS = "pathgauge.scorers", "pathgauge.dialects"

_REQUIRED = ("name", "version", "low", "high", "higher_is_better", "needs_reference", "score")


_WORDS = {
    "boolean": "true | false",
    "integer": "whole number",
    "null": "null",
    "number": "number",
    "object": "mapping",
    "string": "text",
}


class PluginError(ValueError):
    """A scorer or a dialect cannot be found, imported or used. The message says which and why."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a scorer. `type` is for people, such as `true | false`; `default` is a JSON value."""

    name: str
    type: str
    default: Json = None
    required: bool = False


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


def scorer_names() -> tuple[str, ...]:
    """The names of all installed scorers, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=SCORERS)}))


def scorer_class(name: str) -> type[Scorer]:
    """The scorer called `name`, or at `module:Class`. Raises `PluginError`; errors inside the module pass through it untouched."""
    found = _import(name) if ":" in name else _load(name)
    _check(name, found)
    kind: type[Scorer] = found
    return kind


def build_scorer(kind: type[Scorer], options: Mapping[str, Json]) -> Scorer:
    """A scorer with these options. Raises `pydantic.ValidationError` for options that do not fit, unknown ones included.

    Raises `PluginError` when it is the scorer that declares options nobody can give.
    """
    return _adapter(kind).validate_python(dict(options), extra="forbid")


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


def installed_dialects() -> Registry:
    """The built-in dialects, before them those of other packages, which know their own spans best. Raises `PluginError`."""
    foreign = []
    for point in sorted(entry_points(group=DIALECTS), key=lambda point: point.name):
        found = _import(point.value)
        if not isinstance(found, Dialect):
            raise PluginError(f"{point.value!r} is not a dialect: found {type(found).__name__}, expected a collector.dialects.Dialect")
        foreign.append(found)
    return Registry((*foreign, *BUILT_IN.dialects)) if foreign else BUILT_IN


def _load(name: str) -> Any:
    points = {point.value: point for point in entry_points(group=SCORERS, name=name)}
    if not points:
        known = scorer_names()
        hint = did_you_mean(name, known) or f"; the scorers are {', '.join(known)}"
        raise PluginError(f"no scorer {name!r}{hint}")
    if len(points) > 1:
        raise PluginError(f"several installed packages have a scorer {name!r}: {', '.join(sorted(points))}")
    return _import(next(iter(points)))


def _import(reference: str) -> Any:
    module, _, attributes = reference.partition(":")
    if not module or not attributes:
        raise PluginError(f"{reference!r} is not of the form module:Class")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise PluginError(f"importing the module {module!r} failed: {error}") from error
        raise PluginError(f"no module {module!r}") from None
    except Exception as error:  # a module is foreign code: it may raise anything
        raise PluginError(f"importing the module {module!r} failed: {type(error).__name__}: {error}") from error
    for attribute in attributes.split("."):
        if not hasattr(found, attribute):
            raise PluginError(f"the module {module!r} has no {attributes!r}")
        found = getattr(found, attribute)
    return found


def _check(name: str, found: Any) -> None:
    if not (inspect.isclass(found) and dataclasses.is_dataclass(found)):
        raise PluginError(f"{name!r} is not a scorer: found {type(found).__name__}, expected a dataclass")
    missing = [attribute for attribute in _REQUIRED if not hasattr(found, attribute)]
    if missing:
        raise PluginError(f"{name!r} is not a scorer: it lacks {', '.join(missing)}")


def _adapter(kind: type[Scorer]) -> TypeAdapter[Scorer]:
    try:
        adapter = TypeAdapter(kind)
    except PydanticUserError as error:
        raise PluginError(f"the options of the scorer {kind.__qualname__} cannot be read: {error.message}") from None
    if not adapter.pydantic_complete:
        raise PluginError(f"the options of the scorer {kind.__qualname__} cannot be read: a type in its annotations is not defined")
    return adapter


def _options(kind: type[Scorer]) -> Iterator[Option]:
    schema = _adapter(kind).json_schema()
    for name, option in schema.get("properties", {}).items():
        yield Option(name, _show_type(option, schema), option.get("default"), name in schema.get("required", ()))


def _show_type(schema: Json, whole: Json) -> str:
    """A JSON schema as the catalogue shows it: the values to choose from where there are few, else a plain word."""
    if "$ref" in schema:
        return _show_type(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_show_type(member, whole) for member in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_show_type(schema.get('items', {}), whole)}"
    return _WORDS.get(schema.get("type"), "anything")
