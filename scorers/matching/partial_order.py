"""Pairs a sequence with blocks of elements. The order of blocks counts, but not that inside blocks.

Each block is paired with a segment of the sequence, and the segments follow each other as the
blocks do. Only one side may have blocks. If both had them, neighbouring segments would share
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
"""Elements visited to pair two sequences, which takes a few tenths of a second."""

_PREFERRED_VALUE = 1 << 32
"""A preferred pair is worth more than all others together."""


class _Candidate(NamedTuple):
    """An element of the sequence that may pair with elements of a block."""

    element: int
    partners: int
    preferred: int


class _Segment(NamedTuple):
    """The part of the sequence paired with a block, linked to that of the block before."""

    block: int
    start: int
    end: int
    before: _Segment | None


class _State(NamedTuple):
    """The value of the pairs so far, and the index where the rest of the sequence begins."""

    value: int
    end: int
    last: _Segment | None


def block_pairs(
    masks: Sequence[int], preferred: Sequence[int], blocks: Sequence[int]
) -> list[tuple[int, int]]:
    """The pairs of a sequence with blocks, in its order: as many preferred pairs as possible, then
    as many pairs as possible.

    `blocks` are bits of the other side. `preferred` are the bits of `masks` that form preferred
    pairs. Raises `TooLongError` beyond `MAX_STEPS`.
    """
    pairs: dict[int, int] = {}
    segment = _best(_candidates(masks, preferred, blocks))
    while segment is not None:
        inside, block = range(segment.start, segment.end), blocks[segment.block]
        pairs |= largest_matching(
            {i: masks[i] & block for i in inside}, {i: preferred[i] & block for i in inside}
        )
        segment = segment.before
    return sorted(pairs.items())


def transposed(masks: Sequence[int], width: int) -> list[int]:
    """The same relation as masks of the other side, which has `width` elements. Raises
    `TooLongError` beyond `MAX_STEPS`.
    """
    _check(sum(mask.bit_count() for mask in masks))
    columns = [0] * width
    for i, mask in enumerate(masks):
        for j in positions(mask):
            columns[j] |= 1 << i
    return columns


def _candidates(
    masks: Sequence[int], preferred: Sequence[int], blocks: Sequence[int]
) -> list[list[_Candidate]]:
    """The candidates of each block."""
    block_of = {j: number for number, block in enumerate(blocks) for j in positions(block)}
    candidates: list[list[_Candidate]] = [[] for _ in blocks]
    steps = 0
    for i, mask in enumerate(masks):
        left = mask
        while left:
            number = block_of[lowest(left)]
            block = blocks[number]
            candidates[number].append(_Candidate(i, mask & block, preferred[i] & block))
            left &= ~block
            steps += 1
        _check(steps)
    return candidates


def _best(candidates: Sequence[Sequence[_Candidate]]) -> _Segment | None:
    """The last segment of the best pairing; the others are linked to it."""
    frontier = [_State(0, 0, None)]
    steps = 0
    for number, of_block in enumerate(candidates):
        if of_block:
            block = _Block(number, of_block, steps)
            frontier = _undominated([*frontier, *block.after(frontier)])
            steps = block.steps
    return frontier[-1].last


def _undominated(states: Iterable[_State]) -> list[_State]:
    """The states with a greater value than every state that ends no later."""
    frontier: list[_State] = []
    for state in sorted(states, key=lambda state: (state.end, -state.value)):
        if not frontier or state.value > frontier[-1].value:
            frontier.append(state)
    return frontier


class _Block:
    """One block and its candidates."""

    def __init__(self, number: int, candidates: Sequence[_Candidate], steps: int) -> None:
        self.steps = steps
        """Steps so far, including those of the blocks before."""
        self._number, self._candidates = number, candidates
        self._indices = [candidate.element for candidate in candidates]
        partners = reduce(or_, (candidate.partners for candidate in candidates))
        preferred = reduce(or_, (candidate.preferred for candidate in candidates))
        self._single = partners.bit_count() == 1
        self._max_value = _value(partners.bit_count(), preferred.bit_count())

    def after(self, frontier: Sequence[_State]) -> Iterator[_State]:
        """The states reached by pairing a segment with this block."""
        values = [state.value for state in frontier]
        for state in frontier:
            self.steps += 1
            _check(self.steps)
            if self._single:
                yield from self._pair_single(state)
                continue
            better = bisect_left(values, state.value + self._max_value)
            end = frontier[better].end if better < len(values) else self._indices[-1] + 1
            yield from self._pair_several(state, end)

    def _pair_single(self, state: _State) -> Iterator[_State]:
        """A block of one element pairs with its next candidate, or with the next preferred one."""
        for indices, value in self._single_choices:
            position = bisect_left(indices, state.end)
            if position < len(indices):
                yield self._paired(state, indices[position], value)

    def _pair_several(self, state: _State, end: int) -> Iterator[_State]:
        """Segments that end before `end`. From there on, a known state is at least as good."""
        pairs, preferred = Matching(self._masks), Matching(self._preferred)
        start, stop = bisect_left(self._indices, state.end), bisect_left(self._indices, end)
        for index in self._indices[start:stop]:
            _check(self.steps + pairs.steps + preferred.steps)
            if pairs.add(index) | preferred.add(index):
                value = _value(len(pairs.pairs), len(preferred.pairs))
                yield self._paired(state, index, value)
                if value == self._max_value:
                    break
        self.steps += pairs.steps + preferred.steps

    def _paired(self, state: _State, index: int, value: int) -> _State:
        end = index + 1
        segment = _Segment(self._number, state.end, end, state.last)
        return _State(state.value + value, end, segment)

    @cached_property
    def _single_choices(self) -> list[tuple[list[int], int]]:
        """The indices of other and of preferred candidates, each with the value of a pair."""
        others = [candidate.element for candidate in self._candidates if not candidate.preferred]
        preferred = [candidate.element for candidate in self._candidates if candidate.preferred]
        return [(others, _value(1, 0)), (preferred, _value(1, 1))]

    @cached_property
    def _masks(self) -> dict[int, int]:
        return {candidate.element: candidate.partners for candidate in self._candidates}

    @cached_property
    def _preferred(self) -> dict[int, int]:
        return {candidate.element: candidate.preferred for candidate in self._candidates}


def _value(pairs: int, preferred: int) -> int:
    return pairs + _PREFERRED_VALUE * preferred


def _check(steps: int) -> None:
    if steps > MAX_STEPS:
        raise TooLongError("too many ways to pair calls in a partial order")
