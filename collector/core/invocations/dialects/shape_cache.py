"""Remembers what was found out about names and keys of spans: instrumentations write the same ones
again and again. Senders can invent any number of them, of any length, so the memory is bounded.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

MAX_CHARACTERS = 4_096
"""What has longer texts is found out each time."""

Value = TypeVar("Value")


class ShapeCache(Generic[Value]):
    """Values by a sequence of texts."""

    __slots__ = ("_max_values", "_values")

    def __init__(self, max_values: int) -> None:
        self._max_values = max_values
        self._values: dict[Hashable, Value] = {}

    def get(self, shape: str | tuple[str, ...]) -> Value | None:
        """The value that was kept."""
        return self._values.get(shape)

    def keep(self, shape: str | tuple[str, ...], value: Value) -> Value:
        """Keep a value, and return it. A full cache starts anew."""
        if len(self._values) >= self._max_values:
            self._values.clear()
        if _length(shape) <= MAX_CHARACTERS:
            self._values[shape] = value
        return value


def _length(shape: Sequence[str]) -> int:
    return len(shape) if isinstance(shape, str) else sum(map(len, shape))
