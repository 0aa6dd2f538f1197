"""Validates JSON values, such as arguments, against JSON schemas that nobody vouches for.

Schemas come from telemetry, and a schema of a few lines can ask for a billion checks. So references
must stay inside the schema, pattern searches have a time limit, and all checks of one invocation
share a budget.

Importing this module loads jsonschema, which takes a third of a second.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry

from pathgauge.scorers.matching import regex_budget
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.matching.wording import cut, one_line
from pathgauge.scorers.types import Json

MAX_SCHEMA = 32_768
"""Characters of a schema; a longer one is not used."""
MAX_COST = 100_000
"""Budget of one invocation. A unit takes some microseconds; a small call costs 5 to 50 units."""
MAX_PROBLEMS = 3
"""Problems reported per call."""
_MAX_MESSAGE = 200
_CHARACTERS_PER_UNIT = 16
_ERROR_COST = 2
_EXTRA_COST = {"$ref": 10, "pattern": 200}
_QUOTED = {"const", "enum", "not", "oneOf"}
"""Keywords whose error messages quote their whole value."""

_GEMINI_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_UNSUPPORTED = {
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
}

Validator: TypeAlias = Any
"""A jsonschema validator; the classes that `extend` creates have no static type."""


class Problem(NamedTuple):
    """What is wrong with a value, and where: a path such as `$.rooms[0].beds`."""

    path: str
    message: str


def read_schema(schema: Json) -> Validator | str:
    """A validator for the schema, or the reason why the schema cannot be used. Some errors, such as
    a reference to nowhere, only show when the schema is used.
    """
    return _read(_text(schema))


class Checker:
    """Validates the values of one invocation within one budget."""

    def __init__(self, schemas: Mapping[str, Json]) -> None:
        """`schemas`: by the name of the tool."""
        self._schemas = schemas
        self._validators: dict[str, Validator | None] = {}
        self._budget = MAX_COST

    def knows(self, tool: str) -> bool:
        """Whether the tool has a schema that can be used. Raises `TooLongError`."""
        return self._validator(tool) is not None

    def problems(self, tool: str, value: Json) -> tuple[Problem, ...] | None:
        """The first problems of a value, such as the arguments of a call; `None` if the tool has no
        schema, or one that turns out to be broken, for example by a reference to itself.

        Raises `TooLongError` when the budget is used up, `RecursionError` for a value nested too
        deep.
        """
        validator = self._validator(tool)
        if validator is None:
            return None
        if isinstance(value, Mapping):
            value = dict(value)
        self.spend(_size(value) // _CHARACTERS_PER_UNIT)
        before = _spend.set(self.spend)
        try:
            errors = islice(validator.iter_errors(value), MAX_PROBLEMS)
            return tuple(Problem(error.json_path, _line(error.message)) for error in errors)
        except TooLongError:
            raise
        # A broken reference, or arithmetic with NaN, makes jsonschema raise any kind of exception.
        except Exception:
            return None
        finally:
            _spend.reset(before)

    def spend(self, units: int) -> None:
        """Raises `TooLongError` when the budget is used up."""
        self._budget -= units
        if self._budget < 0:
            raise TooLongError("checking the arguments by their schemas takes too long")

    def _validator(self, tool: str) -> Validator | None:
        if tool in self._schemas and tool not in self._validators:
            text = _text(self._schemas[tool])
            self.spend(min(len(text), MAX_SCHEMA) // 2)
            found = _read(text)
            self._validators[tool] = None if isinstance(found, str) else found
        return self._validators.get(tool)


def _text(schema: Json) -> str:
    """The schema as JSON; empty if it is none."""
    try:
        return json.dumps(schema)
    except (ValueError, TypeError, RecursionError):
        return ""


@lru_cache(maxsize=512)
def _read(text: str) -> Validator | str:
    if not text:
        return "found no JSON"
    if len(text) > MAX_SCHEMA:
        return f"found {len(text):,} characters, expected at most {MAX_SCHEMA:,}"
    try:
        schema = json.loads(text, object_pairs_hook=_prepared_object)
        if isinstance(schema, dict):
            schema.pop("$id", None)
        if '"$id": "' in json.dumps(schema):  # a parameter called "$id" has an object as its value
            raise ValueError("$id inside a schema is not supported")
        Draft202012Validator.check_schema(schema, FormatChecker(()))
        return _Validator(schema, registry=Registry())
    except SchemaError as error:
        return _line(f"{error.json_path}: {error.message}")
    except RecursionError:
        return "found a schema that is nested too deep"
    # A ValueError of ours, or any exception that jsonschema raises for a malformed schema.
    except Exception as error:
        return _line(str(error))


def _prepared_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object of a schema in draft 2020-12. Every object is checked, whatever its place in the
    schema, because a reference may lead to it. Raises `ValueError` for unsupported keywords.
    """
    found = dict(pairs)
    if unsupported := sorted(_UNSUPPORTED & found.keys()):
        raise ValueError(f"{unsupported[0]} is not supported")
    reference = found.get("$ref")
    if isinstance(reference, str) and reference != "#" and not reference.startswith("#/"):
        raise ValueError(f"found the reference {reference[:60]!r}, expected one inside the schema")
    if isinstance(pattern := found.get("pattern"), str):
        regex_budget.compiled(pattern)
    if isinstance(found.get("$schema"), str):
        del found["$schema"]  # would make jsonschema validate this part without our budget
    _translate(found)
    return found


def _translate(found: dict[str, Json]) -> None:
    """Replace Gemini's type names, OpenAPI's `nullable` and the tuples of older drafts by their
    equivalents in draft 2020-12.
    """
    kind = found.get("type")
    if isinstance(kind, str):
        if kind in _GEMINI_TYPES:
            kind = kind.lower()
        found["type"] = [kind, "null"] if found.get("nullable") is True else kind
    if isinstance(found.get("items"), list):
        found["prefixItems"] = found.pop("items")
        if "additionalItems" in found:
            found["items"] = found.pop("additionalItems")


def _line(message: str) -> str:
    return cut(one_line(message), _MAX_MESSAGE)


def _size(value: Json) -> int:
    """About how many characters it takes to write the value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        size, items = 2 + sum(map(len, value)), list(value.values())
    elif isinstance(value, list):
        size, items = 2, value
    else:
        return 8
    for item in items:  # a comprehension would use a second stack frame per level
        size += 2 + _size(item)
    return size


_spend: ContextVar[Callable[[int], None]] = ContextVar("_spend")
"""`Checker.spend` of the running check. A keyword function of jsonschema gets no context."""

Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


def _priced(name: str, keyword: Keyword) -> Keyword:
    """The keyword with a price: for the check, for the size of the values that it reads or quotes,
    and for each error that it creates or passes on.
    """
    base = 1 + _EXTRA_COST.get(name, 0)

    def check(
        validator: Any, value: Json, instance: Json, schema: Json
    ) -> Iterator[ValidationError]:
        spend = _spend.get()
        size = _size(instance)
        if name in _QUOTED:
            size += _size(value)
        elif isinstance(value, dict | list):
            size += 2 * len(value)
        spend(base + size // _CHARACTERS_PER_UNIT)
        for error in keyword(validator, value, instance, schema) or ():
            spend(_ERROR_COST)
            yield error

    return check


def _pattern(_: Any, pattern: str, instance: Json, schema: Json) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not regex_budget.occurs(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _unique_items(_: Any, unique: bool, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """In linear time; jsonschema's own implementation is quadratic."""
    if not unique or not isinstance(instance, list):
        return
    if len({canonical(item) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _multiple_of(_: Any, factor: float, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """In decimal arithmetic, where 19.99 is a multiple of 0.01; in binary floats it is not."""
    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    if not math.isfinite(instance):
        raise ValueError(f"found {instance!r}, expected a finite number")
    with localcontext(prec=700):  # digits of the quotient of the largest and the smallest float
        remainder = Decimal(str(instance)) % Decimal(str(factor))
    if remainder:
        yield ValidationError(f"{instance!r} is not a multiple of {factor!r}")


_KEYWORDS: Mapping[str, Keyword] = {
    **Draft202012Validator.VALIDATORS,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "uniqueItems": _unique_items,
}
_Validator: Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {name: _priced(name, keyword) for name, keyword in _KEYWORDS.items()}
)
