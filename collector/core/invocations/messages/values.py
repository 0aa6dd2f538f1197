"""Decodes the values that instrumentations write, and recognises placeholders for missing content.

The same attribute is a JSON string in one version and structured in the next. JSON may be encoded
twice, or be a Python `repr`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from pathgauge.collector.core.invocations.messages.literals import MAX_LEVELS, literal
from pathgauge.collector.core.invocations.messages.nesting import is_deeper
from pathgauge.collector.core.invocations.messages.plain_literals import plain_literal
from pathgauge.collector.core.reading_budget import spend

PLACEHOLDERS = frozenset(
    {
        "<elided>",
        "<not specified>",
        "<not serializable>",
        "N/A",
        "__REDACTED__",
        "[REDACTED]",
        "[redacted]",
        "<REDACTED>",
        "redacted-by-litellm",
    }
)
"""What instrumentations write if content was not captured."""

REDACTED_KEY = "pathgauge.redacted"
"""The attribute that redaction adds to a span or log record that it changed."""

REDACTION_MARKS = frozenset({REDACTED_KEY, "logfire.scrubbed"})
"""Attributes of spans and log records of which something was removed, here or by their sender."""

UNWRITTEN = PLACEHOLDERS - {"N/A"}
"""The placeholders that nobody writes as the text of a message."""

EMPTY: tuple[Any, ...] = ("", '""', "[]", [])
"""An output that is recorded and has no content."""

_REDACTED = frozenset(
    {"__REDACTED__", "[REDACTED]", "[redacted]", "<REDACTED>", "<elided>", "redacted-by-litellm"}
)
_MAX_DEPTH = 3
_MAX_COUNT = 2**53
"""Prometheus stores floats, which cannot represent every larger integer."""
_MAX_DIGITS = 17


class Content(NamedTuple):
    """A decoded value; `None` with a flag if it was truncated or removed."""

    value: Any = None
    truncated: bool = False
    redacted: bool = False


def decode(raw: Any) -> Content:
    """Decode the value of an attribute: text as JSON, otherwise as Python `repr`, otherwise it
    stays text. Structured values are returned unchanged.
    """
    if not isinstance(raw, str):
        return Content(raw)
    if raw in PLACEHOLDERS:
        return Content(redacted=raw in _REDACTED)
    spend(len(raw))
    return _decode_text(raw, 1)


def decoded(raw: Any) -> Any:
    """The decoded value alone."""
    if isinstance(raw, str):
        return decode(raw).value
    return raw


def _decode_text(text: str, depth: int) -> Content:
    if text[:1] not in _OPENERS:
        return Content(text)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if error.pos >= len(text):
            return Content(truncated=True)
        return _decode_repr(text)
    if isinstance(value, str) and value in _REDACTED:
        return Content(redacted=True)
    if isinstance(value, str) and depth < _MAX_DEPTH:
        return _decode_text(value, depth + 1)
    return Content(text if is_deeper(text, value, MAX_LEVELS) else value)


_OPENERS = frozenset('{["')


_REPR = re.compile(r"[\[{(\s]+'")
"""The start of the `repr` of a list or dict with text, and of hardly anything else."""


_REMARK = re.compile(r"(?:[.…]|[(<\[])\s*truncated\b[^\n]*\Z", re.IGNORECASE)
"""What senders write behind a value that they cut off, such as `... [truncated]`."""
_MAX_REMARK = 80
_STARTS = ('{"', '["', "[{")


def _decode_repr(text: str) -> Content:
    if text.startswith(_STARTS) and _REMARK.search(text, max(len(text) - _MAX_REMARK, 1)):
        return Content(truncated=True)
    if not text.rstrip().endswith({"{": "}", "[": "]", '"': '"'}[text[0]]):
        if _REPR.match(text):
            return Content(truncated=True)
        return Content(text)
    try:
        return Content(_read_literal(text))
    except ValueError:
        return Content(text)


def _read_literal(text: str) -> Any:
    try:
        return plain_literal(text)
    except ValueError:
        return _as_json(literal(text))


def _as_json(value: Any) -> Any:
    """Convert what JSON cannot represent: tuples as keys, sets, bytes, lone surrogates."""
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
    """Text unchanged, other values as JSON; `None` stays `None`."""
    if value is None or isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str).decode()
    except orjson.JSONEncodeError:  # An integer of more than 64 bits.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def as_int(value: Any) -> int | None:
    """A count, given as int, integral float or digits; `None` for other values and counts of
    `_MAX_COUNT` or more.
    """
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if 0 <= value < _MAX_COUNT:
        return value
    return None


def as_object(value: Any) -> Mapping[str, Any] | None:
    """The value if it is a JSON object, otherwise `None`."""
    if isinstance(value, dict):
        return value
    return None


def as_id(value: Any) -> str | None:
    """A name or id, given as non-empty text or as an integer; `None` for placeholders."""
    if value is None or isinstance(value, str):
        if not value or value in PLACEHOLDERS:
            return None
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None
