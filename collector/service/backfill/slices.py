"""Cuts a period into slices, each with so few traces that they fit into memory.

How many traces an hour has is not known before. A slice with too many is halved, and the next ones
become longer while there are few. When a trace arrives depends on its slice, so a backfill that is
resumed goes on with slices of the same length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pathgauge.collector.service.backfill.history import Found, Source, SourceError, TooManyError

SECOND = 1_000_000_000
MICROSECOND = 1_000
MAX_TRACES = 1_000
"""In a slice."""
FIRST = 60 * SECOND
_SHORTEST = SECOND
"""Tempo searches by whole seconds."""
_LONGEST = 3600 * SECOND
"""So progress is made durable, and shown, also where there is no traffic."""
_HIGHEST = 64
"""How many times as many traces a second may have."""


class Slice(NamedTuple):
    """The traces that began in a part of the period. Times in Unix nanoseconds."""

    since: int
    until: int
    found: Found
    next_length: int
    """The length of the next slice, if it has not too many traces."""


def slices(
    source: Source, since: int, until: int, limit: int = MAX_TRACES, length: int = FIRST
) -> Iterator[Slice]:
    """The slices in the order of time; `length` is that of the first. Raises `SourceError`."""
    factor = 1
    while since < until:
        end = min(since + length, until)
        try:
            found = source.read(since, end, limit * factor)
        except TooManyError as error:
            if length > _SHORTEST:
                length = max(length // 2 // MICROSECOND * MICROSECOND, _SHORTEST)
            elif factor < _HIGHEST:
                factor *= 2
            else:
                text = f"found more than {limit * factor} traces within a second, expected fewer"
                raise SourceError(f"{source.name}: {text}") from error
            continue
        if len(found.traces) < limit // 4:
            length = min(2 * length, _LONGEST)
        yield Slice(since, end, found, length)
        since, factor = end, 1
