"""The number of examples of property tests that need other than the default number."""

from __future__ import annotations

from hypothesis import settings

_ALL = 100
_FEWEST = 5


def examples(number: int, fewer: int | None = None) -> int:
    """This number in a full run, and less in the same proportion as for all other tests, or
    `fewer`, where an example takes long.
    """
    share = settings().max_examples
    most = number if fewer is None or share >= _ALL else fewer
    return min(most, max(min(number, _FEWEST), number * share // _ALL))
