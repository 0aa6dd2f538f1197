"""Finds the known ids that are most similar to an unknown one.

Comparing it with thousands of ids would stop the scoring for half a second. So only ids that begin
or end like it are compared, or differ in letter case and punctuation alone.
"""

from __future__ import annotations

import difflib
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

MAX_CLOSEST = 3
_MAX_COMPARED = 500
"""So many ids are all compared."""
_NEIGHBOURS = 40
_MAX_CHARS = 200
"""Longer ids are not compared: that takes quadratic time."""


class ClosestIds:
    """Known ids. They are sorted when the first unknown one is looked up."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = tuple(ids)

    def __len__(self) -> int:
        return len(self._ids)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(name for name in self._ids if len(name) <= _MAX_CHARS)

    @cached_property
    def _reversed(self) -> list[str]:
        return sorted(name[::-1] for name in self._sorted)

    @cached_property
    def _by_folded(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name in self._sorted:
            found[_folded(name)].append(name)
        return found

    def of(self, name: str) -> tuple[str, ...]:
        """The known ids that are similar to `name`, the most similar first."""
        if len(name) > _MAX_CHARS:
            return ()
        same = self._by_folded.get(_folded(name), [])
        similar = difflib.get_close_matches(name, self._candidates(name), n=MAX_CLOSEST)
        return tuple(dict.fromkeys([*same, *similar]))[:MAX_CLOSEST]

    def _candidates(self, name: str) -> Iterable[str]:
        if len(self._sorted) <= _MAX_COMPARED:
            return self._sorted
        turned = (other[::-1] for other in _around(name[::-1], self._reversed))
        return dict.fromkeys([*_around(name, self._sorted), *turned])


def _around(name: str, names: list[str]) -> Iterator[str]:
    """The neighbours of a name in a sorted list: those with the longest common beginnings."""
    place = bisect(names, name)
    yield from names[max(place - _NEIGHBOURS, 0) : place + _NEIGHBOURS]


def _folded(name: str) -> str:
    """The letters and digits of a name, without letter case."""
    return "".join(filter(str.isalnum, name.casefold()))
