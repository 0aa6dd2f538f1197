"""Validates a part of a `Document` with a pydantic model; errors get positions and plain wording.

A validator of a single value raises `ValueError` with what it expected; "found ..." is added here.
A validator of a whole mapping words the whole message, beginning with "found ".
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pathgauge.collector.core.documents import (
    MAX_PROBLEMS,
    ConfigError,
    Document,
    KeyPath,
    Problem,
    did_you_mean,
    show_value,
)
from pathgauge.collector.core.documents.adapters import adapter

_T = TypeVar("_T")

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping",
    "string_too_short": "text that is not empty",
    "string_type": "text",
    "too_short": "at least one entry",
    "tuple_type": "a list",
}

_CHOICES = ("enum", "literal_error")
_FOLLOWS = "default_factory_not_called"
"""The type of an error that only says that another key of the same mapping has one."""


def validate(kind: type[_T], document: Document, data: Any, path: KeyPath = ()) -> _T:
    """Convert the `data` at `path` of the document to a `kind`. Raises `ConfigError` with every
    problem, up to `MAX_PROBLEMS`.
    """
    try:
        return adapter(kind).validate_python(data)
    except ValidationError as error:
        details = (one for one in error.errors(include_url=False) if one["type"] != _FOLLOWS)
        found = islice(details, MAX_PROBLEMS + 1)
        raise ConfigError(problem(one, kind, document, path) for one in found) from None


def problem(
    details: ErrorDetails,
    kind: Any,
    document: Document,
    path: KeyPath = (),
    more_keys: Iterable[str] = (),
) -> Problem:
    """A `Problem` for one error that pydantic found in the data at `path`. `more_keys` are possible
    at `path` besides those of `kind`.
    """
    place = (*path, *details["loc"])
    if details["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _keys(kind, details["loc"][:-1])
        if len(details["loc"]) == 1:
            known += more_keys
        hint = did_you_mean(str(place[-1]), known)
        text = f"found an unknown key, expected {_one_of(known)}{hint}"
        return document.problem(place, text, of_key=True)
    if details["type"] in ("missing", "missing_argument"):
        return document.problem(place, "found nothing, expected this key")
    found, expected = details["input"], _expected(details)
    if details["type"] == "value_error":
        # The input of a mapping's validator is null if the section is empty.
        is_complete = isinstance(found, dict) or expected.startswith("found ")
        if is_complete:
            return document.problem(place, expected)
    hint = did_you_mean(found, _choices(details)) if isinstance(found, str) else ""
    return document.problem(place, f"found {show_value(found)}, expected {expected}{hint}")


def _expected(details: ErrorDetails) -> str:
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    if details["type"] in _CHOICES:
        return str(details["ctx"]["expected"])
    message = details["msg"].removeprefix("Input should be ").split(", unable")[0]
    return _EXPECTED.get(details["type"], message)


def _choices(details: ErrorDetails) -> list[str]:
    if details["type"] not in _CHOICES:
        return []
    return str(details["ctx"]["expected"]).split("'")[1::2]


def _one_of(known: Iterable[str]) -> str:
    names = list(known)
    return f"one of {', '.join(names)}" if names else "no keys"


def _keys(kind: Any, loc: KeyPath) -> list[str]:
    """The keys of the model at `loc` inside `kind`."""
    for step in loc:
        kind = _inner(_model(kind), step)
    kind = _model(kind)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind) if field.init]
    return list(getattr(kind, "model_fields", ()))


def _inner(kind: Any, step: str | int) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_fields[str(step)].annotation
    arguments = (argument for argument in reversed(get_args(kind)) if argument is not Ellipsis)
    return next(arguments, None)


def _model(kind: Any) -> Any:
    """The type that knows the keys: the member of a union, or the model with all its sections."""
    if get_origin(kind) in (Union, types.UnionType):
        return next((_model(member) for member in get_args(kind) if member is not type(None)), kind)
    with_sections = getattr(kind, "with_sections", None)
    return with_sections() if with_sections is not None else kind
