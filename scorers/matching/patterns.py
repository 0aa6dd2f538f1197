"""Regular expressions from configurations and references, within limits of size and time.

The patterns are trusted, the texts are not: one text can take a harmless pattern hours. The package
regex can stop a match after a timeout. It is loaded with the first pattern.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.regex_timeout import matched
from pathgauge.scorers.matching.wording import short

MAX_PATTERN = 1_000
"""Characters of a pattern."""
MAX_TEXT = 10_000
"""Characters of a text, unless the caller allows more."""
_CHARACTERS_PER_S = 2_000_000
"""5 ms of CPU time for `MAX_TEXT`: hundreds of times that of a pattern that does not backtrack."""


class BoundedPattern:
    """A regular expression in Python's syntax."""

    def __init__(
        self, pattern: str, *, ignore_case: bool = False, max_text: int = MAX_TEXT
    ) -> None:
        """Raises `ValueError` for a pattern that is no text, malformed or too long."""
        if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
            raise ValueError(
                f"found {short(pattern)}, expected a pattern of at most {MAX_PATTERN:,} characters"
            )
        regex = import_module("regex")
        try:
            self._compiled: Any = regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
        except (regex.error, RecursionError, OverflowError) as error:
            raise ValueError(
                f"found {short(pattern)}, expected a regular expression: {error}"
            ) from error
        self._pattern = pattern
        self._max_text = max_text

    def find(self, text: str) -> tuple[int, int] | None:
        """Start and end of the first match in the text. Raises `TooLongError`."""
        return self._matched(text, self._compiled.search)

    def matches_start(self, text: str) -> bool:
        """Whether the text begins with a match. Raises `TooLongError`."""
        return self._matched(text, self._compiled.match) is not None

    def matches_whole(self, text: str) -> bool:
        """Whether the whole text is a match. Raises `TooLongError`."""
        return self._matched(text, self._compiled.fullmatch) is not None

    def _matched(self, text: str, match: Any) -> tuple[int, int] | None:
        if len(text) > self._max_text:
            raise TooLongError(
                f"text of {len(text):,} characters for the pattern {short(self._pattern)}; at most"
                f" {self._max_text:,} are tried"
            )
        try:
            found = matched(match, text, self._max_text / _CHARACTERS_PER_S)
        except TimeoutError as error:
            raise TooLongError(
                f"the pattern {short(self._pattern)} takes too long on text of {len(text):,}"
                " characters"
            ) from error
        return None if found is None else found.span()
