"""Scorers by the name that a configuration gives them.

The name is that of an entry point in `pathgauge.scorers`, or `module:attribute` for a class or
function that no package registers. Functions of other tools become scorers by
`pathgauge.scorers.adapters`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator, core_schema

from pathgauge.collector.config.plugins.registry import PluginError, PluginRegistry, import_object
from pathgauge.collector.core.documents.quantities import parse_number, parse_switch
from pathgauge.scorers.adapters import functions
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.types import Json, Scorer

SCORERS: PluginRegistry[Any] = PluginRegistry("scorer", "pathgauge.scorers")

_REQUIRED = ("name", "version", "low", "high", "higher_is_better", "needs_reference", "score")
_REQUIRED_OF_JUDGES = ("model", "template", "judge")

_PARSERS: Mapping[str, Callable[[Json], Json]] = {
    "bool": parse_switch,
    "int": parse_number,
    "float": parse_number,
}
_FORMER_NAME = re.compile(
    r"scorers(\.(trajectories|responses|conduct|runs|judges|composite)[\w.]*)?:[A-Z]"
)
"""What names of our classes looked like before they moved into `pathgauge`."""
_NO_SCHEMAS = ("default", "expected", "metadata")
"""Keys of a schema whose values are not schemas."""


def scorer_class(name: str, takes: Sequence[str] = ()) -> type[Scorer]:
    """The scorer called `name`, or the class or function at `module:attribute`.

    `takes` gives what the first parameters of a function receive. Raises `PluginError`.
    """
    if ":" in name:
        found = _import_scorer(name)
    else:
        found = SCORERS.get(name)
    if inspect.isclass(found) and (hasattr(found, "score") or not hasattr(found, "evaluate")):
        _check(name, found, takes)
        return cast(type[Scorer], found)
    try:
        return functions.scorer_class(found, takes)
    except ValueError as error:
        raise PluginError(f"{name!r} cannot be a scorer: {error}") from error


def _import_scorer(name: str) -> Any:
    try:
        return import_object(name, hint="; is its folder in PYTHONPATH?")
    except PluginError as error:
        if not _FORMER_NAME.match(name):
            raise
        public = f"pathgauge:{name.rpartition(':')[2]}"
        raise PluginError(f"{error}; our own classes are imported as {public!r}") from error


def build_scorer(kind: type[Scorer], options: Mapping[str, Json]) -> Scorer:
    """A scorer with these options.

    Raises `pydantic.ValidationError` for wrong or unknown options, and `PluginError` when the
    scorer declares options of a type that pydantic cannot read, and for whatever else it raises.
    """
    validator = _validator(kind)
    try:
        scorer = cast(Scorer, validator.validate_python(dict(options), extra="forbid"))
    except (KeyboardInterrupt, ValidationError):
        raise
    except BaseException as error:  # third-party code may raise anything
        text = f"the scorer {kind.__qualname__} cannot be built: {type(error).__name__}: {error}"
        raise PluginError(text) from error
    if asks_model(scorer):
        missing = [name for name in _REQUIRED_OF_JUDGES if not hasattr(scorer, name)]
        if missing:
            text = f"the scorer {kind.__qualname__} asks a model, and lacks {', '.join(missing)}"
            raise PluginError(text)
    return scorer


@lru_cache(maxsize=256)
def _validator(kind: type[Scorer]) -> SchemaValidator:
    return SchemaValidator(_as_configured(option_adapter(kind).core_schema))


def option_adapter(kind: type[Scorer]) -> TypeAdapter[Scorer]:
    """Reads the options of a scorer. Raises `PluginError` when pydantic cannot read their types."""
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
    """The schema with strict booleans: only `true` and `false` are booleans, and no numbers."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_as_configured, schema))
    if not isinstance(schema, dict):
        return schema
    inner = {
        key: part if key in _NO_SCHEMAS else _as_configured(part) for key, part in schema.items()
    }
    kind = schema.get("type")  # a schema itself where a field has that name
    parse = _PARSERS.get(kind) if isinstance(kind, str) else None
    if parse is None:
        return inner
    return core_schema.no_info_before_validator_function(parse, cast(core_schema.CoreSchema, inner))


def _check(name: str, found: Any, takes: Sequence[str]) -> None:
    if not dataclasses.is_dataclass(found):
        raise PluginError(f"{name!r} is not a scorer: found a plain class, expected a dataclass")
    missing = [attribute for attribute in _REQUIRED if not hasattr(found, attribute)]
    if missing:
        raise PluginError(f"{name!r} is not a scorer: it lacks {', '.join(missing)}")
    for method in ("score", "score_session"):
        if inspect.iscoroutinefunction(getattr(found, method, None)):
            raise PluginError(
                f"{name!r} is not a scorer: found async def {method}, expected def: a scorer runs"
                " while traffic waits, so it must not wait"
            )
    if takes:
        raise PluginError(
            f"{name!r} is a scorer as it stands, expected a function for takes to say what it takes"
        )
