"""How the tool calls of an invocation deviate from its reference, by the details of a score.

Trajectory scorers list missing and unexpected calls. A call on both lists was either made with
other arguments, or at another place. If the details do not tell which, its pair crosses that of
another call in the latter case.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import NamedTuple

from pathgauge.collector.core.documents.adapters import adapter
from pathgauge.collector.core.evidence.signatures import short_name
from pathgauge.scorers.types import Json


@dataclass(frozen=True, slots=True)
class _Details:
    """What `pathgauge.scorers.matching.explanations` writes."""

    matched: list[tuple[int, int, str]]
    missing: list[tuple[int, str]]
    unexpected: list[tuple[int, str]]
    different: list[tuple[int, int, str, Mapping[str, Json]]] = field(default_factory=list)
    moved: list[tuple[int, int, str]] = field(default_factory=list)
    not_recorded: list[tuple[int, int, str]] = field(default_factory=list)


class _Pair(NamedTuple):
    """An actual call and the expected call that it stands for."""

    actual: int
    expected: int
    tool: str


@dataclass(frozen=True, slots=True)
class Deviation:
    """The calls that are not as expected. Calls are tuples of position and tool; missing calls have
    a position in the reference.
    """

    missing: tuple[tuple[int, str], ...]
    unexpected: tuple[tuple[int, str], ...]
    """Calls that stand for no expected call."""
    differing: tuple[tuple[int, str, tuple[str, ...]], ...]
    """Calls with other arguments, and the names of those; none if they are not known."""
    unrecorded: tuple[tuple[int, str], ...]
    """Calls without recorded arguments, which may be right or wrong."""
    moved: tuple[tuple[int, str], ...]
    """Expected calls at another place."""
    last_matched: int
    """Position in the reference of the last expected call that was made, or may have been made; -1
    without one.
    """

    @property
    def extent(self) -> int:
        """How many single findings there are."""
        arguments = sum(max(1, len(names)) for _, _, names in self.differing)
        calls = (self.missing, self.unexpected, self.unrecorded, self.moved)
        return sum(map(len, calls)) + arguments

    @property
    def not_as_expected(self) -> frozenset[int]:
        """Positions of the actual calls that the agent should not have made like this."""
        differing = ((at, tool) for at, tool, _ in self.differing)
        return frozenset(at for at, _ in chain(self.unexpected, differing, self.moved))

    @property
    def ends_early(self) -> bool:
        """Whether calls are missing at the end of the reference, and all else is as expected."""
        return bool(self.missing) and not self.not_as_expected and self._lacks_the_end()

    def _lacks_the_end(self) -> bool:
        return min(at for at, _ in self.missing) > self.last_matched

    def parts(self) -> Iterator[str]:
        """The findings in words. They name tools and arguments and contain no values."""
        yield from (f"{short_name(tool)} missing" for _, tool in self.missing)
        for _, tool, names in self.differing:
            yield from (f"{short_name(tool)}.{short_name(name)} differs" for name in names)
            if not names:
                yield f"{short_name(tool)} arguments differ"
        yield from sorted(
            f"{short_name(tool)} arguments not recorded" for _, tool in self.unrecorded
        )
        yield from sorted(f"{short_name(tool)} out of order" for _, tool in self.moved)
        yield from sorted(f"{short_name(tool)} unexpected" for _, tool in self.unexpected)


def deviation(details: Mapping[str, Json]) -> Deviation | None:
    """The deviation that the details of a score describe; `None` for other details, and if there is
    none.
    """
    try:
        read = adapter(_Details).validate_python(dict(details))
    except (TypeError, ValueError):  # a scorer may put anything there
        return None
    found = _deviation(read)
    return found if found.extent else None


def _deviation(details: _Details) -> Deviation:
    different = details.different
    matched = [_Pair(*pair) for pair in details.matched]
    paired = [_Pair(i, j, tool) for i, j, tool, _ in different]
    paired += [_Pair(*call) for call in (*details.moved, *details.not_recorded)]
    differing = [(i, tool, tuple(sorted(names))) for i, _, tool, names in different]
    pairs, missing, unexpected = _paired_by_name(
        _without(details.missing, {pair.expected for pair in paired}),
        _without(details.unexpected, {pair.actual for pair in paired}),
    )
    moved = {*_crossing(pairs, matched), *(_Pair(*call) for call in details.moved)}
    differing += [(pair.actual, pair.tool, ()) for pair in pairs if pair not in moved]
    return Deviation(
        missing,
        unexpected,
        tuple(sorted(differing)),
        tuple(sorted((i, tool) for i, _, tool in details.not_recorded)),
        tuple(sorted((pair.actual, pair.tool) for pair in moved)),
        max((j for _, j, _ in (*matched, *details.not_recorded)), default=-1),
    )


def _without(calls: Iterable[tuple[int, str]], positions: set[int]) -> tuple[tuple[int, str], ...]:
    return tuple(call for call in calls if call[0] not in positions)


def _paired_by_name(
    missing: Sequence[tuple[int, str]], unexpected: Sequence[tuple[int, str]]
) -> tuple[list[_Pair], tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """Missing and unexpected calls of the same tool as pairs, and the remaining ones."""
    by_tool: dict[str, deque[int]] = defaultdict(deque)
    for j, tool in missing:
        by_tool[tool].append(j)
    pairs = [_Pair(i, by_tool[tool].popleft(), tool) for i, tool in unexpected if by_tool[tool]]
    return (
        pairs,
        _without(missing, {pair.expected for pair in pairs}),
        _without(unexpected, {pair.actual for pair in pairs}),
    )


def _crossing(pairs: Iterable[_Pair], matched: Iterable[_Pair]) -> Iterator[_Pair]:
    """The pairs that are in another order than some matched pair. A pair of equal calls that
    crosses none would be matched itself.
    """
    ordered = sorted(matched)
    expected = [pair.expected for pair in ordered]
    highest_before = [*accumulate(expected, max, initial=-1)]
    lowest_after = [*accumulate(reversed(expected), min, initial=sys.maxsize)][::-1]
    positions = [pair.actual for pair in ordered]
    for pair in pairs:
        at = bisect_left(positions, pair.actual)
        if highest_before[at] > pair.expected or lowest_after[at] < pair.expected:
            yield pair
