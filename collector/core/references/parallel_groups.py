"""Groups of expected calls whose order does not matter.

A format lists such calls together; an `ExpectedCall` carries the number of its group. These
functions convert between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, groupby

from pathgauge.scorers.types import ExpectedCall


def joined(steps: Iterable[Sequence[ExpectedCall]]) -> tuple[ExpectedCall, ...]:
    """All calls in order. The calls of a step with several calls share a group, numbered from 0."""
    numbers = count()
    calls: list[ExpectedCall] = []
    for step in steps:
        group = next(numbers) if len(step) > 1 else None
        calls.extend(call if call.group == group else replace(call, group=group) for call in step)
    return tuple(calls)


def steps(calls: Iterable[ExpectedCall]) -> Iterator[tuple[ExpectedCall, ...]]:
    """The inverse of `joined`: the calls of a group together, every other call alone."""
    for group, run in groupby(calls, key=lambda call: call.group):
        if group is None:
            yield from ((call,) for call in run)
        else:
            yield tuple(run)
