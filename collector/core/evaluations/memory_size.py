"""The memory that an invocation takes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pathgauge.scorers.types import Invocation


def memory_size(invocation: Invocation) -> int:
    """Memory in bytes. Objects that are shared with others count in full."""
    size, values = 0, [invocation]
    while values:
        value: Any = values.pop()
        size += sys.getsizeof(value)
        if isinstance(value, Mapping):
            values.extend(value)
            values.extend(value.values())
        elif isinstance(value, list | tuple | frozenset):
            values.extend(value)
        elif is_dataclass(value):
            values.extend(getattr(value, part.name) for part in fields(value))
    return size
