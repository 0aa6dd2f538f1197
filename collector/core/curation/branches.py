"""Divides runs into ways that are equally good: the alternatives of a reference.

Two steps that come together, or exclude each other, in (nearly) all runs belong to different ways;
steps that come independently of each other are optional.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from pathgauge.collector.core.curation.minority import Budget, Cut, bound, rare
from pathgauge.collector.core.curation.runs import Runs, Step, steps_of

_MAX_DEPTH = 3
_EXPECTED = 8
"""Runs that a combination of steps should have by chance, to notice that it is absent."""
_ABSENT = 0.2
"""Of that expectation."""


def ways(runs: Runs, numbers: Sequence[int], budget: Budget, depth: int = 0) -> list[list[int]]:
    """The runs of each way, the most frequent way first. Runs with steps that few others have, or
    without steps that nearly all have, are set aside.
    """
    budget.take(_rare_steps(runs, numbers, budget.share))
    kept = budget.kept(numbers)
    step = _dividing(runs, kept, budget.share) if depth < _MAX_DEPTH else None
    if step is None:
        return [kept]
    halves = [
        [number for number in kept if (step in runs[number].calls) is present]
        for present in (True, False)
    ]
    found = [way for half in halves for way in ways(runs, half, budget, depth + 1)]
    return sorted(found, key=lambda way: (-len(way), way))


def _rare_steps(runs: Runs, numbers: Sequence[int], share: float) -> Iterator[Cut]:
    for step in steps_of(runs, numbers):
        present = {number for number in numbers if step in runs[number].calls}
        groups = {"calls": present, "does not call": set(numbers) - present}
        for verb in rare(groups, share):
            yield Cut(frozenset(groups[verb]), f"{verb} {step}")


def _dividing(runs: Runs, numbers: Sequence[int], share: float) -> Step | None:
    """The most frequent step that another one depends on."""
    limit = bound(len(numbers), share)
    having = {
        step: frozenset(number for number in numbers if step in runs[number].calls)
        for step in steps_of(runs, numbers)
    }
    unsure = {
        step: some for step, some in having.items() if limit < len(some) < len(numbers) - limit
    }
    dividing = [
        max(pair, key=lambda step: (len(unsure[step]), step))
        for pair in combinations(unsure, 2)
        if pair[0].tool != pair[1].tool
        and _depend(unsure[pair[0]], unsure[pair[1]], frozenset(numbers))
    ]
    return max(dividing, key=lambda step: (len(unsure[step]), step), default=None)


def _depend(one: frozenset[int], other: frozenset[int], every: frozenset[int]) -> bool:
    """Whether a combination of the two is absent that chance would have shown."""
    for first in (one, every - one):
        for second in (other, every - other):
            expected = len(first) * len(second) / len(every)
            if expected >= _EXPECTED and len(first & second) <= _ABSENT * expected:
                return True
    return False
