"""Objects and lists inside of text: text in, the value, how deep that is nested, and how it is
written again out.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Collection
from typing import Any

import orjson

from pathgauge.collector.core.invocations.messages.literals import expression

MAX_LEVELS = 100
"""Text that is nested deeper, all texts around it counted, is redacted as text, so that the walk
may recurse.
"""

_OPENERS = frozenset('{["')


def parsed(text: str) -> tuple[Any, int]:
    """The value of a JSON text and its levels; no levels where the text is not that of an object, a
    list or a text.
    """
    if text.lstrip()[:1] not in _OPENERS:
        return None, 0
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None, 0
    return value, _levels(value) if text.count("[") + text.count(
        "{"
    ) > MAX_LEVELS // 2 else 1 + text.count("[") + text.count("{")


def encoded(value: Any) -> str:
    """The JSON text of a value."""
    return orjson.dumps(value).decode()


def leniently_parsed(text: str) -> tuple[Any, int, Callable[[Any], str]]:
    """The same for what Python writes: JSON with `NaN` or lone surrogates, and the `repr` of an
    object or a list. Slow.

    The third says how such text is written.
    """
    if text.lstrip()[:1] in _OPENERS:
        for decode, encode in ((_with_nan, json.dumps), (_literal, repr)):
            try:
                value = decode(text)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue
            return value, _levels(value), encode
    return None, 0, encoded


def _with_nan(text: str) -> Any:
    return json.loads(text, strict=False)


def _literal(text: str) -> Any:
    return ast.literal_eval(expression(text.strip()))


def _levels(value: Any) -> int:
    """How deep a value is nested; looked at no deeper than anybody asks."""
    levels, layer = 1, [value]
    while levels <= MAX_LEVELS and (
        layer := [child for item in layer for child in _children(item)]
    ):
        levels += 1
    return levels


def _children(value: Any) -> Collection[Any]:
    return (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list | tuple)
        else ()
    )
