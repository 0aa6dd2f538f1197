"""Searches with untrusted regular expressions within limits of size and time.

The patterns come from JSON schemas, so they use JavaScript's syntax. Importing this module loads
regex, which can stop a search after a timeout.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Any

import regex

from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.regex_timeout import matched

MAX_SIZE = 10_000
"""Elements of a pattern with its repeats expanded, as the compiler expands them."""
MAX_TEXT = 10_000
"""Characters of a text that is searched."""
_MAX_SEARCH_S = 0.005
"""CPU time of one search: hundreds of times that of a pattern without backtracking problems."""

_COUNTED = re.compile(r"(.)\{(\d{1,9})", re.DOTALL)
_NOT_JAVASCRIPT = re.compile(r"\(\?(?!:|=|!|<=|<!|<[A-Za-z_$])")
"""Groups that JavaScript does not have."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Compile a pattern. Raises `ValueError` if it is malformed, too large, or not JavaScript's."""
    if _NOT_JAVASCRIPT.search(pattern) or _size(pattern) > MAX_SIZE:
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
    when the search takes too long.
    """
    if len(text) > MAX_TEXT:
        raise TooLongError(
            f"text of {len(text):,} characters for the pattern {pattern[:60]!r}; at most"
            f" {MAX_TEXT:,} are searched"
        )
    try:
        return matched(compiled(pattern).search, text, _MAX_SEARCH_S) is not None
    except TimeoutError as error:
        raise TooLongError(
            f"the pattern {pattern[:60]!r} takes too long on text of {len(text):,} characters"
        ) from error


def _size(pattern: str) -> int:
    """An upper bound: a repeated element adds its count, a repeated group multiplies by it."""
    repeats = [(before == ")", int(count)) for before, count in _COUNTED.findall(pattern)]
    elements = len(pattern) + sum(count for of_group, count in repeats if not of_group)
    return elements * prod(max(1, count) for of_group, count in repeats if of_group)
