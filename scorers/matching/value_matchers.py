"""Matchers of single values; see `pathgauge.scorers.matching.matchers`, which has those of lists
and objects.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, ClassVar

from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.types import Json

MAX_PATTERN = 1_000
"""Characters of a pattern."""
MAX_TEXT = 10_000
"""Characters of a text that a pattern is tried on."""
_SECONDS = 0.005
"""Processor time of one pattern on one text: hundreds of times what a pattern takes that does not
explode.
"""


@dataclass(frozen=True, eq=False)
class Matcher(ABC):
    """An expected value that accepts more than one actual value; two of a kind are equal when what
    they hold is equal as JSON.
    """

    mark: ClassVar[str]
    """The key of the object that is written for it. Its value is the first field; others stand
    beside it under their names.
    """

    @abstractmethod
    def accepts(self, actual: Json) -> bool:
        """As `matches`."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.mark, self._values()))

    def _values(self) -> Hashable:
        return canonical([getattr(self, field.name) for field in fields(self) if field.init])


@dataclass(frozen=True, eq=False)
class Anything(Matcher):
    """Accepts any value."""

    mark = "$any"

    def accepts(self, actual: Json) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, eq=False)
class Ignored(Matcher):
    """Accepts any value; the key of an object that has it may be absent."""

    mark = "$ignore"

    def accepts(self, actual: Json) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, eq=False)
class Pattern(Matcher):
    """Accepts text that the whole regular expression fits; a number is no text."""

    mark = "$regex"

    regex: str
    _compiled: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.regex, str) or len(self.regex) > MAX_PATTERN:
            raise ValueError(
                f"found {short(self.regex)}, expected a pattern of at most {MAX_PATTERN:,}"
                " characters"
            )
        regex = import_module("regex")
        try:
            object.__setattr__(self, "_compiled", regex.compile(self.regex))
        except (regex.error, RecursionError, OverflowError) as error:
            raise ValueError(
                f"found {short(self.regex)}, expected a regular expression: {error}"
            ) from error

    def accepts(self, actual: Json) -> bool:
        """Raises `TooLongError` for text of more than `MAX_TEXT` characters, and when the pattern
        explodes.
        """
        if not isinstance(actual, str):
            return False
        if len(actual) > MAX_TEXT:
            raise TooLongError(
                f"text of {len(actual):,} characters for the pattern {short(self.regex)}; at most"
                f" {MAX_TEXT:,} are tried"
            )
        try:
            return self._compiled.fullmatch(actual, timeout=_SECONDS) is not None
        except TimeoutError as error:
            raise TooLongError(
                f"the pattern {short(self.regex)} takes too long on text of {len(actual):,}"
                " characters"
            ) from error


@dataclass(frozen=True, eq=False)
class Near(Matcher):
    """Accepts numbers that differ by at most `abs`, or by at most `rel` of the larger one; `true`
    and NaN are no numbers here.
    """

    mark = "$near"

    value: float
    abs: float = 0.0
    rel: float = 1e-9

    def __post_init__(self) -> None:
        if not _is_number(self.value):
            raise ValueError(f"found {short(self.value)}, expected a number")
        for name, tolerance in (("abs", self.abs), ("rel", self.rel)):
            if not _is_number(tolerance) or tolerance < 0:
                raise ValueError(
                    f"{name}: found {short(tolerance)}, expected a number that is not negative"
                )

    def accepts(self, actual: Json) -> bool:
        """As `math.isclose`."""
        return _is_number(actual) and math.isclose(
            self.value, actual, abs_tol=self.abs, rel_tol=self.rel
        )


def _is_number(value: Json) -> bool:
    """Whether it is one that can be compared within a tolerance."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def short(value: Json) -> str:
    """A value as messages show it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
