"""Matchers of single values; those of lists and objects are in `matchers`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from typing import ClassVar

from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.matching.patterns import BoundedPattern
from pathgauge.scorers.matching.wording import short
from pathgauge.scorers.types import Json


@dataclass(frozen=True, eq=False)
class Matcher(ABC):
    """An expected value that accepts more than one actual value. Two matchers of a class are equal
    if their fields are equal as JSON.
    """

    keyword: ClassVar[str]
    """Its key in references. The value of the key is the first field; other fields are keys beside
    it.
    """

    @abstractmethod
    def accepts(self, actual: Json) -> bool:
        """Whether the value matches."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.keyword, self._values()))

    def _values(self) -> Hashable:
        return canonical([getattr(self, field.name) for field in fields(self) if field.init])


@dataclass(frozen=True, eq=False)
class Anything(Matcher):
    """Accepts any value."""

    keyword = "$any"

    def accepts(self, actual: Json) -> bool:
        """True."""
        return True


@dataclass(frozen=True, eq=False)
class Ignored(Matcher):
    """Accepts any value. As a value in an object, it also accepts that the key is absent."""

    keyword = "$ignore"

    def accepts(self, actual: Json) -> bool:
        """True."""
        return True


@dataclass(frozen=True, eq=False)
class Pattern(Matcher):
    """Accepts text that the regular expression matches completely; a number is not text."""

    keyword = "$regex"

    regex: str
    _pattern: BoundedPattern = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pattern", BoundedPattern(self.regex))

    def accepts(self, actual: Json) -> bool:
        """Whether the text matches. Raises `TooLongError` for text of more than
        `patterns.MAX_TEXT` characters, and when matching takes too long.
        """
        return isinstance(actual, str) and self._pattern.matches_whole(actual)


@dataclass(frozen=True, eq=False)
class Near(Matcher):
    """Accepts numbers that differ by at most `abs`, or by at most `rel` times the larger one.
    `true` and NaN do not count as numbers.
    """

    keyword = "$near"

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
    """Whether it is a finite number that fits a float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
