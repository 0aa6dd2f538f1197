"""Scores whether the final response matches a regular expression."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.patterns import BoundedPattern
from pathgauge.scorers.matching.wording import cut, short
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

MAX_RESPONSE = 50_000
"""Characters of a response to search; the limit of time grows with it."""
_MAX_EXCERPT = 1_000
"""Characters of the match in the details."""


@dataclass(frozen=True)
class ResponsePattern(Share):
    """1 if the response matches a regular expression, else 0."""

    name: ClassVar[str] = "response_pattern"
    binary: ClassVar[bool] = True

    pattern: str
    """The regular expression, in Python's syntax."""
    whole: bool = False
    """The whole response must match, apart from surrounding blanks; else, any part of it."""
    ignore_case: bool = False
    """Ignore case."""
    forbidden: bool = False
    """The response must not match: the value is 0 if it does, else 1."""

    def __post_init__(self) -> None:
        if not self.pattern:
            raise ValueError("pattern: found '', expected a regular expression")
        try:
            _ = self._compiled
        except ValueError as error:
            raise ValueError(f"pattern: {error}") from error

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        try:
            found = self._found(actual.final_response)
        except TooLongError as error:
            return Score.not_evaluated("too_long", str(error))
        verb = "matches" if found is not None else "does not match"
        explanation = f"the response {verb} {short(self.pattern)}"
        if found and not self.whole:
            explanation += f": {short(found)}"
        details: dict[str, Json] = {"found": None if found is None else cut(found, _MAX_EXCERPT)}
        return Score(float((found is None) == self.forbidden), None, explanation, details)

    @cached_property
    def _compiled(self) -> BoundedPattern:
        return BoundedPattern(self.pattern, ignore_case=self.ignore_case, max_text=MAX_RESPONSE)

    def _found(self, response: str) -> str | None:
        """The text that matches."""
        if self.whole:
            text = response.strip()
            return text if self._compiled.matches_whole(text) else None
        span = self._compiled.find(response)
        return None if span is None else response[slice(*span)]
