"""The space that an invocation takes, in memory or in the store."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import orjson

from pathgauge.scorers.types import Invocation


def memory_size(invocation: Invocation) -> int:
    """Memory in bytes. Objects that are shared with others count in full. Text counts as JSON, in
    which the store keeps it, if that is longer: a control character takes six bytes there.
    """
    size, values = 0, [invocation]
    while values:
        value: Any = values.pop()
        size += sys.getsizeof(value)
        if isinstance(value, str):
            size += max(0, _json_size(value) - sys.getsizeof(value))
        elif isinstance(value, Mapping):
            values.extend(value)
            values.extend(value.values())
        elif isinstance(value, list | tuple | frozenset):
            values.extend(value)
        elif is_dataclass(value):
            values.extend(getattr(value, part.name) for part in fields(value))
    return size


def _json_size(text: str) -> int:
    try:
        return len(orjson.dumps(text))
    except orjson.JSONEncodeError:  # lone surrogates; such a turn cannot be stored
        return 0
