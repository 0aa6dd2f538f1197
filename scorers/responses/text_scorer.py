"""The basis of scorers that compare the final response with that of the reference turn.

They have no value in these cases:

- `no_reference`: there is no reference turn, or its response is absent or blank,
- `response_not_recorded`: the telemetry does not have the response; an empty one is a response,
- `too_long`: response or reference has too many tokens to compare while traffic waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score

_CHARACTERS_PER_TOKEN = 32
"""Text with more characters than this per allowed token is too long, without counting tokens."""


class TextScorer(Share, ABC):
    """Scores the final response against that of the reference turn. Subclasses define the measure
    in `compare`.
    """

    needs_reference: ClassVar[bool] = True

    @abstractmethod
    def compare(self, response: str, reference: str) -> Score:
        """Compare with a `reference` that is not blank. Raises `TooLongError` for long texts."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        if expected is None or expected.response is None or not expected.response.strip():
            return Score.not_evaluated("no_reference", "no reference for the response")
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        try:
            return self.compare(actual.final_response, expected.response)
        except TooLongError as error:
            return Score.not_evaluated("too_long", str(error))


def check_cap(max_tokens: int) -> None:
    """Raise `ValueError` unless the option `max_tokens` is positive."""
    if max_tokens < 1:
        raise ValueError(f"max_tokens: found {max_tokens}, expected a positive number")


def check_length(text: str, max_tokens: int) -> None:
    """Raise `TooLongError` for a text so long that it surely has more tokens than allowed. This is
    checked before the text is split.
    """
    if len(text) > max_tokens * _CHARACTERS_PER_TOKEN:
        raise _too_long(max_tokens)


def check_tokens(count: int, max_tokens: int) -> None:
    """Raise `TooLongError` if there are more tokens than allowed."""
    if count > max_tokens:
        raise _too_long(max_tokens)


def same_text(response: str, reference: str, unit: str) -> Score:
    """1 if the texts are equal apart from surrounding blanks, else 0. For references without any
    `unit` to compare.
    """
    same = response.strip() == reference.strip()
    result = "is the same text" if same else "differs"
    explanation = f"the reference has no {unit}; the response {result}"
    return Score(float(same), None, explanation, {"compared": "text"})


def _too_long(max_tokens: int) -> TooLongError:
    return TooLongError(f"response or reference has more than {max_tokens} tokens")
