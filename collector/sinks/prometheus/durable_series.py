"""The numbers of one series while it is counted.

An exemplar names the trace of an observation, so that a point on a graph leads to its trace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from pathgauge.collector.sinks.prometheus.exposition.text import around_exemplar

MIN_EXEMPLAR_S = 1.0
"""Minimum age of an exemplar before another replaces it. A scrape sees only the latest one, and
storing an exemplar costs more than counting.
"""
MAX_EXEMPLAR_S = 300.0
"""Older exemplars of a series are dropped when it gets another one: Prometheus has scraped them."""


class Source:
    """Where an observation came from. All series that count an evaluation share it."""

    __slots__ = ("_around", "at", "labels")

    def __init__(self, labels: dict[str, str], at: float) -> None:
        """`labels` are those of the exemplar, `at` is its Unix time."""
        self.labels = labels
        self.at = at
        self._around: tuple[str, str] | None = None

    @property
    def around(self) -> tuple[str, str]:
        """What stands before and behind the value of the exemplar. It is written once."""
        if self._around is None:
            self._around = around_exemplar(self.labels, self.at)
        return self._around


Exemplars = Mapping[int, tuple[float, Source]]
"""Observed value and its source, by index of the bucket, 0 for a counter. The latest is the last
one.
"""
_NONE: Exemplars = MappingProxyType({})
"""Shared by all series without exemplars, which are most."""


class Buckets(NamedTuple):
    """The buckets of a histogram that scrapes see. More of them are counted and stored."""

    ends: tuple[int, ...]
    """The index of the last counted bucket in each of them, ascending."""

    @classmethod
    def of(cls, counted: Sequence[float], shown: Iterable[float]) -> Buckets:
        """The buckets with the upper bounds `shown`, which are among those `counted`, and +Inf."""
        return cls((*map(counted.index, shown), len(counted)))

    def cumulated(self, counts: Sequence[float]) -> list[float]:
        """The number of values up to the end of each bucket."""
        total = [*accumulate(counts)]
        return [*map(total.__getitem__, self.ends)]

    def exemplars(self, counted: Exemplars) -> dict[int, tuple[float, Source]]:
        """The latest exemplar of each bucket, by its index."""
        return {bisect_left(self.ends, index): one for index, one in counted.items()}


class State(NamedTuple):
    """A copy of a series, which does not change any more."""

    numbers: tuple[float, ...]
    exemplars: Exemplars
    buckets: Buckets | None = None
    """Of a histogram that shows other buckets than its family."""


class DurableSeries:
    """A series, which adds itself to `changed` when its numbers change. Only one thread at a time
    may change the series that share a `changed`.
    """

    __slots__ = ("_changed", "exemplars", "labels", "numbers")

    def __init__(
        self,
        labels: tuple[str, ...],
        changed: dict[DurableSeries, None],
        numbers: tuple[float, ...],
    ) -> None:
        """`labels` are label values."""
        self.labels = labels
        self.numbers = numbers
        """Replaced as a whole, so that states and equal series can share them."""
        self.exemplars = _NONE
        self._changed = changed

    def state(self) -> State:
        """The present numbers and exemplars."""
        return State(self.numbers, self.exemplars)

    def _add_exemplar(self, index: int, value: float, source: Source) -> None:
        known = self.exemplars.get(index)
        if known is None or abs(source.at - known[1].at) >= MIN_EXEMPLAR_S:
            since = source.at - MAX_EXEMPLAR_S
            self.exemplars = {
                other: one
                for other, one in self.exemplars.items()
                if other != index and one[1].at >= since
            } | {index: (value, source)}


_ZERO = (0,)


class CounterSeries(DurableSeries):
    """A counter."""

    __slots__ = ()

    def __init__(self, labels: tuple[str, ...], changed: dict[DurableSeries, None]) -> None:
        super().__init__(labels, changed, _ZERO)

    def add(self, n: float = 1, source: Source | None = None) -> None:
        """Count `n` more. Integers stay exact."""
        self.numbers = (self.numbers[0] + n,)
        self._changed[self] = None
        if source is not None:
            self._add_exemplar(0, n, source)


@cache
def _zeros(buckets: int) -> tuple[float, ...]:
    return (0.0, *[0] * buckets)


class HistogramSeries(DurableSeries):
    """A histogram. Its numbers are the sum of the observed values and the count of each bucket, not
    cumulated; the last bucket is +Inf.
    """

    __slots__ = ("_bounds", "buckets")

    def __init__(
        self, labels: tuple[str, ...], changed: dict[DurableSeries, None], bounds: Sequence[float]
    ) -> None:
        super().__init__(labels, changed, _zeros(len(bounds) + 1))
        self._bounds = bounds
        self.buckets: Buckets | None = None
        """Those that scrapes see; `None`: those of the family."""

    def state(self) -> State:
        """The present numbers and exemplars."""
        return State(self.numbers, self.exemplars, self.buckets)

    def observe(self, value: float, source: Source | None = None) -> None:
        """Count `value` in the first bucket whose upper bound is not below it."""
        index = bisect_left(self._bounds, value)
        numbers = [*self.numbers]
        numbers[0] += value
        numbers[index + 1] += 1
        self.numbers = tuple(numbers)
        self._changed[self] = None
        if source is not None:
            self._add_exemplar(index, value, source)


class StoredValues(DurableSeries):
    """Numbers that are stored with the counts and not shown to scrapes."""

    __slots__ = ()

    def __init__(self, labels: tuple[str, ...], changed: dict[DurableSeries, None]) -> None:
        super().__init__(labels, changed, ())

    def put(self, *numbers: float) -> None:
        """Replace the numbers."""
        if self.numbers != numbers:
            self.numbers = numbers
            self._changed[self] = None
