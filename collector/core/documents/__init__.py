"""Files that people write: parsed data with the position of every value, and errors with positions.

The parsers in this folder (`yaml_source`, `json_source`, ...) return a `Document`. Code that finds
a mistake in it calls `Document.problem` and raises all problems as one `ConfigError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from types import TracebackType
from typing import NamedTuple, Protocol, TypeAlias

from pathgauge.scorers.types import Json

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list indices that lead from the top of a document to a value."""

MAX_LEVELS = 100
"""Deeper nesting is refused, so that code which walks the data may be recursive."""

MAX_PROBLEMS = 100
"""Problems of one file that are listed. Finding them all in a large file would take minutes."""

MAX_PROBLEMS_IN_TOTAL = 1_000
"""Problems of all files together that are listed."""

_MAX_SHOWN_CHARS = 60
_MAX_TEXT_CHARS = 4_000
"""Of a name or path in a message."""
_MAX_NAME_CHARS = 200
"""Longer names get no hint: comparing texts takes quadratic time."""


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
        parts = (place, _clipped(show_path(self.path)), _clipped(self.text))
        return ": ".join(part for part in parts if part)


class ConfigError(ValueError):
    """A file cannot be used. The message has one line per problem: `file:line:column: key.path:
    found X, expected Y`. At most `MAX_PROBLEMS_IN_TOTAL` are kept.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        kept = islice(problems, MAX_PROBLEMS_IN_TOTAL + 1)
        self.problems = tuple(
            sorted(kept, key=lambda problem: (problem.file, problem.position or (0, 0)))
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SettingError(OSError):
    """What a key of the configuration names cannot be used, such as a port or a folder.

    The message begins with the key. Whoever knows the file adds the position, with `placed`.
    """

    def __init__(self, path: KeyPath, text: str, number: int | None = None) -> None:
        """`number` is that of the system error, such as EADDRINUSE."""
        super().__init__(number, f"{show_path(path)}: {text}")
        self.path = path
        self.text = text

    def __str__(self) -> str:
        return str(self.strerror)

    def placed(self, problem: Callable[[KeyPath, str], Problem]) -> OSError:
        """The same error with the position in the file. `problem` is that of the configuration."""
        return OSError(self.errno, str(problem(self.path, self.text)))


class Problems:
    """Collects the problems of several steps, so that users see all of them at once.

    Run each step in a `with` block, then call `report`. The step that finds the last of
    `max_problems` raises `ConfigError`, so that a file full of mistakes is refused quickly.
    """

    def __init__(self, max_problems: int = MAX_PROBLEMS) -> None:
        self.found: list[Problem] = []
        self._max_problems = max_problems

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
        self.add(error.problems)
        return True

    def add(self, problems: Iterable[Problem]) -> None:
        """Record problems. Raises `ConfigError` when there are too many to go on."""
        self.found.extend(islice(problems, self._max_problems - len(self.found) + 1))
        if len(self.found) > self._max_problems:
            del self.found[self._max_problems :]
            text = f"found more than {self._max_problems} problems, the others are not listed"
            last = max(self.found, key=lambda problem: (problem.file, problem.position or (0, 0)))
            self.found.append(replace(last, path=(), text=text))
            raise ConfigError(self.found)

    def report(self) -> None:
        """Raise `ConfigError` if any step had a problem."""
        if self.found:
            raise ConfigError(self.found)


class Places(Protocol):
    """Where the values of a document are in its text."""

    def position(self, path: KeyPath, *, of_key: bool = False) -> Position | None:
        """The position of the value at `path`, or of its key. If the path does not exist, the
        position of the value at its longest part that does.
        """
        ...


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML, JSON or CSV document. Without places, problems show the path only."""

    file: str
    data: Json
    places: Places | None = field(default=None, compare=False, repr=False)

    def position(self, path: KeyPath, *, of_key: bool = False) -> Position | None:
        """The position of the value at `path`, or of its key. If the path does not exist, the
        position of the value at its longest part that does.
        """
        return None if self.places is None else self.places.position(path, of_key=of_key)

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
    text = repr(value[: _MAX_SHOWN_CHARS + 1] if isinstance(value, str) else value)
    if len(text) > _MAX_SHOWN_CHARS:
        return text[:_MAX_SHOWN_CHARS] + "…"
    return text


def _clipped(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS] + "…"


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
    if len(name) > _MAX_NAME_CHARS:
        return ""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
