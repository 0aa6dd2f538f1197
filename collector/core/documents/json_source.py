"""Parses JSON into a `Document` with positions.

It is stricter than the standard library: repeated keys and NaN are refused, because they are
usually mistakes.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from pathgauge.collector.core.documents import (
    MAX_LEVELS,
    ConfigError,
    Document,
    KeyPath,
    Problem,
    no_utf8,
)
from pathgauge.collector.core.documents.places import NO_KEY, Lines, Recorder
from pathgauge.scorers.types import Json

_SPACES = frozenset(" \t\n\r")
_SPACE = re.compile(r"[ \t\n\r]*")


def read(text: str, file: str) -> Document:
    """Parse one JSON value. Raises `ConfigError`."""
    recorder, lines = Recorder(), Lines(text)
    data = JsonReader(text, file, recorder, lines).document()
    return Document(file, data, recorder.places(data, lines))


class JsonReader:
    """Parses objects and arrays itself to record places; the standard library parses scalars."""

    def __init__(
        self, text: str, file: str, recorder: Recorder, lines: Lines, offset: int = 0
    ) -> None:
        """`offset`: where this text begins in the text that `lines` knows."""
        self.text, self.file, self.index = text, file, 0
        self._recorder, self._lines, self._offset = recorder, lines, offset
        self._scalars = json.JSONDecoder(parse_constant=self._constant)

    def document(self, end: str = "the end of the file") -> Json:
        """Parse the text as one value. `end` describes its end in messages. Raises
        `ConfigError`.
        """
        self._end = end
        data = self._value((), NO_KEY)
        if self._next():
            self._expected(end)
        return data

    def _refuse(self, path: KeyPath, index: int, text: str) -> NoReturn:
        position = self._lines(self._offset + index)
        raise ConfigError([Problem(self.file, position, path, text)]) from None

    def _value(self, path: KeyPath, key: int) -> Json:
        opening = self._next()
        number = self._recorder.begin(self._offset + self.index, key)
        if len(path) > MAX_LEVELS:
            self._refuse((), self.index, f"found more than {MAX_LEVELS} levels, expected fewer")
        if opening == "{":
            return self._object(path, number)
        if opening == "[":
            return self._array(path, number)
        return self._scalar(path, "text")

    def _object(self, path: KeyPath, number: int) -> dict[str, Json]:
        found: dict[str, Json] = {}
        places: dict[str, int] = {}
        while self._more("}", first=not found):
            if self._next() != '"':
                self._expected("a key in double quotes")
            begin = self.index
            key = self._scalar(path, "a key")
            if key in found:
                line = self._lines(places[key]).line
                text = f"found the key again, expected it once (first in line {line})"
                self._refuse((*path, key), begin, text)
            self._take(":")
            place = places[key] = self._offset + begin
            found[key] = self._value((*path, key), place)
        self._recorder.end(number)
        return found

    def _array(self, path: KeyPath, number: int) -> list[Json]:
        found: list[Json] = []
        while self._more("]", first=not found):
            found.append(self._value((*path, len(found)), NO_KEY))
        self._recorder.end(number)
        return found

    def _more(self, closing: str, *, first: bool) -> bool:
        """Skip the opening bracket or a comma. Returns `False` after the closing bracket."""
        if first:
            self.index += 1
        if self._next() == closing:
            self.index += 1
            return False
        if not first:
            self._take(",")
        return True

    def _scalar(self, path: KeyPath, kind: str) -> Json:
        begin = self.index
        try:
            value, self.index = self._scalars.raw_decode(self.text, begin)
        except ConfigError:
            raise
        except json.JSONDecodeError as error:
            if error.msg == "Expecting value":
                self._expected("a value")
            self._refuse((), error.pos, f"not JSON: {error.msg}")
        except ValueError:
            text = "found a number with thousands of digits, expected a shorter one"
            self._refuse((), self.index, text)
        if isinstance(value, str) and (surrogate := no_utf8(value)):
            text = f"found {kind} with {surrogate}, expected text that UTF-8 can hold"
            self._refuse(path, begin, text)
        return value

    def _constant(self, name: str) -> NoReturn:
        self._refuse((), self.index, f"found {name}, expected a number")

    def _take(self, mark: str) -> None:
        if self._next() != mark:
            self._expected(repr(mark))
        self.index += 1

    def _next(self) -> str:
        """Skip white space and return the next character; empty at the end."""
        character = self.text[self.index : self.index + 1]
        if character not in _SPACES:
            return character
        space = _SPACE.match(self.text, self.index)
        self.index = space.end() if space else self.index
        return self.text[self.index : self.index + 1]

    def _expected(self, what: str) -> NoReturn:
        found = self._end
        if self.index < len(self.text):
            found = repr(self.text[self.index])
        self._refuse((), self.index, f"not JSON: found {found}, expected {what}")
