"""Pairs elements in any order: maximum bipartite matching on the masks of
`pathgauge.scorers.matching.alignment`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.scorers.matching.alignment import TooLongError, lowest
from pathgauge.scorers.matching.wording import counted

MAX_STEPS = 500_000
"""Elements that a matching may visit, which takes a few tenths of a second."""


def largest_matching(
    masks: Mapping[int, int], preferred: Mapping[int, int] | None = None, *, first: int = 0
) -> dict[int, int]:
    """A largest set of pairs, of which as many as possible are in `preferred`.

    `preferred` is the part of the relation that holds all pairs of some elements. A free partner in
    `first` is taken before others. Raises `TooLongError` beyond `MAX_STEPS`.
    """
    start = {} if preferred is None else _largest(preferred, {}, first)
    return _largest(masks, start, first)


def _largest(masks: Mapping[int, int], start: Mapping[int, int], first: int) -> dict[int, int]:
    matching = Matching(masks, start, first=first)
    for i in masks:
        if i not in start:
            matching.add(i)
    return matching.pairs


class Matching:
    """A set of pairs that stays a largest one while elements are added: Kuhn's algorithm.

    An element that has a partner always keeps one. `start` are initial pairs.
    """

    def __init__(
        self, masks: Mapping[int, int], start: Mapping[int, int] | None = None, *, first: int = 0
    ) -> None:
        self.pairs = dict(start or {})
        self.steps = 0
        """Elements visited so far."""
        self._masks, self._first = masks, first
        self._owners = {j: i for i, j in self.pairs.items()}
        self._free = ~sum(1 << j for j in self._owners)
        self._open = -1
        """Partners that may lead to a free one. A partner that once led to none never will."""

    def add(self, i: int) -> bool:
        """Add an element. Returns whether it was paired. Raises `TooLongError` as above."""
        reached_from: dict[int, int] = {}
        unseen, queue = self._open, [i]
        for left in queue:
            found = self._masks[left] & unseen
            if ends := found & self._free:
                self._augment(left, lowest(ends & self._first or ends), reached_from)
                return True
            unseen ^= found
            while found:
                j = lowest(found)
                found &= found - 1
                reached_from[j] = left
                queue.append(self._owners[j])
        self._open = unseen
        self._count(len(queue))
        return False

    def _augment(self, left: int, end: int, reached_from: Mapping[int, int]) -> None:
        self._count(1 + len(reached_from))
        self._free ^= 1 << end
        while True:
            before = self.pairs.get(left)
            self.pairs[left], self._owners[end] = end, left
            if before is None:
                return
            left, end = reached_from[before], before

    def _count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TooLongError(
                f"too many ways to pair {counted(len(self._masks), 'call')} in any order"
            )
