"""How deeply a decoded value is nested, without recursion, which a sender could make too deep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def is_deeper(text: str, value: Any, levels: int) -> bool:
    """Whether the value of a text has more levels than this."""
    if text.count("[") + text.count("{") <= levels:
        return False
    level = [value]
    for _ in range(levels):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()
