"""JSON schemas of tools: schemas and the arguments of calls come in, what is wrong with the
arguments goes out.

Schemas come from telemetry, so nobody vouches for them: no reference leaves its schema, patterns
are searched for a limited time, and the checks of an invocation have a budget, as a schema of a few
lines can ask for a billion of them.

Importing this module loads jsonschema, which takes a third of a second.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry

from pathgauge.scorers.matching import regex_budget
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.types import Json

MAX_SCHEMA = 32_768
"""Characters of a schema; a longer one is not used."""
MAX_COST = 100_000
"""What the checks of an invocation may cost; one unit takes some microseconds, a small call 5 to 50
units.
"""
MAX_PROBLEMS = 3
"""Problems of a call that are told."""
_DIGITS = 700
"""Of the quotient of the largest number and the smallest."""
_MAX_MESSAGE = 200
_COST_OF_ERROR = 2
_EXTRA_COST = {"$ref": 10, "pattern": 200}

_GEMINI = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_UNSUPPORTED = {
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
}
_QUOTED = {"const", "enum", "not", "oneOf"}
"""Keywords whose messages hold their whole value."""

Weights = Mapping[int, int]
"""By the id of each object and list, about how many characters it takes to write it."""


class Problem(NamedTuple):
    """What is wrong with arguments, and where, as in `$.rooms[0].beds`."""

    path: str
    message: str


@dataclass(frozen=True, eq=False)
class Schema:
    """A schema that can be used, as far as can be told without using it."""

    validator: Any
    weights: Weights


def read_schema(written: Json) -> Schema | str:
    """The schema, or what is wrong with it."""
    text = _text(written)
    return "found no JSON" if text is None else _read(text)


class Checker:
    """The checks of the calls of one invocation by the schemas of their tools."""

    def __init__(self, schemas: Mapping[str, Json]) -> None:
        """Schemas by the name of the tool."""
        self._written = schemas
        self._schemas: dict[str, Schema | None] = {}
        self._left = MAX_COST

    def problems(self, tool: str, arguments: Mapping[str, Json]) -> tuple[Problem, ...] | None:
        """The first problems; `None` when the tool has no schema, or one that leads nowhere or
        round in circles.

        Raises `TooLongError` when the calls of the invocation take too long to check,
        `RecursionError` for arguments nested too deep.
        """
        schema = self._schema(tool)
        return None if schema is None else self._checked(schema, dict(arguments))

    def knows(self, tool: str) -> bool:
        """Whether the tool has a schema that can be used, as far as can be told without using it.
        Raises `TooLongError`.
        """
        return self._schema(tool) is not None

    def spend(self, units: int) -> None:
        """Raises `TooLongError` when nothing is left."""
        self._left -= units
        if self._left < 0:
            raise TooLongError("checking the arguments by their schemas takes too long")

    def _schema(self, tool: str) -> Schema | None:
        if tool not in self._schemas:
            text = _text(self._written[tool]) if tool in self._written else None
            self.spend(min(len(text or ""), MAX_SCHEMA) // 2)
            schema = None if text is None else _read(text)
            self._schemas[tool] = schema if isinstance(schema, Schema) else None
        return self._schemas[tool]

    def _checked(self, schema: Schema, arguments: dict[str, Json]) -> tuple[Problem, ...] | None:
        before = _running.set(_Running(self, schema.weights, _weights(arguments)))
        try:
            return tuple(
                map(_problem, islice(schema.validator.iter_errors(arguments), MAX_PROBLEMS))
            )
        except TooLongError:
            raise
        # a reference to nowhere or to itself, or arithmetic with NaN, makes jsonschema raise
        # whatever it stumbles over
        except Exception:
            return None
        finally:
            _running.reset(before)


def _text(written: Json) -> str | None:
    try:
        return json.dumps(written)
    except (ValueError, TypeError, RecursionError):
        return None


@lru_cache(maxsize=512)
def _read(text: str) -> Schema | str:
    if len(text) > MAX_SCHEMA:
        return f"found {len(text):,} characters, expected at most {MAX_SCHEMA:,}"
    try:
        content = _alone(json.loads(text, object_pairs_hook=_prepared))
        Draft202012Validator.check_schema(content, FormatChecker(()))
        return Schema(_Validator(content, registry=Registry()), _weights(content))
    except SchemaError as error:
        return _line(f"{error.json_path}: {error.message}")
    except RecursionError:
        return "found a schema that is nested too deep"
    except (
        Exception
    ) as error:  # of `_prepared`, and whatever else a stranger's schema makes jsonschema raise
        return _line(str(error))


def _prepared(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """One object of a schema, whatever it stands for, as references may lead anywhere. Raises
    `ValueError` for what is not supported.
    """
    found = dict(pairs)
    if unsupported := sorted(_UNSUPPORTED & found.keys()):
        raise ValueError(f"{unsupported[0]} is not supported")
    if (
        isinstance(reference := found.get("$ref"), str)
        and reference != "#"
        and not reference.startswith("#/")
    ):
        raise ValueError(f"found the reference {reference[:60]!r}, expected one inside the schema")
    if isinstance(pattern := found.get("pattern"), str):
        regex_budget.compiled(pattern)
    if isinstance(found.get("$schema"), str):
        del found["$schema"]  # with it, a part of a schema would choose checks that are not ours
    return _translated(found)


def _alone(content: Json) -> Json:
    """A schema whose references all lead into itself. Raises `ValueError` when parts of it have
    addresses of their own.
    """
    whole = (
        {key: value for key, value in content.items() if key != "$id"}
        if isinstance(content, dict)
        else content
    )
    if '"$id": "' in json.dumps(whole):
        raise ValueError("$id inside a schema is not supported")
    return whole


def _translated(found: dict[str, Json]) -> dict[str, Json]:
    """Gemini's names of types, OpenAPI's `nullable` and the tuples of older drafts in the words of
    draft 2020-12.
    """
    kind = found.get("type")
    if isinstance(kind, str):
        kind = kind.lower() if kind in _GEMINI else kind
        found["type"] = [kind, "null"] if found.get("nullable") is True else kind
    if isinstance(found.get("items"), list):
        found["prefixItems"] = found.pop("items")
        if "additionalItems" in found:
            found["items"] = found.pop("additionalItems")
    return found


def _problem(error: ValidationError) -> Problem:
    return Problem(error.json_path, _line(error.message))


def _line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _MAX_MESSAGE else f"{line[: _MAX_MESSAGE - 1]}…"


def _weights(value: Json) -> Weights:
    weights: dict[int, int] = {}
    _weigh(value, weights)
    return weights


def _weigh(value: Json, weights: dict[int, int]) -> int:
    if not isinstance(value, dict | list):
        return len(value) if isinstance(value, str) else 8
    weight = 2
    for item in (
        value.values() if isinstance(value, dict) else value
    ):  # a comprehension would halve the depth that is possible
        weight += 2 + _weigh(item, weights)
    weights[id(value)] = weight + sum(map(len, value)) if isinstance(value, dict) else weight
    return weights[id(value)]


class _Running(NamedTuple):
    """The check under way."""

    checker: Checker
    schema: Weights
    arguments: Weights


_running: ContextVar[_Running] = ContextVar("_running")
"""jsonschema hands the functions of its keywords nothing of ours."""

Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


def _paid(name: str, keyword: Keyword) -> Keyword:
    """The keyword, at the price of what it has to look at, and of the errors that it makes or
    passes on.
    """
    price, quoted = 1 + _EXTRA_COST.get(name, 0), name in _QUOTED

    def check(
        validator: Any, value: Json, instance: Json, schema: Json
    ) -> Iterator[ValidationError]:
        checker, of_schema, of_arguments = _running.get()
        looked_at = (
            len(instance) if isinstance(instance, str) else of_arguments.get(id(instance), 0)
        )
        if quoted:
            looked_at += of_schema.get(id(value), 0)
        elif isinstance(value, dict | list):
            looked_at += 2 * len(value)
        checker.spend(price + looked_at // 16)
        for error in keyword(validator, value, instance, schema) or ():
            checker.spend(_COST_OF_ERROR)
            yield error

    return check


def _pattern(_: Any, pattern: str, instance: Json, schema: Json) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not regex_budget.occurs(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _unique_items(_: Any, unique: bool, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """jsonschema's own takes quadratic time."""
    if (
        unique
        and isinstance(instance, list)
        and len({canonical(item) for item in instance}) < len(instance)
    ):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _multiple_of(_: Any, factor: float, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """As people count, by whom 19.99 is a multiple of 0.01; in binary fractions it is none."""
    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    if not math.isfinite(instance):
        raise ValueError(f"found {instance!r}, of which nobody can say")
    with localcontext(prec=_DIGITS):
        left = Decimal(instance if isinstance(instance, int) else str(instance)) % Decimal(
            str(factor)
        )
    if left:
        yield ValidationError(f"{instance!r} is not a multiple of {factor!r}")


_OWN: Mapping[str, Keyword] = {
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "uniqueItems": _unique_items,
}
_KEYWORDS: Mapping[str, Keyword] = {**Draft202012Validator.VALIDATORS, **_OWN}
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {name: _paid(name, keyword) for name, keyword in _KEYWORDS.items()}
)
