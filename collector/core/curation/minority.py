"""Decides which runs are too rare to be learned from.

A deviation that a few runs share may be a mistake or a rare good way; counting cannot tell. So
deviations are set aside, the rarest first, until as many runs are set aside as bad ones are
expected. A proposal lists them, for a person to decide. What people have called good several times
is no mistake.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

_QUANTILE = 1.645
"""Of the normal distribution: one sample of 20 has more bad runs than `bound`."""
_GAP = 3
"""A deviation is so many times as rare as the rarest usual case."""
_DEVIATIONS = 2.5
"""Standard deviations by which the two differ, so that chance makes no gap in a small sample."""

_CONFIRMED = 2
"""Runs that people call good, which make a deviation a good way. One may be a slip."""

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Cut:
    """Runs that deviate in the same way."""

    runs: frozenset[int]
    why: str


def bound(runs: int, share: float) -> int:
    """How many bad runs a sample may contain if `share` of all runs is bad."""
    return int(share * runs + _QUANTILE * math.sqrt(share * (1 - share) * runs))


@dataclass(slots=True)
class Budget:
    """The runs that were set aside."""

    runs: int
    share: float
    """The expected share of bad runs."""
    cuts: list[Cut] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    good: frozenset[int] = frozenset()
    """The runs that people call good."""

    def take(self, cuts: Iterable[Cut]) -> None:
        """Set the runs of the rarest cuts aside, as far as the budget goes."""
        limit = bound(self.runs, self.share)
        for cut in sorted(cuts, key=lambda one: (len(one.runs), one.why, sorted(one.runs))):
            fresh = cut.runs - self.dropped
            if len(fresh & self.good) >= _CONFIRMED:
                continue
            if fresh and len(self.dropped) + len(fresh) <= limit:
                self.dropped |= fresh
                self.cuts.append(Cut(frozenset(fresh), cut.why))

    def kept(self, runs: Iterable[int]) -> list[int]:
        """The runs that were not set aside, in order."""
        return [run for run in runs if run not in self.dropped]


def rare(groups: Mapping[_Key, Collection[int]], share: float) -> Iterator[_Key]:
    """The groups of runs behind the first gap in size that are no more runs together than bad ones
    are expected.
    """
    ordered = sorted(groups, key=lambda key: (-len(groups[key]), repr(key)))
    sizes = [len(groups[key]) for key in ordered]
    limit = bound(sum(sizes), share)
    for index in range(1, len(sizes)):
        if _is_gap(sizes[index - 1], sizes[index]) and sum(sizes[index:]) <= limit:
            yield from ordered[index:]
            return


def _is_gap(usual: int, deviating: int) -> bool:
    by_chance = _DEVIATIONS * math.sqrt(usual + deviating)
    return usual >= _GAP * deviating and usual - deviating >= by_chance
