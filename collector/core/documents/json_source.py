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
    Position,
    Problem,
    no_utf8,
)
from pathgauge.scorers.types import Json

_SPACE = re.compile(r"[ \t\n\r]*")


def read(text: str, file: str) -> Document:
    """Parse one JSON value. Raises `ConfigError`."""
    reader = _Reader(text, file)
    return Document(file, reader.document(), reader.values, reader.keys)


class _Reader:
    """Parses objects and arrays itself to record positions; the standard library parses scalars."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file, self.index = text, file, 0
        self.values: dict[KeyPath, Position] = {}
        self.keys: dict[KeyPath, Position] = {}
        self._scalars = json.JSONDecoder(parse_constant=self._constant)
        self._line, self._line_start = 1, 0

    def document(self) -> Json:
        data = self._value(())
        if self._next():
            self._expected("the end of the file")
        return data

    def refuse(self, path: KeyPath, index: int, text: str) -> NoReturn:
        line_start = self.text.rfind("\n", 0, index) + 1
        position = Position(self.text.count("\n", 0, index) + 1, index - line_start + 1)
        raise ConfigError([Problem(self.file, position, path, text)]) from None

    def _value(self, path: KeyPath) -> Json:
        opening = self._next()
        self.values[path] = self._here()
        if len(path) > MAX_LEVELS:
            self.refuse((), self.index, f"found more than {MAX_LEVELS} levels, expected fewer")
        if opening == "{":
            return self._object(path)
        if opening == "[":
            return self._array(path)
        return self._scalar(path, "text")

    def _object(self, path: KeyPath) -> dict[str, Json]:
        found: dict[str, Json] = {}
        while self._more("}", first=not found):
            if self._next() != '"':
                self._expected("a key in double quotes")
            position, index = self._here(), self.index
            key = self._scalar(path, "a key")
            if key in found:
                first = self.keys[*path, key].line
                text = f"found the key again, expected it once (first in line {first})"
                self.refuse((*path, key), index, text)
            self.keys[*path, key] = position
            self._take(":")
            found[key] = self._value((*path, key))
        return found

    def _array(self, path: KeyPath) -> list[Json]:
        found: list[Json] = []
        while self._more("]", first=not found):
            found.append(self._value((*path, len(found))))
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
            self.refuse((), error.pos, f"not JSON: {error.msg}")
        except ValueError:
            text = "found a number with thousands of digits, expected a shorter one"
            self.refuse((), self.index, text)
        if isinstance(value, str) and (surrogate := no_utf8(value)):
            text = f"found {kind} with {surrogate}, expected text that UTF-8 can hold"
            self.refuse(path, begin, text)
        return value

    def _constant(self, name: str) -> NoReturn:
        self.refuse((), self.index, f"found {name}, expected a number")

    def _take(self, mark: str) -> None:
        if self._next() != mark:
            self._expected(repr(mark))
        self.index += 1

    def _next(self) -> str:
        """Skip white space and return the next character; empty at the end."""
        space = _SPACE.match(self.text, self.index)
        self.index = space.end() if space else self.index
        return self.text[self.index : self.index + 1]

    def _here(self) -> Position:
        """The position of `index`. Lines are counted from the previous position, because counting
        from the start each time would take quadratic time.
        """
        lines = self.text.count("\n", self._line_start, self.index)
        if lines:
            self._line += lines
            self._line_start = self.text.rfind("\n", 0, self.index) + 1
        return Position(self._line, self.index - self._line_start + 1)

    def _expected(self, what: str) -> NoReturn:
        found = "the end of the file"
        if self.index < len(self.text):
            found = repr(self.text[self.index])
        self.refuse((), self.index, f"not JSON: found {found}, expected {what}")
