"""Reads the `repr` of plain data as JSON, which takes a fifth of the time of reading it as a
literal.

Quotes and constants are written as JSON has them; what the parser of JSON refuses then is no plain
data: tuples, sets, bytes, keys that are no text. Whatever might have another value in JSON is
refused, too, such as integers of more than 64 bits.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from pathgauge.collector.core.invocations.messages.literal_tokens import string_value
from pathgauge.collector.core.invocations.messages.literals import (
    MAX_LEVELS,
    MAX_LITERAL_CHARACTERS,
)
from pathgauge.collector.core.invocations.messages.nesting import is_deeper

_TOKEN = re.compile(
    r"(?P<plain>'[^'\"\\\x00-\x1f]*+')"
    r"|(?P<escaped>'(?>(?:[^'\\\n\r]++|\\.)*)'|\"(?>(?:[^\"\\\n\r]++|\\.)*)\")"
    r"|(?P<word>[^\W\d]\w*+)|(?P<large>[0-9_]{17,})",
    re.DOTALL,
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}


def plain_literal(text: str) -> Any:
    """The value of lists, dicts, text, numbers, booleans and `None`. Raises `ValueError` for
    anything else.
    """
    if len(text) > MAX_LITERAL_CHARACTERS:
        raise ValueError("found a long text")
    if "'''" in text or '"""' in text:
        raise ValueError("found a string in triple quotes")
    value = orjson.loads(_TOKEN.sub(_as_json, text))
    if is_deeper(text, value, MAX_LEVELS - 1):
        raise ValueError("found a deep text")
    return value


def _as_json(match: re.Match[str]) -> str:
    token = match[0]
    match match.lastgroup:
        case "plain":
            return f'"{token[1:-1]}"'
        case "escaped":
            return json.dumps(string_value(token))
        case "word" if token in _CONSTANTS:
            return _CONSTANTS[token]
    raise ValueError("found a name or a large number")
