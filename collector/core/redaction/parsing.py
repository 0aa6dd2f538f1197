"""Parses objects and lists inside text, with their nesting depth and a way to encode them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

import orjson

from pathgauge.collector.core.invocations.messages.literals import literal
from pathgauge.collector.core.reading_budget import spend

MAX_LEVELS = 100
"""Text that is nested deeper, counting the texts around it, is redacted as plain text, so that
code that walks values can recurse.
"""

_OPENERS = frozenset('{["')


def parsed(text: str) -> tuple[Any, int]:
    """The value of JSON text and its nesting levels; 0 levels if the text is not an object, a list
    or a string.
    """
    spend(len(text))
    if text.lstrip()[:1] not in _OPENERS:
        return None, 0
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None, 0
    max_levels = 1 + text.count("[") + text.count("{")
    # Counting brackets is faster than walking the value, and exact enough for shallow values.
    return value, max_levels if max_levels <= MAX_LEVELS // 2 + 1 else _levels(value)


def encoded(value: Any) -> str:
    """The JSON text of a value."""
    return orjson.dumps(value).decode()


def leniently_parsed(text: str) -> tuple[Any, int, Callable[[Any], str]]:
    """Like `parsed`, for text written by Python: JSON with `NaN` or lone surrogates, and the `repr`
    of a dict or list. Slow.

    Also returns the function that encodes such text.
    """
    if text.lstrip()[:1] in _OPENERS:
        for decode, encode in ((_with_nan, json.dumps), (_literal, repr)):
            try:
                value = decode(text)
            except (ValueError, RecursionError):
                continue
            return value, _levels(value), encode
    return None, 0, encoded


def _with_nan(text: str) -> Any:
    return json.loads(text, strict=False)


def _literal(text: str) -> Any:
    return literal(text.strip())


def _levels(value: Any) -> int:
    """How deep a value is nested, counted up to `MAX_LEVELS` + 1."""
    levels, layer = 1, [value]
    while levels <= MAX_LEVELS:
        layer = [child for item in layer for child in _children(item)]
        if not layer:
            break
        levels += 1
    return levels


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    return ()
