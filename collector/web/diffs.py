"""Compares two texts word by word.

The texts come from agents, so the time is bounded: only the first `MAX_WORDS` are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

MAX_WORDS = 600
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_TOO_DIFFERENT = 0.25
"""Below this share of equal words, those are chance and only confuse."""


class Piece(NamedTuple):
    """A part of a text."""

    text: str
    differs: bool


def word_diff(expected: str, actual: str) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """Both texts in pieces that are equal or differ."""
    if expected == actual:
        return [Piece(expected, False)], [Piece(actual, False)]
    first, first_rest = _words(expected)
    second, second_rest = _words(actual)
    codes = SequenceMatcher(None, first, second).get_opcodes()  # with autojunk, to bound the time
    if not _is_similar(first, second, codes):
        return [Piece(expected, True)], [Piece(actual, True)]
    differs = first_rest != second_rest
    return (
        _pieces(((tag, first[i:j]) for tag, i, j, _, _ in codes), first_rest, differs),
        _pieces(((tag, second[i:j]) for tag, _, _, i, j in codes), second_rest, differs),
    )


def _is_similar(
    first: Sequence[str], second: Sequence[str], codes: Iterable[tuple[str, int, int, int, int]]
) -> bool:
    """Whether enough words are equal. White space says nothing."""
    equal = sum(
        not word.isspace() for tag, i, j, _, _ in codes if tag == "equal" for word in first[i:j]
    )
    words = max(sum(not word.isspace() for word in side) for side in (first, second))
    return equal >= _TOO_DIFFERENT * words


def _words(text: str) -> tuple[list[str], str]:
    """The first words, and the rest of the text."""
    found: list[str] = []
    end = 0
    for match in _WORDS.finditer(text):
        if len(found) == MAX_WORDS:
            break
        found.append(match[0])
        end = match.end()
    return found, text[end:]


def _pieces(
    parts: Iterable[tuple[str, Sequence[str]]], rest: str, rest_differs: bool
) -> Sequence[Piece]:
    found = [Piece("".join(words), tag != "equal") for tag, words in parts if words]
    if rest:
        found.append(Piece(rest, rest_differs))
    return list(_joined(found))


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """White space between two pieces that differ belongs to them."""
    differs = [
        piece.differs or (piece.text.isspace() and 0 < at < len(pieces) - 1)
        for at, piece in enumerate(pieces)
    ]
    for differing, group in groupby(zip(pieces, differs, strict=True), key=lambda pair: pair[1]):
        yield Piece("".join(piece.text for piece, _ in group), differing)
