"""The numbers of one series while it is counted.

An exemplar names the trace of an observation, so that a point on a graph leads to its trace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

MIN_EXEMPLAR_S = 1.0
"""Minimum age of an exemplar before another replaces it. A scrape sees only the latest one, and
storing an exemplar costs more than counting.
"""


class Source(NamedTuple):
    """Where an observation came from."""

    labels: dict[str, str]
    """Labels of the exemplar."""
    at: float
    """Unix time."""


class State(NamedTuple):
    """A copy of a series, which does not change any more."""

    numbers: tuple[float, ...]
    exemplars: dict[int, tuple[float, Source]]
    """Observed value and its source, by index of the bucket; 0 for a counter."""


class DurableSeries:
    """A series, which adds itself to `changed` when its numbers change. Only one thread at a time
    may change the series that share a `changed`.
    """

    __slots__ = ("_changed", "exemplars", "labels", "numbers")

    def __init__(
        self, labels: tuple[str, ...], changed: dict[DurableSeries, None], numbers: list[float]
    ) -> None:
        """`labels` are label values."""
        self.labels = labels
        self.numbers = numbers
        self.exemplars: dict[int, tuple[float, Source]] = {}
        self._changed = changed

    def state(self) -> State:
        """A copy of the present numbers and exemplars."""
        return State(tuple(self.numbers), self.exemplars.copy())

    def _add_exemplar(self, index: int, value: float, source: Source) -> None:
        known = self.exemplars.get(index)
        if known is None or abs(source.at - known[1].at) >= MIN_EXEMPLAR_S:
            self.exemplars[index] = value, source


class CounterSeries(DurableSeries):
    """A counter."""

    __slots__ = ()

    def __init__(self, labels: tuple[str, ...], changed: dict[DurableSeries, None]) -> None:
        super().__init__(labels, changed, [0])

    def add(self, n: float = 1, source: Source | None = None) -> None:
        """Count `n` more. Integers stay exact."""
        self.numbers[0] += n
        self._changed[self] = None
        if source is not None:
            self._add_exemplar(0, n, source)


class HistogramSeries(DurableSeries):
    """A histogram. Its numbers are the sum of the observed values and the count of each bucket, not
    cumulated; the last bucket is +Inf.
    """

    __slots__ = ("_bounds",)

    def __init__(
        self, labels: tuple[str, ...], changed: dict[DurableSeries, None], bounds: Sequence[float]
    ) -> None:
        super().__init__(labels, changed, [0.0] + [0] * (len(bounds) + 1))
        self._bounds = bounds

    def observe(self, value: float, source: Source | None = None) -> None:
        """Count `value` in the first bucket whose upper bound is not below it."""
        index = bisect_left(self._bounds, value)
        self.numbers[0] += value
        self.numbers[index + 1] += 1
        self._changed[self] = None
        if source is not None:
            self._add_exemplar(index, value, source)


class StoredValues(DurableSeries):
    """Numbers that are stored with the counts and not shown to scrapes."""

    __slots__ = ()

    def __init__(self, labels: tuple[str, ...], changed: dict[DurableSeries, None]) -> None:
        super().__init__(labels, changed, [])

    def put(self, *numbers: float) -> None:
        """Replace the numbers."""
        if self.numbers != [*numbers]:
            self.numbers[:] = numbers
            self._changed[self] = None
