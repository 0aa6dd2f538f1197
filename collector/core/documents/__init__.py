"""Data that a person wrote, with the place of every value in its file, and the error that names
such a place.

The readers beside this file (`yaml_source`, `json_source`) make a `Document` of a text; whoever
finds a mistake in it makes a `Problem` of the document and raises all problems as one
`ConfigError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, TypeAlias

from pathgauge.scorers.types import Json

KeyPath: TypeAlias = tuple[str | int, ...]
"""The keys and list indices that lead from the top of a document to a value."""

MAX_LEVELS = 100
"""Data nested deeper is refused, so that everything that walks it may recurse."""

_LONGEST_SHOWN = 60


class Position(NamedTuple):
    """A place in a text; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake of an operator. `text` says what was found and what was expected."""

    file: str
    position: Position | None
    path: KeyPath
    text: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, *(self.position or ())) if part != "")
        return ": ".join(part for part in (place, show_path(self.path), self.text) if part)


class ConfigError(ValueError):
    """What operators wrote cannot be used. The message has one line a problem: `file:line:column:
    key.path: found X, expected Y`.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(
            sorted(problems, key=lambda problem: (problem.file, problem.position or (0, 0)))
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Problems:
    """Gathers the problems of several steps, each in a `with` block, so that operators see all of
    them at once.
    """

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def __enter__(self) -> None:
        """Begin a step; its `ConfigError` goes no further."""

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
    """One YAML or JSON document: its data and where each part stands. Without positions, problems
    name the path alone.
    """

    file: str
    data: Json
    values: Mapping[KeyPath, Position] = field(default_factory=dict)
    """Where each value starts."""
    keys: Mapping[KeyPath, Position] = field(default_factory=dict)
    """Where the key of each value in a mapping starts."""

    def position(self, path: KeyPath, *, of_key: bool = False) -> Position | None:
        """Where the value (or its key) stands; for a path that leads out of the document, where its
        innermost known part does.
        """
        places = self.keys if of_key and path in self.keys else self.values
        while path and path not in places:
            path = path[:-1]
        return places.get(path)

    def problem(self, path: KeyPath, text: str, *, of_key: bool = False) -> Problem:
        """A mistake at `path`; `of_key` points at the key instead of its value."""
        return Problem(self.file, self.position(path, of_key=of_key), path, text)


def show_path(path: KeyPath) -> str:
    """A path as people write it: `turns[0].input`."""
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in path
    ).removeprefix(".")


def show_value(value: Json) -> str:
    """A value as an error message shows it: short, in the words of YAML."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def no_utf8(text: str) -> str | None:
    """The first character of a text that UTF-8 cannot hold, half of a surrogate pair, as an error
    message shows it.

    No metric, file or address could have it.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return repr(text[error.start])
    return None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when one of the known names is close to `name`, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
