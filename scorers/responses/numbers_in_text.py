"""Finds numbers in text, whatever their format: `1,234.50`, `1.234,50`, `1 234.5`, `12 %`, `1.2k`.

A separator often has two readings: `1,234` is 1234 or 1.234. Both are kept, because a wrong alarm
costs more than a missed one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

_SEPARATORS = ".,'’\u00a0\u202f\u2009"
_CURRENCY = "[$€£¥₹]"
_NUMBER = re.compile(
    rf"(?P<before>{_CURRENCY}\s?)?"
    rf"(?P<digits>\d+(?:[{_SEPARATORS}]\d+|\x20\d{{3}}(?!\d))*)"
    r"(?:[eE](?P<exponent>[+-]?\d{1,2})(?!\d))?"
    r"(?:\s?(?P<percent>[%％]|per\s?cent\b))?"
    r"(?:\s?(?P<scale>k|K|M|bn|(?i:thousand|million|billion|trillion))\b)?"
    rf"(?P<after>\s?(?:{_CURRENCY}|(?:USD|EUR|GBP)\b))?"
)
_SCALES = {
    **dict.fromkeys(("k", "K", "thousand"), 3),
    **dict.fromkeys(("M", "million"), 6),
    **dict.fromkeys(("bn", "billion"), 9),
    "trillion": 12,
}
_ONE = Decimal(1)
_MAX_DIGITS = 400
"""A longer number is no number that anybody reads."""


class Reading(NamedTuple):
    """A value that a number may have, and the size of its last digit, to which it is rounded."""

    value: Decimal
    step: Decimal


class Number(NamedTuple):
    """A number in a text."""

    text: str
    readings: tuple[Reading, ...]
    parts: tuple[str, ...]
    """What it is if its separators do not belong to it: `10,20,30` may be three numbers."""
    is_amount: bool
    """Whether it has decimals, a percent sign, a currency or a scale, so that it counts nothing."""


def numbers(text: str) -> Iterator[tuple[tuple[int, int], Number]]:
    """All numbers of a text with ASCII digits, without signs, each with its start and end."""
    for match in _NUMBER.finditer(text):
        before, digits, exponent, percent, scale, after = match.groups()
        if len(digits) > _MAX_DIGITS:
            continue
        is_marked = bool(before or percent or scale or after)
        if digits.isdigit() and not (exponent or is_marked):  # most numbers
            yield match.span(), Number(digits, (Reading(Decimal(digits), _ONE),), (), False)
            continue
        plain = tuple(_readings(digits))
        power = _power(scale) + int(exponent or 0)
        parts = tuple(re.findall(r"\d+", digits))
        readings = tuple(_with_units(plain, power, bool(scale), bool(percent)))
        yield (
            match.span(),
            Number(
                text=match[0].strip(),
                readings=readings,
                parts=parts if len(parts) > 1 else (),
                is_amount=is_marked or any(one.step < 1 for one in (*plain, *readings)),
            ),
        )


def _with_units(
    plain: Sequence[Reading], power: int, has_scale: bool, has_percent: bool
) -> Iterator[Reading]:
    for reading in plain:
        yield _scaled(reading, power)
        if has_scale:  # `20 M` may be 20 meters
            yield reading
        if has_percent:
            yield _scaled(reading, -2)


def _power(word: str | None) -> int:
    """The power of ten that a word or letter stands for."""
    if word is None:
        return 0
    return _SCALES.get(word) or _SCALES[word.lower()]


def _scaled(reading: Reading, exponent: int) -> Reading:
    if not exponent:  # `scaleb` rounds long numbers
        return reading
    return Reading(reading.value.scaleb(exponent), reading.step.scaleb(exponent))


def _readings(digits: str) -> Iterator[Reading]:
    """The values of digits with separators; none if these cannot belong to one number."""
    groups = re.split(r"\D", digits)
    separators = re.findall(r"\D", digits)
    if not separators:
        yield Reading(Decimal(digits), _ONE)
        return
    last = separators[-1]
    thousands = set(separators)
    if len(thousands) == 1 and _are_thousands(groups):
        yield Reading(Decimal("".join(groups)), _ONE)
    *whole, fraction = groups
    thousands = set(separators[:-1])
    if last in ".," and last not in thousands and len(thousands) <= 1 and _are_thousands(whole):
        value = Decimal(f"{''.join(whole)}.{fraction}")
        yield Reading(value, _ONE.scaleb(-len(fraction)))


def _are_thousands(groups: list[str]) -> bool:
    """Whether the groups are those of one number: `1 234 567`, as in India `12,34,567`, or a single
    group.
    """
    first, *others = groups
    if not others:
        return True
    *lengths, last = map(len, others)
    if first[0] == "0" or last != 3:
        return False
    if {*lengths} == {2}:
        return len(first) <= 2
    return len(first) <= 3 and {*lengths} <= {3}
