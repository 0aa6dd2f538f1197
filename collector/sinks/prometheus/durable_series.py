"""The numbers of one series as they are counted: what happened comes in, `State`s that nobody
changes go out.

Exemplars name where an observation came from, so that a point on a graph leads to its trace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

EXEMPLAR_S = 1.0
"""How long an exemplar stands at least. A scrape sees only the latest, and each costs more than the
count that it belongs to.
"""


class Source(NamedTuple):
    """Where an observation came from: labels that lead there, and its Unix time."""

    labels: dict[str, str]
    at: float


class State(NamedTuple):
    """A copy of the numbers of a series."""

    numbers: tuple[float, ...]
    exemplars: dict[int, tuple[float, Source]]
    """What was observed, and its source, by the place of the bucket; 0 for a counter."""


class DurableSeries:
    """A series. `changed` takes note of those whose numbers changed; only one thread may change
    those that share it.
    """

    __slots__ = ("_changed", "exemplars", "labels", "numbers")

    def __init__(
        self, labels: tuple[str, ...], changed: dict[DurableSeries, None], numbers: list[float]
    ) -> None:
        """`labels` are the values alone."""
        self.labels = labels
        self.numbers = numbers
        self.exemplars: dict[int, tuple[float, Source]] = {}
        self._changed = changed

    def state(self) -> State:
        """The series as it is now."""
        return State(tuple(self.numbers), self.exemplars.copy())

    def _exemplify(self, place: int, value: float, source: Source) -> None:
        known = self.exemplars.get(place)
        if known is None or abs(source.at - known[1].at) >= EXEMPLAR_S:
            self.exemplars[place] = value, source


class Count(DurableSeries):
    """A counter."""

    __slots__ = ()

    def __init__(self, labels: tuple[str, ...], changed: dict[DurableSeries, None]) -> None:
        super().__init__(labels, changed, [0])

    def add(self, n: float = 1, source: Source | None = None) -> None:
        """Count `n` more; whole numbers stay exact."""
        self.numbers[0] += n
        self._changed[self] = None
        if source is not None:
            self._exemplify(0, n, source)


class Distribution(DurableSeries):
    """A histogram: the sum of what was observed, then how many fell into each bucket, of which the
    last has no upper bound.
    """

    __slots__ = ("_bounds",)

    def __init__(
        self, labels: tuple[str, ...], changed: dict[DurableSeries, None], bounds: Sequence[float]
    ) -> None:
        super().__init__(labels, changed, [0.0] + [0] * (len(bounds) + 1))
        self._bounds = bounds

    def observe(self, value: float, source: Source | None = None) -> None:
        """Count `value` in the bucket whose upper bound is not below it."""
        place = bisect_left(self._bounds, value)
        self.numbers[0] += value
        self.numbers[place + 1] += 1
        self._changed[self] = None
        if source is not None:
            self._exemplify(place, value, source)


class Note(DurableSeries):
    """Numbers that are stored beside the counts, and not shown."""

    __slots__ = ()

    def __init__(self, labels: tuple[str, ...], changed: dict[DurableSeries, None]) -> None:
        super().__init__(labels, changed, [])

    def put(self, *numbers: float) -> None:
        """Take these in the place of the former ones."""
        self.numbers[:] = numbers
        self._changed[self] = None
