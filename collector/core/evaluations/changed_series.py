"""Which series of scores changed since somebody asked, so that only those are written again.

Nobody may ever ask, or not for long. So at most `MAX_CHANGED` series are remembered: with more, all
count as changed.
"""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")

MAX_CHANGED = 100_000


class ChangedSeries(Generic[K]):
    """Collects changes for one reader. Not thread-safe."""

    def __init__(self) -> None:
        self._changed: set[K] | None = None
        """`None`: all."""

    def add(self, series: K) -> None:
        """A series changed, appeared or is gone."""
        if self._changed is not None:
            self._changed.add(series)
            if len(self._changed) > MAX_CHANGED:
                self._changed = None

    def add_all(self) -> None:
        """Any series may have changed."""
        self._changed = None

    def take(self) -> set[K] | None:
        """What changed since the last call; `None`: maybe all, as before the first call."""
        changed, self._changed = self._changed, set()
        return changed
