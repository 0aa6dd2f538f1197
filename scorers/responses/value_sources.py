"""Looks values up in what an agent was told: tool results and the input of the user."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property

from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.responses.dates_in_text import Date, Minutes, dates, times
from pathgauge.scorers.responses.numbers_in_text import Number, Reading, numbers
from pathgauge.scorers.responses.phones_in_text import Phone, Phones, plain
from pathgauge.scorers.responses.script_neutral import script_neutral
from pathgauge.scorers.responses.values_in_text import Value, ids
from pathgauge.scorers.types import Json

MAX_TEXT = 200_000
"""Characters of all sources."""
_MIN_PREFIX = 7
"""Characters of the beginning of an id that stand for the id, as of a commit."""
_MAX_EXACT_DIGITS = 20
"""Longer numbers are ids, which nobody rounds."""


class Sources:
    """Values that are known. Each kind is collected when the first value of it is looked up."""

    def __init__(self, sources: Iterable[Json]) -> None:
        """`sources`: texts and other JSON values. Raises `TooLongError`."""
        texts, length = [], 0
        for text in _texts(sources):
            length += len(text) + 1
            if length > MAX_TEXT:
                raise TooLongError(f"tool results of more than {MAX_TEXT:,} characters")
            texts.append(script_neutral(text))
        self._text = "\n".join(texts)

    def has(self, value: Value) -> bool:
        """Whether the value occurs, in whatever format. A rounded number occurs if its original
        does.
        """
        if value.number is not None and self._has_number(value.number):
            return True
        if value.phone is not None:
            return self._has_phone(value.phone)
        if value.time is not None:
            return value.time in self._times
        if value.id is not None:
            return self._has_id(value.id)
        return any(map(self._has_date, value.dates))

    def _has_phone(self, phone: Phone) -> bool:
        """Whether the number is known in other groups, or each group as a number."""
        return self._phones.has(phone) or all(
            Decimal(group) in self._numbers for group in phone.groups
        )

    def _has_number(self, number: Number) -> bool:
        phone = plain(number.text)
        if phone is not None and number.text.isdigit() and self._phones.has(phone):
            return True
        parts = [Decimal(part) for part in number.parts]
        if parts and all(part in self._numbers for part in parts):
            return True
        return any(map(self._has_reading, number.readings))

    def _has_reading(self, reading: Reading) -> bool:
        value, step = reading
        if value in self._numbers:
            return True
        if len(value.as_tuple().digits) > _MAX_EXACT_DIGITS:
            return False
        at = bisect_left(self._sorted_numbers, value - step / 2)
        return at < len(self._sorted_numbers) and self._sorted_numbers[at] <= value + step / 2

    def _has_id(self, name: str) -> bool:
        if name in self._ids:
            return True
        at = bisect_left(self._sorted_ids, name)
        return (
            len(name) >= _MIN_PREFIX
            and at < len(self._sorted_ids)
            and self._sorted_ids[at].startswith(name)
        )

    def _has_date(self, date: Date) -> bool:
        """Whether a known date agrees where both have a part, or all parts are known as numbers."""
        less = (date._replace(year=None), date._replace(day=None))
        if date in self._general_dates or not self._dates.isdisjoint(less):
            return True
        return all(Decimal(part) in self._numbers for part in date if part is not None)

    @cached_property
    def _numbers(self) -> frozenset[Decimal]:
        found = [number for _, number in numbers(self._text)]
        parts = (Decimal(part) for number in found for part in number.parts)
        return frozenset([*parts, *(one.value for number in found for one in number.readings)])

    @cached_property
    def _phones(self) -> Phones:
        return Phones(self._text)

    @cached_property
    def _sorted_numbers(self) -> list[Decimal]:
        return sorted(self._numbers)

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(ids(self._text))

    @cached_property
    def _sorted_ids(self) -> list[str]:
        return sorted(self._ids)

    @cached_property
    def _dates(self) -> frozenset[Date]:
        return frozenset(reading for _, readings in dates(self._text) for reading in readings)

    @cached_property
    def _general_dates(self) -> frozenset[Date]:
        """The dates, also without their years and without their days."""
        less = (
            one
            for date in self._dates
            for one in (date, date._replace(year=None), date._replace(day=None))
        )
        return frozenset(less)

    @cached_property
    def _times(self) -> frozenset[Minutes]:
        return frozenset(time for _, time in times(self._text))


def _texts(sources: Iterable[Json]) -> Iterator[str]:
    """All texts and numbers inside JSON values, keys included. JSON inside of texts is decoded."""
    pending = list(sources)
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending.extend(value)
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)
        elif isinstance(value, str) and (inside := _decoded(value)) is not None:
            pending.append(inside)
        elif isinstance(value, str):
            yield value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield repr(value)


def _decoded(text: str) -> Json:
    """The object or list that the text holds as JSON, else `None`."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > MAX_TEXT:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
