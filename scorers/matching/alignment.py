"""Pairs the elements of two sequences in order: a longest common subsequence on bit masks.

Bit `j` of `masks[i]` is set if element `i` of the first sequence may pair with element `j` of the
second. Nothing here knows what the elements are. All results are deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class TooLongError(Exception):
    """The sequences or their values are too large to compare while traffic waits."""


class Counts(NamedTuple):
    """Numbers of calls. Optional calls of a reference are expected only if they were made."""

    matched: int
    actual: int
    expected: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which actual call matches which expected call, by index, in the order of the actual calls."""

    pairs: tuple[tuple[int, int], ...]
    """(actual, expected)."""
    missing: tuple[int, ...]
    """Expected calls that are not optional and match no actual call."""
    unexpected: tuple[int, ...]
    """Actual calls that match no expected call."""
    counts: Counts
    best_case: Counts
    """The counts if all arguments that were not recorded had been the expected ones."""


def lowest(bits: int) -> int:
    """The position of the lowest set bit."""
    return (bits & -bits).bit_length() - 1


def positions(bits: int) -> Iterator[int]:
    """The positions of all set bits, in ascending order."""
    while bits:
        yield lowest(bits)
        bits &= bits - 1


def ordered_pairs(masks: Sequence[int], width: int) -> list[tuple[int, int]]:
    """A largest set of pairs that do not cross. The second sequence has `width` elements."""
    return _walk_back(ordered_rows(masks, width), width)


def ordered_rows(masks: Sequence[int], width: int) -> list[int]:
    """One integer for each prefix of the first sequence. A clear bit `j` means that element `j`
    makes the longest alignment one longer.

    This is the bit-parallel recurrence of the longest common subsequence, which holds for any 0/1
    relation.
    """
    full = (1 << width) - 1
    rows = [full]
    for mask in masks:
        row = rows[-1]
        hit = row & mask
        rows.append(((row + hit) | (row - hit)) & full)
    return rows


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
