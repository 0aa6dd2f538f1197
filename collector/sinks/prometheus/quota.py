"""Limits how many names are known: known names keep their place until they are idle, so a flood of
new names cannot push them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Generic, TypeVar

K = TypeVar("K")


class Quota(Generic[K]):
    """Keys with a weight and the time they were last seen, longest idle first."""

    def __init__(self, capacity: int) -> None:
        """`capacity` is the largest sum of all weights."""
        self._capacity = self._free = capacity
        self._seen: dict[K, tuple[float, int]] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._seen

    def __iter__(self) -> Iterator[K]:
        return iter(self._seen)

    @property
    def used(self) -> int:
        """The sum of all weights."""
        return self._capacity - self._free

    def items(self) -> Iterator[tuple[K, float, int]]:
        """The keys with the time they were last seen, and their weight."""
        return ((key, seen, weight) for key, (seen, weight) in self._seen.items())

    def has_room(self, weight: int) -> bool:
        """Whether another key fits."""
        return self._free >= weight

    def touch(self, key: K, now: float) -> bool:
        """Update when `key` was last seen; `False` if it is unknown."""
        known = self._seen.pop(key, None)
        if known is None:
            return False
        self._seen[key] = now, known[1]
        return True

    def add(self, key: K, seen: float, weight: int) -> None:
        """Add an unknown key. Call `sort` if keys were not added in the order of `seen`."""
        self._free -= weight
        self._seen[key] = seen, weight

    def sort(self) -> None:
        """Restore the order by time."""
        self._seen = dict(sorted(self._seen.items(), key=lambda item: item[1][0]))

    def idle(self, before: float) -> list[K]:
        """The keys that were last seen earlier than `before`."""
        return [key for key, _ in takewhile(lambda item: item[1][0] < before, self._seen.items())]

    def discard(self, key: K) -> None:
        """Remove `key` if it is known."""
        _, weight = self._seen.pop(key, (0.0, 0))
        self._free += weight
