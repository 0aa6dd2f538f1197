"""Shared wording of explanations: one line, of limited length."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sized

_BEFORE = 10
"""Characters that are shown before the first difference of two long texts."""


def one_line(text: str) -> str:
    """The text with single blanks in place of line breaks and other white space."""
    return " ".join(text.split())


def cut(text: str, max_length: int) -> str:
    """The text, cut to at most `max_length` characters."""
    if len(text) <= max_length:
        return text
    return f"{text[: max_length - 1]}…"


def first_difference(one: str, other: str) -> int:
    """The position of the first character that differs, or the end of the shorter text."""
    return bisect_left(
        range(min(len(one), len(other))),
        True,
        key=lambda last: one[: last + 1] != other[: last + 1],
    )


def cut_apart(one: str, other: str, max_length: int) -> tuple[str, str]:
    """Two different texts, each cut to at most `max_length` characters, so that the parts differ:
    long texts often begin in the same way.
    """
    if cut(one, max_length) != cut(other, max_length):
        return cut(one, max_length), cut(other, max_length)
    start = max(0, first_difference(one, other) - _BEFORE)
    return cut(f"…{one[start:]}", max_length), cut(f"…{other[start:]}", max_length)


def told_apart(one: str, other: str) -> tuple[str, str]:
    """Two different texts with escapes in place of all but ASCII characters, if they would look the
    same on one line.
    """
    if one == other or _appearance(one) != _appearance(other):
        return one, other
    return _escaped(one), _escaped(other)


def _appearance(text: str) -> str:
    visible = (char for char in text if unicodedata.category(char) != "Cf")
    return one_line(unicodedata.normalize("NFKC", "".join(visible)))


def _escaped(text: str) -> str:
    return "".join(
        char if char == "…" else char.encode("ascii", "backslashreplace").decode() for char in text
    )


def short(value: object) -> str:
    """A value as Python writes it, for messages, cut to 60 characters."""
    return cut(repr(value), 60)


def and_more(items: Sized) -> str:
    """For instance `, and 2 more`, for an explanation that shows only the first of the items."""
    if len(items) <= 1:
        return ""
    return f", and {len(items) - 1} more"


def counted(count: int, noun: str) -> str:
    """For instance `1 tool call`, `2 tool calls`."""
    return f"{count} {plural(count, noun)}"


def plural(count: int, noun: str) -> str:
    """The form of the noun behind this count. One whose plural is formed in another way is `y`
    for `ies` behind a consonant.
    """
    if count == 1:
        return noun
    return f"{noun[:-1]}ies" if re.search(r"[^aeiou]y$", noun) else f"{noun}s"
