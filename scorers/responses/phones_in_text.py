"""Finds phone numbers in text, and other long numbers whose digits are written in groups, such as
those of cards: `+1 415-555-2671`, `(030) 1234567`, `138 0013 8000`, `4111-1111-1111-1111`.

Ranges, lists and numbers with separators of thousands have groups, too. So a number is only taken
for one of these if it begins with `+`, `0` or a parenthesis, has three groups with hyphens, or has
groups as they are usual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_GAP = "[ \u00a0\u2010\u2011/.-]"
_GROUPS = re.compile(
    rf"(?<![\w.,])(?<!\w-)(?:\+|\((?=\d\d))?\d{{1,8}}"
    rf"(?:(?:\){_GAP}?|{_GAP}?\(|{_GAP})\d{{1,12}}){{1,7}}(?![\w-]|[.,]\d)"
)
_PLAIN = re.compile(r"(?<![\w.,])(\+?)(\d{7,19})(?![\w-]|[.,]\d)")
_USUAL = {(3, 3, 4), (3, 4, 4), (4, 4, 4, 4)}
_MIN_DIGITS, _MAX_DIGITS = 7, 19
_TRUNK = "(0)"
"""The zero that is only dialled inside the country: `+49 (0)30 1234567`."""
_MAX_COUNTRY_CODE = 3


class Phone(NamedTuple):
    """A number in groups."""

    digits: str
    """Without the zeros at the beginning."""
    has_country_code: bool = False
    groups: tuple[str, ...] = ()

    @property
    def national(self) -> frozenset[str]:
        """What the digits may be without the country code."""
        if not self.has_country_code:
            return frozenset()
        rests = (self.digits[cut:].lstrip("0") for cut in range(1, _MAX_COUNTRY_CODE + 1))
        return frozenset(rest for rest in rests if len(rest) >= _MIN_DIGITS)


class Phones:
    """Numbers that are known, in whatever groups."""

    def __init__(self, text: str) -> None:
        known = [*(phone for _, phone in phones(text)), *_plain(text)]
        self._full = {phone.digits for phone in known if phone.has_country_code}
        self._plain = {phone.digits for phone in known if not phone.has_country_code}
        self._national = frozenset().union(*(phone.national for phone in known))

    def has(self, phone: Phone) -> bool:
        """Whether the number is known. One side may leave out the country code."""
        if phone.has_country_code:
            return phone.digits in self._full or not self._plain.isdisjoint(
                {phone.digits, *phone.national}
            )
        return phone.digits in self._plain | self._full | self._national


def phones(text: str) -> Iterator[tuple[tuple[int, int], Phone]]:
    """All numbers in groups, each with its start and end, in text with ASCII digits."""
    for match in _GROUPS.finditer(text):
        if _is_one(match[0]):
            yield match.span(), _read(match[0])


def plain(digits: str) -> Phone | None:
    """A number without groups; `None` if it is too short or too long."""
    if not _MIN_DIGITS <= len(digits) <= _MAX_DIGITS:
        return None
    return Phone(digits.lstrip("0"))


def _plain(text: str) -> Iterator[Phone]:
    for plus, digits in _PLAIN.findall(text):
        yield Phone(digits.lstrip("0"), bool(plus))


def _read(written: str) -> Phone:
    groups = tuple(re.findall(r"\d+", written))
    digits = "".join(re.findall(r"\d+", written.replace(_TRUNK, " ")))
    return Phone(digits.lstrip("0"), written.startswith("+"), groups)


def _is_one(written: str) -> bool:
    groups = re.findall(r"\d+", written)
    if not _MIN_DIGITS <= sum(map(len, groups)) <= _MAX_DIGITS:
        return False
    if written[0] in "+(" or (written[0] == "0" and len(groups[0]) > 1):
        return True
    if tuple(map(len, groups)) in _USUAL:
        return True
    return len(groups) >= 3 and {*re.findall(r"\D", written)} <= {*"-\u2010\u2011"}
