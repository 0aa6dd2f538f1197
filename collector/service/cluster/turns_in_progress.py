"""The forwarded turns that a partition has taken and not processed yet.

What the other partitions say of their time holds for the turns that follow. So it must not be
believed before those are processed that were forwarded until then.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple


class _Turn(NamedTuple):
    row: int
    at: float
    id: int


class _Heard(NamedTuple):
    """The time of the others, which holds when the turns up to a row are processed."""

    row: int
    reached: float


class TurnsInProgress:
    """Not thread-safe: the caller guards it."""

    def __init__(self) -> None:
        self._turns: deque[_Turn] = deque()
        self._heard: _Heard | None = None

    def add(self, row: int, at: float, number: int) -> None:
        """A turn is delivered as `row` at the time `at`; `number` is its id in the database."""
        self._turns.append(_Turn(row, at, number))

    def processed(self, row: int) -> Sequence[int]:
        """The ids of the turns up to `row`."""
        return [turn.id for turn in self._turns if turn.row <= row]

    def forget(self, turns: int) -> None:
        """Forget the oldest turns: that they are processed is durable."""
        for _ in range(turns):
            self._turns.popleft()

    def next_at(self, row: int) -> float:
        """The time of the first turn after `row`."""
        return next((turn.at for turn in self._turns if turn.row > row), math.inf)

    def hear(self, reached: float) -> None:
        """The others have reached this time when they had forwarded the turns that were added."""
        if self._heard is None:  # else it would be put off again and again
            self._heard = _Heard(self._turns[-1].row if self._turns else 0, reached)

    def told(self) -> float | None:
        """What was heard, once, when it holds."""
        heard = self._heard
        if heard is None or (self._turns and self._turns[0].row <= heard.row):
            return None
        self._heard = None
        return heard.reached
