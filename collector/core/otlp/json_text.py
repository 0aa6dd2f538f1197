"""Parses the JSON that senders write, some of which is not quite JSON."""

from __future__ import annotations

import re
from typing import Any

import orjson

_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*+)"  # an even number of backslashes
    rb"\\u(?:(d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|d[89a-f][0-9a-f]{2})",
    re.IGNORECASE,
)
"""The escape of a surrogate pair (group 2) or of a lone surrogate."""
_STARTS = rb"\ud", rb"\uD"
"""How every such escape begins. Most texts have none, which this shows faster than the pattern."""
_REPLACEMENT = rb"\ufffd"


def parsed_json(text: bytes) -> Any:
    """The value of a JSON text. JavaScript may truncate text in the middle of a surrogate pair and
    write a lone surrogate, which JSON parsers refuse; U+FFFD replaces it. Raises
    `orjson.JSONDecodeError`.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if not any(start in text for start in _STARTS):
            raise
        repaired = _SURROGATE.sub(_replace_lone_surrogate, text)
        if repaired == text:
            raise
        return orjson.loads(repaired)


def _replace_lone_surrogate(escape: re.Match[bytes]) -> bytes:
    is_pair = bool(escape[2])
    return escape[0] if is_pair else escape[1] + _REPLACEMENT
