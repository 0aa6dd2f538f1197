"""Finds the values of a text that can be looked up elsewhere: numbers, dates, times, phone numbers
and ids.

An id is a word of letters and at least two digits, such as `ORD-1234` or a hash, or a version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pathgauge.scorers.responses.dates_in_text import Date, Minutes, Place, dates, times
from pathgauge.scorers.responses.numbers_in_text import Number, numbers
from pathgauge.scorers.responses.phones_in_text import Phone, phones
from pathgauge.scorers.responses.script_neutral import script_neutral

_WORD = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")
_VERSION = re.compile(r"(?<![\d.,])v?(\d+(?:\.\d+){2,})(?!\d|,\d)", re.IGNORECASE)
_AMOUNT = re.compile(r"\d+(?:[^\W\d_]{1,3}|(?:-[^\W\d_]+)+)")
"""A number with a unit: `10km`, `21st`, `24-hour`."""
_NO_VALUES = re.compile(r"^[\s>*-]{0,20}\d{1,3}[.)](?=\s)|\b24/7\b", re.MULTILINE)
"""Marks of list items, and a phrase."""
_SCIENTIFIC = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)?[eE][+-]?\d{1,2}(?![\w-]|[.,]\d)")
"""`1e6`: a number, though a word of letters and digits."""
_DIGIT = re.compile(r"\d")
_MAX_ID = 200
_MIN_DIGITS = 2


class Value(NamedTuple):
    """A value in a text. It is one of the five; `1e6` is a number or an id."""

    text: str
    number: Number | None = None
    dates: tuple[Date, ...] = ()
    """The readings of a date."""
    time: Minutes | None = None
    id: str | None = None
    """In the form in which ids are compared."""
    phone: Phone | None = None


def values(text: str) -> Iterator[Value]:
    """All values of a text. No part of it counts twice: a date is not three numbers."""
    text = script_neutral(text)
    taken = bytearray(len(text))
    for (start, end), value in _candidates(text):
        if any(taken[start:end]):
            continue
        taken[start:end] = b"\1" * (end - start)
        if value is not None:
            yield value


def ids(text: str) -> Iterator[str]:
    """All words with digits, and their parts, in the form in which ids are compared."""
    for word in _WORD.findall(text):
        if _DIGIT.search(word) and len(word) <= _MAX_ID:
            yield comparable(word)
            yield from (part.casefold() for part in re.split("[-_]", word))
    yield from _VERSION.findall(text)


def comparable(word: str) -> str:
    """The form in which ids are compared: without case and hyphens."""
    return re.sub("[-_]", "", word.casefold())


def _candidates(text: str) -> Iterator[tuple[Place, Value | None]]:
    """Everything that may be a value, the most specific first; `None` for what is none."""
    for mark in _NO_VALUES.finditer(text):
        yield mark.span(), None
    for place, readings in dates(text):
        yield place, Value(text[slice(*place)], dates=readings)
    for place, time in times(text):
        yield place, Value(text[slice(*place)], time=time)
    for place, phone in phones(text):
        yield place, Value(text[slice(*place)], phone=phone)
    for match in _VERSION.finditer(text):
        yield match.span(), Value(match[0], id=match[1])
    yield from _scientific(text)
    for match in _WORD.finditer(text):
        if _is_id(match[0]):
            yield match.span(), Value(match[0], id=comparable(match[0]))
    for place, number in numbers(text):
        yield place, Value(number.text, number=number)


def _scientific(text: str) -> Iterator[tuple[Place, Value]]:
    for match in _SCIENTIFIC.finditer(text):
        for _, number in numbers(match[0]):
            name = comparable(match[0]) if match[0].isalnum() else None
            yield match.span(), Value(match[0], number=number, id=name)


def _is_id(word: str) -> bool:
    if word.isalpha() or len(word) > _MAX_ID or _AMOUNT.fullmatch(word):
        return False
    digits = sum(character.isdigit() for character in word)
    return digits >= _MIN_DIGITS and any(character.isalpha() for character in word)
