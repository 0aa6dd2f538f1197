"""Pairing two sequences: bit masks that say which elements go together come in, a largest set of pairs comes out.

Bit `j` of `masks[i]` is set when element `i` of the first sequence may pair with element `j` of the second. Nothing here
knows what the elements are. All results are deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module
from operator import or_

MAX_BLOCK = 400
"""Elements on the smaller side of a block that needs `load_matching`; its search recurses once for each."""
MAX_EDGES = 100_000
"""Edges of such a block; a graph of this size takes about 0.1 s and 25 MiB."""

Matching = Callable[[Mapping[int, int]], dict[int, int]]


class TooLongError(Exception):
    """The sequences are longer than what is paired online."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which actual call answers which expected call, by index, in the order of the actual calls."""

    pairs: tuple[tuple[int, int], ...]
    """(actual, expected)."""
    missing: tuple[int, ...]
    """Expected calls without a partner."""
    unexpected: tuple[int, ...]
    """Actual calls without a partner."""
    at_most: int
    """How many pairs there would be if all arguments that were not recorded had been the expected ones."""

    @property
    def matched(self) -> int:
        """The number of pairs."""
        return len(self.pairs)

    @property
    def actual(self) -> int:
        """The number of actual calls."""
        return len(self.pairs) + len(self.unexpected)

    @property
    def expected(self) -> int:
        """The number of expected calls."""
        return len(self.pairs) + len(self.missing)


def ordered_pairs(masks: Sequence[int], width: int) -> list[tuple[int, int]]:
    """A largest set of pairs that do not cross: the second sequence has `width` elements.

    This is the longest-common-subsequence recurrence, which holds for any 0/1 relation, on the bits of one integer per
    row: a clear bit `j` in a row says that element `j` adds one to the longest alignment so far.
    """
    full = (1 << width) - 1
    rows = [full]
    for mask in masks:
        row = rows[-1]
        hit = row & mask
        rows.append(((row + hit) | (row - hit)) & full)
    return _walk_back(rows, width)


def _walk_back(rows: Sequence[int], width: int) -> list[tuple[int, int]]:
    pairs = []
    i, j = len(rows) - 1, width
    while i and j:
        bit = 1 << (j - 1)
        if rows[i] & bit:
            j -= 1
        elif not rows[i - 1] & bit:
            i -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def greedy_pairs(masks: Sequence[int], order: Sequence[int], selective: int) -> dict[int, int]:
    """Pairs in any order, each element taken in `order` with the first free partner, `selective` partners before others.

    This is a largest set when the selective partners fall into classes of equals, the others accept whatever remains, and
    elements that any partner accepts come last in `order`.
    """
    free = reduce(or_, masks, 0)
    pairs: dict[int, int] = {}
    for kind in (selective, ~selective):
        for i in order:
            choice = masks[i] & free & kind
            if choice and i not in pairs:
                bit = choice & -choice
                free ^= bit
                pairs[i] = bit.bit_length() - 1
    return pairs


def maximum_pairs(masks: Sequence[int], blocks: Iterable[Sequence[int]], greedy: Mapping[int, int]) -> dict[int, int]:
    """A largest set of pairs in any order for a relation of any shape, from the `greedy` pairs where those are as many.

    `blocks` are groups of elements of the first sequence that share no partner with other groups. Raises `TooLongError`
    for a block that is too large to search.
    """
    pairs: dict[int, int] = {}
    for block in blocks:
        candidates = {i: masks[i] for i in block if masks[i]}
        found = {i: greedy[i] for i in block if i in greedy}
        reachable = reduce(or_, candidates.values(), 0).bit_count()
        pairs.update(found if len(found) == min(len(candidates), reachable) else _searched(candidates, reachable))
    return pairs


def _searched(candidates: Mapping[int, int], reachable: int) -> dict[int, int]:
    smaller = min(len(candidates), reachable)
    edges = sum(mask.bit_count() for mask in candidates.values())
    if smaller > MAX_BLOCK or edges > MAX_EDGES:
        raise TooLongError(f"{len(candidates)} calls of one tool against {reachable} expected ones ({edges} possible pairs)")
    return load_matching()(candidates)


@cache
def load_matching() -> Matching:
    """Load the search of `maximum_pairs`; its import takes a third of a second, so scorers that need it call this when built."""
    matching: Matching = import_module("scorers.bipartite").maximum_matching
    return matching
