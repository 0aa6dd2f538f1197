"""Finds dates and times of day in text: `2026-01-05`, `5 January 2026`, `Jan 5`, `2:30 PM`,
`下午2:30`.

Names of months are English, or numbers as in `1月5日`. A date like `01/02/2026` has two readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from pathgauge.scorers.responses.script_neutral import CLOCK, DATE, MORNING, NIGHT, NOON

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\d:])"
_YEAR = r"(?:,?\s+(?P<year>\d{4})(?!\d))"
_DATES = (
    re.compile(r"(?<![\d./-])(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?<![\d./-])(?P<a>\d{1,2})([-/.])(?P<b>\d{1,2})\2(?P<year>\d{4}|\d{2})(?![\d/-])"),
    re.compile(rf"(?<!\d){_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\s+{_DAY}{_YEAR}?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}{_YEAR}", re.IGNORECASE),
    re.compile(DATE),
)
_TIMES = (
    re.compile(
        r"(?<![\d:])(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2}(?:\.\d{1,9})?)?(?![\d:])"
        r"(?:\s?(?P<half>[ap])\.?m\b\.?)?",
        re.IGNORECASE,
    ),
    re.compile(r"(?<![\d:.,])(?P<hour>\d{1,2})\s?(?P<half>[ap])\.?m\b\.?", re.IGNORECASE),
)


_CLOCK = re.compile(CLOCK)
_LATE = 5
"""The hour at which the night is over."""
_FORENOON = 9
"""The last hour that is not called noon."""


class Date(NamedTuple):
    """A date, of which a part may be missing."""

    year: int | None
    month: int
    day: int | None


Minutes: TypeAlias = int
"""A time of day: minutes since midnight."""
Place: TypeAlias = tuple[int, int]
"""Start and end in the text."""


def dates(text: str) -> Iterator[tuple[Place, tuple[Date, ...]]]:
    """All dates, each with its readings."""
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if readings := tuple(filter(_is_valid, _readings(match.groupdict()))):
                yield match.span(), readings


def times(text: str) -> Iterator[tuple[Place, Minutes]]:
    """All times of day."""
    hours = set()
    for match in _CLOCK.finditer(text):
        if (time := _with_part_of_day(match)) is not None:
            hours.add(match.start("hour"))
            yield match.span(), time
    for pattern in _TIMES:
        for match in pattern.finditer(text):
            if match.start("hour") in hours:
                continue
            groups = match.groupdict()
            hour, minute = int(groups["hour"]), int(groups.get("minute") or 0)
            if half := groups["half"]:
                hour = hour % 12 + (12 if half in "pP" else 0)
            if hour <= 24 and minute < 60:
                yield match.span(), hour * 60 + minute


def _with_part_of_day(match: re.Match[str]) -> Minutes | None:
    part, hour = match["part"], int(match["hour"])
    minute = 30 if match["half"] else int(match["minute"] or match["spoken"] or 0)
    if hour > (12 if part in MORNING else 24) or minute >= 60:
        return None
    if part == NOON and hour > _FORENOON:
        return hour * 60 + minute
    if part in MORNING or (part in NIGHT and hour % 12 < _LATE):
        return hour % 12 * 60 + minute
    return (hour % 12 + 12) * 60 + minute


def _readings(groups: dict[str, str | None]) -> Iterator[Date]:
    year = _year(groups["year"])
    if a := groups.get("a"):
        b = groups["b"] or ""
        yield from (Date(year, int(b), int(a)), Date(year, int(a), int(b)))
        return
    month, day = groups["month"] or "", groups.get("day")
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    yield Date(year, number, int(day) if day else None)


def _year(written: str | None) -> int | None:
    if written is None:
        return None
    year = int(written)
    if len(written) == 2:
        year += 2000 if year < 70 else 1900
    return year


def _is_valid(date: Date) -> bool:
    return 1 <= date.month <= 12 and (date.day is None or 1 <= date.day <= 31)
