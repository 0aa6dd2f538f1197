"""Learns the order of steps: which always come in the same order, and which in any.

"Came before" in some run is a relation between steps. Steps that reach each other in it, such as
two that came in both orders, form a block; the blocks have an order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from pathgauge.collector.core.curation.minority import Cut, rare
from pathgauge.collector.core.curation.runs import Run, Runs, Step

_OF_A_WAY = 2
"""Bad runs may be so many times as frequent in one way as in all runs. Steps that really come in
any order come in each order more often.
"""


def rare_orders(runs: Runs, numbers: Sequence[int], share: float) -> Iterator[Cut]:
    """Runs with two steps in the order that is rare."""
    before = _before(runs, numbers)
    for first, second in before:
        groups = {
            (first, second): before[first, second],
            (second, first): before.get((second, first), set()),
        }
        for unusual in rare(groups, _OF_A_WAY * share):
            if groups[unusual]:
                why = f"calls {unusual[0]} before {unusual[1]}"
                yield Cut(frozenset(groups[unusual]), why)


def blocks(runs: Runs, numbers: Sequence[int]) -> list[list[Step]]:
    """The steps of the runs in order; those of a block come in any order."""
    steps, places = _places(runs, numbers)
    after: dict[Step, set[Step]] = defaultdict(set)
    for first, second in _before(runs, numbers):
        after[first].add(second)
    for first, second in _parallel(runs, numbers):
        after[first].add(second)
        after[second].add(first)
    reach = {step: _reachable(step, after) for step in steps}
    found: list[list[Step]] = []
    for step in steps:
        block = next(
            (one for one in found if step in reach[one[0]] and one[0] in reach[step]), None
        )
        if block is None:
            found.append([step])
        else:
            block.append(step)
    return _sorted(found, reach, places)


def _sorted(
    found: list[list[Step]], reach: Mapping[Step, set[Step]], places: Mapping[Step, float]
) -> list[list[Step]]:
    """Each block behind those that reach it; among the others, the one that comes earlier."""
    waiting = sorted(found, key=lambda block: (min(places[step] for step in block), block))
    ordered: list[list[Step]] = []
    while waiting:
        block = next(
            one
            for one in waiting
            if not any(one[0] in reach[other[0]] for other in waiting if other is not one)
        )
        waiting.remove(block)
        ordered.append(block)
    return ordered


def _places(runs: Runs, numbers: Sequence[int]) -> tuple[list[Step], dict[Step, float]]:
    """The steps by their mean place in a run."""
    places: dict[Step, list[int]] = defaultdict(list)
    for number in numbers:
        for place, step in enumerate(runs[number].calls):
            places[step].append(place)
    means = {step: sum(some) / len(some) for step, some in places.items()}
    return sorted(means, key=lambda step: (means[step], step)), means


def _before(runs: Runs, numbers: Sequence[int]) -> dict[tuple[Step, Step], set[int]]:
    """The runs in which a step came before another one, and not in the same message."""
    found: dict[tuple[Step, Step], set[int]] = defaultdict(set)
    for number in numbers:
        for pair in combinations(runs[number].calls, 2):
            if not _together(runs[number], *pair):
                found[pair].add(number)
    return dict(found)


def _parallel(runs: Runs, numbers: Sequence[int]) -> Iterator[tuple[Step, Step]]:
    """Steps that one message of the model requested: their order has no meaning."""
    seen = dict.fromkeys(
        pair
        for number in numbers
        for pair in combinations(runs[number].calls, 2)
        if _together(runs[number], *pair)
    )
    yield from seen


def _together(run: Run, first: Step, second: Step) -> bool:
    group = run.calls[first].group
    return group is not None and group == run.calls[second].group


def _reachable(start: Step, after: Mapping[Step, set[Step]]) -> set[Step]:
    found: set[Step] = set()
    pending = [start]
    while pending:
        fresh = after.get(pending.pop(), set()) - found
        found |= fresh
        pending += fresh
    return found
