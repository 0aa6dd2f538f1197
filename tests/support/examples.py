"""The number of examples of property tests that need other than the default number."""

from __future__ import annotations

from hypothesis import settings

_ALL = 100
_FEWEST = 5


def examples(number: int) -> int:
    """This number in a full run, and less in the same proportion as for all other tests."""
    return max(min(number, _FEWEST), number * settings().max_examples // _ALL)
