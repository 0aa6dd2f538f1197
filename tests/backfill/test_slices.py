"""Time is cut into slices that have neither too many traces nor so few that nothing is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pathgauge.collector.service.backfill.history import (
    Found,
    PastTrace,
    SourceError,
    TooManyError,
)
from pathgauge.collector.service.backfill.slices import FIRST, SECOND, slices

LIMIT = 8


@dataclass
class Memory:
    """A source that holds traces of no length in memory."""

    starts: Sequence[int]
    name: str = "memory"

    def read(self, since: int, until: int, limit: int) -> Found:
        """The traces of this time."""
        found = [start for start in self.starts if since <= start < until]
        if len(found) > limit:
            raise TooManyError
        return Found([PastTrace(f"{start:032x}", start, start, ()) for start in found])

    def begin(self, since: int, until: int) -> int:
        """Not known."""
        return since

    def close(self) -> None:
        """Nothing is open."""


def cut(starts: Sequence[int], until: int, length: int = FIRST) -> list[tuple[int, int, int]]:
    """The slices: the first second, the number of seconds, and that of traces."""
    return [
        (one.since // SECOND, (one.until - one.since) // SECOND, len(one.found.traces))
        for one in slices(Memory(starts), 0, until * SECOND, LIMIT, length)
    ]


def every(seconds: float, until: int) -> list[int]:
    return [int(number * seconds * SECOND) for number in range(int(until / seconds))]


def test_slices_double_while_there_are_few_traces_up_to_an_hour() -> None:
    found = cut([], 3 * 3600 + 60)
    assert [seconds for _, seconds, _ in found] == [60, 120, 240, 480, 960, 1920, 3600, 3480]


def test_slices_keep_their_length_when_they_have_a_quarter_of_the_limit() -> None:
    assert cut(every(30, 300), 300) == [(second, 60, 2) for second in range(0, 300, 60)]


def test_slices_with_too_many_traces_are_halved() -> None:
    found = cut(every(5, 120), 120)
    assert found == [(second, 30, 6) for second in range(0, 120, 30)]


def test_a_second_may_have_many_times_the_limit_but_not_any_number() -> None:
    busy = [number for number in range(64 * LIMIT)]
    assert cut([*busy, SECOND], 2) == [(0, 1, 64 * LIMIT), (1, 1, 1)]
    with pytest.raises(SourceError, match="found more than 512 traces within a second"):
        cut([*busy, 64 * LIMIT], 2)


def test_a_busy_second_does_not_raise_the_limit_of_the_next_slices() -> None:
    busy = [number for number in range(2 * LIMIT)]
    crowded = [10 * SECOND + number * SECOND // 10 for number in range(12)]
    found = cut([*busy, *crowded], 12, length=SECOND)
    assert [one for one in found if one[2] > LIMIT] == [(0, 1, 2 * LIMIT), (10, 1, 10)]
