"""Compares names and arguments of tool calls by JSON equality, with hashable canonical values.

`1` equals `1.0`, `-0.0` equals `0`, NaN equals NaN, and `True` does not equal `1`. The order of
keys does not matter, the order of lists does. Arguments given as text are parsed as JSON, also if
they were encoded twice; other text is compared unchanged. Canonical arguments are one of

- `None`: not recorded; in a reference, any arguments are accepted,
- a `frozenset` of (key, canonical value): an object; `<=` tests "has at least these arguments",
- a `str`: text that is not an object.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from typing import TypeAlias

from pathgauge.scorers.types import Json

Items: TypeAlias = frozenset[tuple[str, Hashable]]
Arguments: TypeAlias = Items | str | None

# Bare `True` would equal `1`, and NaN nothing at all. A tuple with a type equals no other canonical
# value.
_TRUE = (bool, True)
_FALSE = (bool, False)
_NAN = (float, None)


def tool_name(name: str) -> str:
    """The name by which tools are compared: without surrounding blanks, case-sensitive."""
    return name.strip()


def canonical(value: Json) -> Hashable:
    """A hashable form of a JSON value; two are equal exactly if the values are equal as JSON.

    Anything that is not JSON, such as a matcher, is returned unchanged. Raises `RecursionError` for
    values nested some hundreds of levels deep.
    """
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value
    if isinstance(value, int):
        return value
    if isinstance(value, Mapping):
        return canonical_object(value)
    if isinstance(value, list | tuple):
        return tuple([canonical(item) for item in value])
    itself: Hashable = value
    return itself


def canonical_arguments(arguments: Mapping[str, Json] | str | None) -> Arguments:
    """Arguments of a call in canonical form."""
    decoded = opened(arguments)
    if decoded is None or isinstance(decoded, str):
        return decoded
    return canonical_object(decoded)


def opened(arguments: Mapping[str, Json] | str | None) -> Mapping[str, Json] | str | None:
    """Arguments of a call; text that holds a JSON object becomes that object."""
    if not isinstance(arguments, str):
        return arguments
    return _decoded(arguments)


def canonical_object(value: Mapping[str, Json]) -> Items:
    """As `canonical`, for an object."""
    return frozenset([(key, canonical(item)) for key, item in value.items()])


def _decoded(text: str) -> Mapping[str, Json] | str:
    value: Json = text
    for _ in range(2):  # some instrumentations encode a string that already is JSON
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value)
        except ValueError:
            return text
    return value if isinstance(value, dict) else text
