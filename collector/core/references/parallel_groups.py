"""Groups of calls whose order does not matter: pieces of a trajectory come in, numbered calls go
out, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, groupby

from pathgauge.scorers.types import ExpectedCall


def joined(pieces: Iterable[Sequence[ExpectedCall]]) -> tuple[ExpectedCall, ...]:
    """All calls in order; those of one piece share a group, numbered from 0, when there are
    several.
    """
    numbers = count()
    calls: list[ExpectedCall] = []
    for piece in pieces:
        group = next(numbers) if len(piece) > 1 else None
        calls.extend(replace(call, group=group) for call in piece)
    return tuple(calls)


def pieces(calls: Iterable[ExpectedCall]) -> Iterator[tuple[ExpectedCall, ...]]:
    """The calls of one group together, every other call alone."""
    for group, run in groupby(calls, key=lambda call: call.group):
        together = tuple(run)
        yield from [together] if group is not None else [(call,) for call in together]
