"""When two tool calls are the same call: names and arguments come in, hashable values come out
whose `==` is JSON equality.

`1` equals `1.0`, `-0.0` equals `0`, NaN equals NaN, `True` is not `1`; the order of keys means
nothing, the order of lists does. Arguments that are text are read as JSON, also when they were
encoded twice; text that is no JSON object is compared as it stands. Arguments of a call are
canonical when they are

- `None`: not recorded (of a reference: any will do),
- a `frozenset` of (key, canonical value): an object, so that `<=` says "has at least these
  arguments",
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

# A tuple that holds a type equals no canonical JSON value, while bare `True` and NaN would equal
# `1` and nothing at all.
_TRUE = (bool, True)
_FALSE = (bool, False)
_NAN = (float, None)


def tool_name(name: str) -> str:
    """The name by which tools are compared: blanks around it are dropped, upper and lower case are
    kept apart.
    """
    return name.strip()


def canonical(value: Json) -> Hashable:
    """A hashable stand-in for a JSON value; two of them are equal exactly when the values are equal
    as JSON.

    What is no JSON, such as a matcher, stands for itself. Raises `RecursionError` for values nested
    some hundreds of levels deep.
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
    """Arguments of a call, ready to compare."""
    read = opened(arguments)
    return read if read is None or isinstance(read, str) else canonical_object(read)


def opened(arguments: Mapping[str, Json] | str | None) -> Mapping[str, Json] | str | None:
    """Arguments of a call, as an object if they are text that holds one."""
    return _decoded(arguments) if isinstance(arguments, str) else arguments


def canonical_object(value: Mapping[str, Json]) -> Items:
    """As `canonical`, for what is known to be an object."""
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
