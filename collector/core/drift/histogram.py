"""A histogram of any numbers with a bounded number of buckets of equal relative width.

A DDSketch whose buckets are merged in pairs when there are too many (UDDSketch, Epicoco et al.,
arXiv:2004.08604), so that the error stays the same for small and large numbers. There are libraries
for DDSketch, but they give quantiles of numbers, and what is needed here is the rank of a number.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from pathgauge.scorers.types import Json

MAX_BUCKETS = 256
_WIDTH = math.log(1.02)
"""Width of a bucket before any are merged, as a logarithm: 2 %."""
_SMALLEST = 1e-9
"""Smaller numbers count as 0, which has a bucket of its own."""
_OFFSET = 1 << 20
"""Larger than any index of a bucket: keeps those of positive numbers above 0."""


class Histogram:
    """How many numbers are in which bucket."""

    __slots__ = ("_counts", "_merged", "samples")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._merged = 0
        """How often the buckets were merged in pairs."""
        self.samples = 0

    def add(self, number: float) -> None:
        """Add a finite number."""
        bucket = _bucket(number, self._merged)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.samples += 1
        while len(self._counts) > MAX_BUCKETS:
            self._merge()

    def ranks(self) -> Ranks:
        """The histogram as it is now, for look-ups."""
        return Ranks(self._merged, dict(self._counts))

    def _merge(self) -> None:
        self._merged += 1
        merged: dict[int, int] = {}
        for bucket, count in self._counts.items():
            wider = _widened(bucket, 1)
            merged[wider] = merged.get(wider, 0) + count
        self._counts = merged

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        return [self._merged, [[bucket, count] for bucket, count in self._counts.items()]]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Histogram:
        """The histogram of a `state`."""
        merged, counts = state
        histogram = cls()
        histogram._merged = merged
        histogram._counts = {int(bucket): int(count) for bucket, count in counts}
        histogram.samples = sum(histogram._counts.values())
        return histogram


class Ranks:
    """Ranks of numbers among those of a histogram, which has at least one."""

    __slots__ = ("_below", "_buckets", "_merged", "mean", "samples")

    def __init__(self, merged: int, counts: dict[int, int]) -> None:
        self._merged = merged
        self._buckets = array("q", sorted(counts))
        self._below = array("q", accumulate(map(counts.__getitem__, self._buckets), initial=0))
        self.samples = self._below[-1]
        self.mean = math.fsum(
            _middle(bucket, merged) * (count / self.samples) for bucket, count in counts.items()
        )
        """Of all numbers, with the precision of the buckets."""

    def rank(self, number: float) -> float:
        """The share of numbers that are lower, with half of those in the same bucket.

        So the mean rank of the histogram's own numbers is 0.5, also if many of them are equal.
        """
        bucket = _bucket(number, self._merged)
        index = bisect_left(self._buckets, bucket)
        below = self._below[index]
        equal = 0
        if index < len(self._buckets) and self._buckets[index] == bucket:
            equal = self._below[index + 1] - below
        return (below + equal / 2) / self.samples

    def at(self, rank: float) -> float:
        """The number with this rank, with the precision of the buckets."""
        index = bisect_left(self._below, rank * self.samples, 1) - 1
        return _middle(self._buckets[min(index, len(self._buckets) - 1)], self._merged)

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        counts = (high - low for low, high in zip(self._below, self._below[1:], strict=False))
        return [self._merged, [list(pair) for pair in zip(self._buckets, counts, strict=True)]]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Ranks:
        """The ranks of a `state`."""
        return Histogram.restored(state).ranks()


def _bucket(number: float, merged: int) -> int:
    size = abs(number)
    if size < _SMALLEST:
        return 0
    index = _OFFSET + math.ceil(math.log(size) / _WIDTH)
    return _widened(index if number > 0 else -index, merged)


def _widened(bucket: int, times: int) -> int:
    """The bucket that contains this one after merging so many times; 0 stays alone."""
    if bucket == 0:
        return 0
    index = abs(bucket) - _OFFSET
    wider = _OFFSET + ((index - 1) >> times) + 1
    return wider if bucket > 0 else -wider


def _middle(bucket: int, merged: int) -> float:
    """The middle of a bucket, on a logarithmic scale."""
    if bucket == 0:
        return 0.0
    index = abs(bucket) - _OFFSET
    size = math.exp((index - 0.5) * (1 << merged) * _WIDTH)
    return size if bucket > 0 else -size
