"""Pairing a sequence with blocks whose elements may come in any order: bit masks come in, a best
set of pairs comes out.

Each block is paired with a stretch of the sequence, and the stretches follow each other as the
blocks do. Only one side may have blocks: where both have, neighbouring stretches would share
elements of a block, in too many ways to try them all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

from pathgauge.scorers.matching.alignment import TooLongError, lowest, positions
from pathgauge.scorers.matching.bipartite import Matching, largest_matching

MAX_STEPS = 100_000
"""Elements looked at to pair two sequences, which takes a few tenths of a second."""

_VITAL = 1 << 32
"""A vital pair is worth more than all others together."""


class _Touch(NamedTuple):
    """An element of the sequence that may pair with some of a block."""

    place: int
    partners: int
    vital: int


class _Stretch(NamedTuple):
    """What is paired with a block, and with the blocks before it."""

    block: int
    start: int
    end: int
    before: _Stretch | None


class _Reached(NamedTuple):
    """What the pairs so far are worth, and where the sequence goes on."""

    value: int
    end: int
    last: _Stretch | None


def block_pairs(
    masks: Sequence[int], vital: Sequence[int], blocks: Sequence[int]
) -> list[tuple[int, int]]:
    """The pairs of a sequence with blocks, in its order: as many of `vital` as can be, and then as
    many as can be.

    `blocks` are bits of the other side; `vital` are the bits of `masks` whose pairs matter most.
    Raises `TooLongError` beyond `MAX_STEPS`.
    """
    pairs: dict[int, int] = {}
    stretch = _best(_touches(masks, vital, blocks))
    while stretch is not None:
        inside, block = range(stretch.start, stretch.end), blocks[stretch.block]
        pairs |= largest_matching(
            {i: masks[i] & block for i in inside}, {i: vital[i] & block for i in inside}
        )
        stretch = stretch.before
    return sorted(pairs.items())


def transposed(masks: Sequence[int], width: int) -> list[int]:
    """The same relation seen from the other side, which has `width` elements. Raises `TooLongError`
    beyond `MAX_STEPS`.
    """
    _check(sum(mask.bit_count() for mask in masks))
    columns = [0] * width
    for i, mask in enumerate(masks):
        for j in positions(mask):
            columns[j] |= 1 << i
    return columns


def _touches(
    masks: Sequence[int], vital: Sequence[int], blocks: Sequence[int]
) -> list[list[_Touch]]:
    block_of = {j: number for number, block in enumerate(blocks) for j in positions(block)}
    touches: list[list[_Touch]] = [[] for _ in blocks]
    steps = 0
    for i, mask in enumerate(masks):
        left = mask
        while left:
            number = block_of[lowest(left)]
            touches[number].append(_Touch(i, mask & blocks[number], vital[i] & blocks[number]))
            left &= ~blocks[number]
            steps += 1
        _check(steps)
    return touches


def _best(touches: Sequence[Sequence[_Touch]]) -> _Stretch | None:
    frontier = [_Reached(0, 0, None)]
    steps = 0
    for number, touched in enumerate(touches):
        if touched:
            block = _Block(number, touched, steps)
            frontier = _undominated([*frontier, *block.after(frontier)])
            steps = block.steps
    return frontier[-1].last


def _undominated(reached: Iterable[_Reached]) -> list[_Reached]:
    """What is worth more than everything that ends as early."""
    frontier: list[_Reached] = []
    for one in sorted(reached, key=lambda one: (one.end, -one.value)):
        if not frontier or one.value > frontier[-1].value:
            frontier.append(one)
    return frontier


class _Block:
    """One block, and the elements of the sequence that touch it."""

    def __init__(self, number: int, touched: Sequence[_Touch], steps: int) -> None:
        self.steps = steps
        """Those of the blocks before it, too."""
        self._number, self._touched = number, touched
        self._places = [touch.place for touch in touched]
        partners, vital = (
            reduce(or_, (touch.partners for touch in touched)),
            reduce(or_, (touch.vital for touch in touched)),
        )
        self._single = partners.bit_count() == 1
        self._max_worth = _worth(partners.bit_count(), vital.bit_count())

    def after(self, frontier: Sequence[_Reached]) -> Iterator[_Reached]:
        """What can be reached by pairing a stretch with this block."""
        values = [reached.value for reached in frontier]
        for reached in frontier:
            self.steps += 1
            _check(self.steps)
            if self._single:
                yield from self._one(reached)
            else:
                better = bisect_left(values, reached.value + self._max_worth)
                yield from self._several(
                    reached, frontier[better].end if better < len(values) else self._places[-1] + 1
                )

    def _one(self, reached: _Reached) -> Iterator[_Reached]:
        """A single element pairs with the next that it can, or with the next that makes a vital
        pair.
        """
        for places, worth in self._singles:
            index = bisect_left(places, reached.end)
            if index < len(places):
                yield self._paired(reached, places[index], worth)

    def _several(self, reached: _Reached, end: int) -> Iterator[_Reached]:
        """Stretches that end before `end`, where nothing can be better than what is known."""
        pairs, vital = Matching(self._masks), Matching(self._vital)
        for index in range(bisect_left(self._places, reached.end), bisect_left(self._places, end)):
            place = self._places[index]
            _check(self.steps + pairs.steps + vital.steps)
            if pairs.add(place) | vital.add(place):
                worth = _worth(len(pairs.pairs), len(vital.pairs))
                yield self._paired(reached, place, worth)
                if worth == self._max_worth:
                    break
        self.steps += pairs.steps + vital.steps

    def _paired(self, reached: _Reached, place: int, worth: int) -> _Reached:
        end = place + 1
        return _Reached(
            reached.value + worth, end, _Stretch(self._number, reached.end, end, reached.last)
        )

    @cached_property
    def _singles(self) -> list[tuple[list[int], int]]:
        others, vital = (
            [touch.place for touch in self._touched if bool(touch.vital) is kind]
            for kind in (False, True)
        )
        return [(others, _worth(1, 0)), (vital, _worth(1, 1))]

    @cached_property
    def _masks(self) -> dict[int, int]:
        return {touch.place: touch.partners for touch in self._touched}

    @cached_property
    def _vital(self) -> dict[int, int]:
        return {touch.place: touch.vital for touch in self._touched}


def _worth(pairs: int, vital: int) -> int:
    return pairs + _VITAL * vital


def _check(steps: int) -> None:
    if steps > MAX_STEPS:
        raise TooLongError("too many ways to pair calls in a partial order")
