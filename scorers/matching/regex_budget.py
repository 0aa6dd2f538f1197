"""Regular expressions that nobody vouches for: a pattern and a text come in, whether the pattern
occurs in the text goes out.

The patterns are those of JSON schemas, so they are written as JavaScript does. Importing this
module loads regex, whose searches can be stopped.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Any

import regex

from pathgauge.scorers.matching.alignment import TooLongError

MAX_SIZE = 10_000
"""Elements of a pattern once its repeats are written out, which is what compiling it does."""
MAX_TEXT = 10_000
"""Characters of a text that is searched."""
_SECONDS = 0.005
"""Processor time of one search: hundreds of times what a pattern takes that does not explode."""

_COUNTED = re.compile(r"(.)\{(\d{1,9})", re.DOTALL)
_FOREIGN = re.compile(r"\(\?(?!:|=|!|<=|<!|<[A-Za-z_$])")
"""Groups that JavaScript does not have."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The pattern, ready for `occurs`. Raises `ValueError` when it is wrong, is not JavaScript's,
    or is too large.
    """
    if _FOREIGN.search(pattern) or _size(pattern) > MAX_SIZE:
        raise ValueError(
            f"found the pattern {pattern[:60]!r}, expected one of JavaScript's with at most"
            f" {MAX_SIZE:,} elements"
        )
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"found {pattern[:60]!r}, expected a pattern: {error}") from error


def occurs(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text. Raises `TooLongError` for text beyond `MAX_TEXT`, and
    when the pattern explodes.
    """
    if len(text) > MAX_TEXT:
        raise TooLongError(
            f"text of {len(text):,} characters for the pattern {pattern[:60]!r}; at most"
            f" {MAX_TEXT:,} are searched"
        )
    try:
        return compiled(pattern).search(text, timeout=_SECONDS) is not None
    except TimeoutError as error:
        raise TooLongError(
            f"the pattern {pattern[:60]!r} takes too long on text of {len(text):,} characters"
        ) from error


def _size(pattern: str) -> int:
    """An upper bound: the repeat of an element adds, the repeat of a group multiplies."""
    repeats = [(before == ")", int(count)) for before, count in _COUNTED.findall(pattern)]
    elements = len(pattern) + sum(count for of_group, count in repeats if not of_group)
    return elements * prod(max(1, count) for of_group, count in repeats if of_group)
