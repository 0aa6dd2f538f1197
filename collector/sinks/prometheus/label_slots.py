"""Room for a limited number of names: who comes first has a place, and keeps it until it has been
silent for long.
"""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")


class Quota(Generic[K]):
    """Keys with a weight and the time they were last seen, the longest silent first."""

    def __init__(self, capacity: int, yield_after_s: float) -> None:
        self._free = capacity
        self._yield_after_s = yield_after_s
        self._seen: dict[K, tuple[float, int]] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def admit(self, key: K, now: float, weight: int = 1) -> bool:
        """Note that `key` was seen; `False` when it is new and finds no room, even after those that
        must yield have left.
        """
        known = self._seen.pop(key, None)
        if known is not None:
            self._seen[key] = now, known[1]
            return True
        if self._free < weight:
            self.retire(now - self._yield_after_s)
        if self._free < weight:
            return False
        self._free -= weight
        self._seen[key] = now, weight
        return True

    def restore(self, key: K, seen: float, weight: int = 1) -> bool:
        """Take back a key that was last `seen` by an earlier process, unless it is there; `False`
        when it finds no room.

        Call `sort` after the last one.
        """
        if key in self._seen:
            return True
        if self._free < weight:
            return False
        self._free -= weight
        self._seen[key] = seen, weight
        return True

    def sort(self) -> None:
        """Bring the longest silent to the front."""
        self._seen = dict(sorted(self._seen.items(), key=lambda item: item[1][0]))

    def retire(self, before: float) -> None:
        """Forget the keys that were last seen earlier than `before`."""
        while self._seen:
            key, (seen, _) = next(iter(self._seen.items()))
            if seen >= before:
                break
            self.discard(key)

    def discard(self, key: K) -> None:
        """Forget `key`, if it is there."""
        _, weight = self._seen.pop(key, (0.0, 0))
        self._free += weight
