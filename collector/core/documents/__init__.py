"""Files that people write: parsed data with the position of every value, and errors with positions.

The parsers in this folder (`yaml_source`, `json_source`, ...) return a `Document`. Code that finds
a mistake in it calls `Document.problem` and raises all problems as one `ConfigError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, TypeAlias

from pathgauge.scorers.types import Json

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list indices that lead from the top of a document to a value."""

MAX_LEVELS = 100
"""Deeper nesting is refused, so that code which walks the data may be recursive."""

_MAX_SHOWN_CHARS = 60


class Position(NamedTuple):
    """A position in a text. Line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file. `text` says what was found and what was expected."""

    file: str
    position: Position | None
    path: KeyPath
    text: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, *(self.position or ())) if part != "")
        return ": ".join(part for part in (place, show_path(self.path), self.text) if part)


class ConfigError(ValueError):
    """A file cannot be used. The message has one line per problem: `file:line:column: key.path:
    found X, expected Y`.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(
            sorted(problems, key=lambda problem: (problem.file, problem.position or (0, 0)))
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Problems:
    """Collects the problems of several steps, so that users see all of them at once.

    Run each step in a `with` block, then call `report`.
    """

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def __enter__(self) -> None:
        """Begin a step. A `ConfigError` raised in it is recorded and suppressed."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, ConfigError):
            return False
        self.found += error.problems
        return True

    def report(self) -> None:
        """Raise `ConfigError` if any step had a problem."""
        if self.found:
            raise ConfigError(self.found)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML, JSON or CSV document. Without positions, problems show the path only."""

    file: str
    data: Json
    values: Mapping[KeyPath, Position] = field(default_factory=dict)
    """The start of each value."""
    keys: Mapping[KeyPath, Position] = field(default_factory=dict)
    """The start of the key of each value in a mapping."""

    def position(self, path: KeyPath, *, of_key: bool = False) -> Position | None:
        """The position of the value at `path`, or of its key. If the path does not exist, the
        position of its longest part that does.
        """
        positions = self.keys if of_key and path in self.keys else self.values
        while path and path not in positions:
            path = path[:-1]
        return positions.get(path)

    def problem(self, path: KeyPath, text: str, *, of_key: bool = False) -> Problem:
        """A problem at `path`. `of_key`: its position is that of the key, not of the value."""
        return Problem(self.file, self.position(path, of_key=of_key), path, text)


def show_path(path: KeyPath) -> str:
    """A path as people write it: `turns[0].input`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def show_value(value: Json) -> str:
    """A short description of a value for error messages, in terms of YAML."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    if len(text) > _MAX_SHOWN_CHARS:
        return text[:_MAX_SHOWN_CHARS] + "…"
    return text


def no_utf8(text: str) -> str | None:
    """The first lone surrogate in a text, for an error message; `None` if there is none.

    UTF-8 cannot encode it, so it could not appear in a metric, a file or an address.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return repr(text[error.start])
    return None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` if one of the known names is similar to `name`, else empty."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
