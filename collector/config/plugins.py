"""Finds what other packages add. A scorer's name comes in, as people write it in their
configuration, and the scorer with its options goes out; all installed dialects go out as one
registry.

The name of a scorer is that of an entry point in the group `pathgauge.scorers`, or
`module:attribute`: a scorer class, or a function that `pathgauge.scorers.adapters.functions` makes
one of. Modules are imported when asked for, since some scorers are heavy. Dialects are the entry
points of the group `pathgauge.dialects`, each a `Dialect`.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, cast

from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import SchemaValidator, core_schema

from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.core.documents.quantities import parse_number, parse_switch
from pathgauge.collector.core.invocations.dialects import BUILT_IN, Dialect, Registry
from pathgauge.scorers.adapters import functions
from pathgauge.scorers.types import Json, Scorer

SCORERS, DIALECTS = "pathgauge.scorers", "pathgauge.dialects"

_REQUIRED = ("name", "version", "low", "high", "higher_is_better", "needs_reference", "score")

_PARSERS: Mapping[str, Callable[[Json], Json]] = {
    "bool": parse_switch,
    "int": parse_number,
    "float": parse_number,
}
_NO_SCHEMAS = ("default", "expected", "metadata")
"""Keys of a schema that hold values of the scorer's own."""


class PluginError(ValueError):
    """A scorer or a dialect cannot be found, imported or used. The message says which and why."""


def scorer_names() -> tuple[str, ...]:
    """The names of all installed scorers, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=SCORERS)}))


def scorer_class(name: str, takes: Sequence[str] = ()) -> type[Scorer]:
    """The scorer called `name`, or at `module:attribute`. Raises `PluginError`; errors inside the
    module pass through it untouched.

    `takes` says what the parameters of a function receive.
    """
    found = _import(name, hint="; is its folder in PYTHONPATH?") if ":" in name else _load(name)
    if inspect.isclass(found) and (hasattr(found, "score") or not hasattr(found, "evaluate")):
        _check(name, found, takes)
        return cast(type[Scorer], found)
    try:
        return functions.scorer_class(found, takes)
    except ValueError as error:
        raise PluginError(f"{name!r} cannot be a scorer: {error}") from error


def build_scorer(kind: type[Scorer], options: Mapping[str, Json]) -> Scorer:
    """A scorer with these options. Raises `pydantic.ValidationError` for options that do not fit,
    unknown ones included.

    Raises `PluginError` when it is the scorer that declares options nobody can give.
    """
    schema = _as_configured(option_adapter(kind).core_schema)
    return cast(Scorer, SchemaValidator(schema).validate_python(dict(options), extra="forbid"))


def option_adapter(kind: type[Scorer]) -> TypeAdapter[Scorer]:
    """Reads the options of a scorer. Raises `PluginError` when it declares options nobody can give."""
    try:
        adapter = TypeAdapter(kind)
    except PydanticUserError as error:
        raise PluginError(
            f"the options of the scorer {kind.__qualname__} cannot be read: {error.message}"
        ) from None
    if not adapter.pydantic_complete:
        raise PluginError(
            f"the options of the scorer {kind.__qualname__} cannot be read: a type in its"
            " annotations is not defined"
        )
    return adapter


def _as_configured(schema: Any) -> Any:
    """A schema that takes nothing but `true` and `false` for a boolean, and neither of them for a
    number.
    """
    if isinstance(schema, list | tuple):
        return type(schema)(map(_as_configured, schema))
    if not isinstance(schema, dict):
        return schema
    inner = {
        key: part if key in _NO_SCHEMAS else _as_configured(part) for key, part in schema.items()
    }
    kind = schema.get("type")  # a schema itself where a field has that name
    parse = _PARSERS.get(kind) if isinstance(kind, str) else None
    return (
        core_schema.no_info_before_validator_function(parse, cast(core_schema.CoreSchema, inner))
        if parse
        else inner
    )


def installed_dialects() -> Registry:
    """The built-in dialects, before them those of other packages, which know their own spans best.
    Raises `PluginError`.
    """
    third_party = []
    for point in sorted(entry_points(group=DIALECTS), key=lambda point: point.name):
        found = _import(point.value)
        if not isinstance(found, Dialect):
            raise PluginError(
                f"{point.value!r} is not a dialect: found {type(found).__name__}, expected a"
                " pathgauge.collector.core.invocations.dialects.Dialect"
            )
        third_party.append(found)
    return Registry((*third_party, *BUILT_IN.dialects)) if third_party else BUILT_IN


def _load(name: str) -> Any:
    points = {point.value: point for point in entry_points(group=SCORERS, name=name)}
    if not points:
        known = scorer_names()
        hint = did_you_mean(name, known) or f"; the scorers are {', '.join(known)}"
        raise PluginError(f"no scorer {name!r}{hint}")
    if len(points) > 1:
        raise PluginError(
            f"several installed packages have a scorer {name!r}: {', '.join(sorted(points))}"
        )
    return _import(next(iter(points)))


def _import(reference: str, hint: str = "") -> Any:
    module, _, attributes = reference.partition(":")
    if not module or not attributes:
        raise PluginError(f"{reference!r} is not of the form module:Class")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise PluginError(f"importing the module {module!r} failed: {error}") from error
        raise PluginError(f"no module {module!r}{hint}") from None
    except Exception as error:  # a module is foreign code: it may raise anything
        raise PluginError(
            f"importing the module {module!r} failed: {type(error).__name__}: {error}"
        ) from error
    for attribute in attributes.split("."):
        if not hasattr(found, attribute):
            raise PluginError(f"the module {module!r} has no {attributes!r}")
        found = getattr(found, attribute)
    return found


def _check(name: str, found: Any, takes: Sequence[str]) -> None:
    if not dataclasses.is_dataclass(found):
        raise PluginError(
            f"{name!r} is not a scorer: found {type(found).__name__}, expected a dataclass"
        )
    missing = [attribute for attribute in _REQUIRED if not hasattr(found, attribute)]
    if missing:
        raise PluginError(f"{name!r} is not a scorer: it lacks {', '.join(missing)}")
    if takes:
        raise PluginError(
            f"{name!r} is a scorer as it stands, expected a function for takes to say what it takes"
        )
