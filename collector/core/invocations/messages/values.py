"""Decodes the values that instrumentations write: text in, Python values out, and what is not
content told apart from content.

The same attribute is a JSON string in one version and structured in the next; JSON may be encoded
twice, or be a Python `repr`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from pathgauge.collector.core.invocations.messages.literals import expression

PLACEHOLDERS = frozenset(
    {
        "<elided>",
        "<not specified>",
        "<not serializable>",
        "N/A",
        "__REDACTED__",
        "[REDACTED]",
        "<REDACTED>",
    }
)
"""What instrumentations write where content was not captured."""

REDACTED_KEY = "pathgauge.redacted"
"""The attribute by which redaction tells that it changed a span or a log record."""

UNWRITTEN = PLACEHOLDERS - {"N/A"}
"""Those that nobody writes into a message."""

_REDACTED = frozenset({"__REDACTED__", "[REDACTED]", "<REDACTED>", "<elided>"})
_MAX_DEPTH = 3
_MAX_COUNT = 2**53
"""Beyond it a float, which is what Prometheus keeps, skips numbers."""
_MAX_DIGITS = 17
_MAX_LEVELS = 200
"""Text nested deeper stays text, so that whatever walks a value may recurse; Python's own parser
draws the line here for a `repr`.
"""


class Content(NamedTuple):
    """A decoded value; `None` with a mark when the telemetry holds a cut or removed one."""

    value: Any = None
    truncated: bool = False
    redacted: bool = False


def decode(raw: Any) -> Content:
    """Decode what an attribute holds: structured values as they are, text as JSON, as Python
    `repr`, else as text.
    """
    if not isinstance(raw, str):
        return Content(raw)
    if raw in PLACEHOLDERS:
        return Content(redacted=raw in _REDACTED)
    return _decode_text(raw, 1)


def decoded(raw: Any) -> Any:
    """The decoded value alone."""
    return decode(raw).value if isinstance(raw, str) else raw


def _decode_text(text: str, depth: int) -> Content:
    if text[:1] not in _OPENERS:
        return Content(text)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Content(truncated=True) if error.pos >= len(text) else _decode_repr(text)
    if isinstance(value, str) and depth < _MAX_DEPTH:
        return _decode_text(value, depth + 1)
    return Content(text if _is_deep(text, value) else value)


_OPENERS = frozenset('{["')


def _is_deep(text: str, value: Any) -> bool:
    if text.count("[") + text.count("{") <= _MAX_LEVELS:
        return False
    level = [value]
    for _ in range(_MAX_LEVELS):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_REPR = re.compile(r"[\[{(\s]+'")
"""How the `repr` of a list or an object with text begins, and hardly anything else."""


def _decode_repr(text: str) -> Content:
    if not text.rstrip().endswith({"{": "}", "[": "]", '"': '"'}[text[0]]):
        return Content(truncated=True) if _REPR.match(text) else Content(text)
    try:
        return Content(_as_json(ast.literal_eval(expression(text))))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Content(text)


def _as_json(value: Any) -> Any:
    """A value of a `repr`, which can hold what JSON cannot: tuples as keys, sets, bytes, half
    characters. None of it may go further in.
    """
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case None | bool() | int() | float():
            return value
        case list() | tuple():
            return [_as_json(item) for item in value]
        case dict():
            return {
                _as_json(key) if isinstance(key, str) else str(key): _as_json(item)
                for key, item in value.items()
            }
        case _:
            return repr(value)


def as_text(value: Any) -> str | None:
    """A text as it is, anything else as JSON; `None` stays `None`."""
    if value is None or isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str).decode()
    except orjson.JSONEncodeError:  # an integer of more than 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def as_int(value: Any) -> int | None:
    """A count that a sender gave as int, integral float or digits; anything else, and what no
    counter could hold, is not known.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT
        else None
    )


def as_object(value: Any) -> Mapping[str, Any] | None:
    """The value when it is a JSON object."""
    return value if isinstance(value, dict) else None


def as_id(value: Any) -> str | None:
    """A name or id given as non-empty text or as a number; placeholders are no ids."""
    if value is None or isinstance(value, str):
        return None if not value or value in PLACEHOLDERS else value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
