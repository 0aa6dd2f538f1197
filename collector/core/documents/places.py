"""Remembers where the values of a document are in its text.

Few values have a mistake, so nothing is looked up in advance: a parser records three numbers for
each value, in the order of the text, and a position is calculated when a message needs it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from pathgauge.collector.core.documents import Document, KeyPath, Places, Position
from pathgauge.scorers.types import Json

NO_KEY = -1
"""The key of a value that is the whole document or the item of a list."""

_LINE_BITS = 32


class Recorder:
    """What a parser records about the values of one document.

    The values are numbered in the order in which they begin, a container before its items.
    """

    def __init__(self) -> None:
        self._values = array("q")
        self._keys = array("q")
        self._sizes = array("q")
        """The number of values in each value, itself included."""

    def begin(self, value: int, key: int = NO_KEY) -> int:
        """Record where a value and its key begin. Returns the number of the value."""
        self._values.append(value)
        self._keys.append(key)
        self._sizes.append(1)
        return len(self._values) - 1

    def end(self, number: int) -> None:
        """Record that a container is complete."""
        self._sizes[number] = len(self._values) - number

    def repeat(self, number: int, key: int) -> None:
        """Record a complete value again, under another key: an alias."""
        end = number + self._sizes[number]
        copy = len(self._values)
        for column in (self._values, self._keys, self._sizes):
            column.extend(column[number:end])
        self._keys[copy] = key

    def places(self, data: Json, at: Callable[[int], Position]) -> RecordedPlaces:
        """The places of all values of `data`. `at` converts a recorded place."""
        return RecordedPlaces(data, self._values, self._keys, self._sizes, at)


class RecordedPlaces:
    """Places of the values of a document, calculated when they are asked for."""

    def __init__(
        self,
        data: Json,
        values: Sequence[int],
        keys: Sequence[int],
        sizes: Sequence[int],
        at: Callable[[int], Position],
    ) -> None:
        self._data, self._at = data, at
        self._values, self._keys, self._sizes = values, keys, sizes
        self._items: dict[int, dict[str | int, int]] = {}

    def position(self, path: KeyPath, *, of_key: bool = False) -> Position | None:
        """See `Places.position`."""
        number, value = 0, self._data
        for step in path:
            item = self._items_of(number, value).get(step)
            if item is None:
                return self._at(self._values[number])
            number, value = item, value[step]
        if of_key and self._keys[number] != NO_KEY:
            return self._at(self._keys[number])
        return self._at(self._values[number])

    def _items_of(self, number: int, value: Json) -> dict[str | int, int]:
        """The number of each item of a container, by its key or index. It is kept, because a
        message for each of many items would otherwise take quadratic time.
        """
        found = self._items.get(number)
        if found is None:
            found = self._items[number] = {}
            item = number + 1
            for step in _steps(value):
                found[step] = item
                item += self._sizes[item]
        return found


def _steps(value: Json) -> Sequence[str | int]:
    if isinstance(value, dict):
        return list(value)
    return range(len(value)) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True)
class _MovedPlaces:
    """Places of a rearranged document."""

    places: Places
    original: Callable[[KeyPath], KeyPath]

    def position(self, path: KeyPath, *, of_key: bool = False) -> Position | None:
        """See `Places.position`."""
        return self.places.position(self.original(path), of_key=of_key)


def moved(document: Document, data: Json, original: Callable[[KeyPath], KeyPath]) -> Document:
    """The document with rearranged data. `original` says where the value at a path was before."""
    if document.places is None:
        return replace(document, data=data)
    return replace(document, data=data, places=_MovedPlaces(document.places, original))


class Lines:
    """Converts offsets in a text, counted from 0, into positions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: Sequence[int] = ()

    def __call__(self, offset: int) -> Position:
        """The position of an offset."""
        if not self._starts:
            lengths = (len(line) + 1 for line in self._text.split("\n"))
            self._starts = array("q", accumulate(lengths, initial=0))
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)


def packed(line: int, column: int) -> int:
    """One number for a line and a column, both counted from 0."""
    return line << _LINE_BITS | column


def unpacked(place: int) -> Position:
    """The inverse of `packed`, as a position."""
    return Position((place >> _LINE_BITS) + 1, (place & (1 << _LINE_BITS) - 1) + 1)
