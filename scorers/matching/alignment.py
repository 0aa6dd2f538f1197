"""Pairing two sequences: bit masks that say which elements go together come in, a largest set of
pairs comes out.

Bit `j` of `masks[i]` is set when element `i` of the first sequence may pair with element `j` of the
second. Nothing here knows what the elements are. All results are deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class TooLongError(Exception):
    """The sequences are longer, or their values larger, than what is compared online."""


class Counts(NamedTuple):
    """How many calls there are; optional calls of the reference are expected only when they were
    made.
    """

    matched: int
    actual: int
    expected: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which actual call answers which expected call, by index, in the order of the actual calls."""

    pairs: tuple[tuple[int, int], ...]
    """(actual, expected)."""
    missing: tuple[int, ...]
    """Expected calls without a partner that are not optional."""
    unexpected: tuple[int, ...]
    """Actual calls without a partner."""
    counts: Counts
    hoped: Counts
    """The counts if all arguments that were not recorded had been the expected ones."""


def lowest(bits: int) -> int:
    """The position of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def positions(bits: int) -> Iterator[int]:
    """The positions of all bits that are set, in their order."""
    while bits:
        yield lowest(bits)
        bits &= bits - 1


def ordered_pairs(masks: Sequence[int], width: int) -> list[tuple[int, int]]:
    """A largest set of pairs that do not cross: the second sequence has `width` elements."""
    return _walk_back(ordered_rows(masks, width), width)


def ordered_rows(masks: Sequence[int], width: int) -> list[int]:
    """One integer for each beginning of the first sequence: a clear bit `j` says that element `j`
    adds one to the longest alignment.

    This is the longest-common-subsequence recurrence, which holds for any 0/1 relation, on the bits
    of a row.
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
