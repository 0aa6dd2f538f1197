"""What text scorers share: the final response of an invocation and of its reference turn come in,
and when there is no value.

- `no_reference`: there is no reference turn, or it has no response, or a blank one,
- `response_not_recorded`: the telemetry does not hold the response; an empty one is a response,
- `too_long`: response or reference has more tokens than are compared while traffic waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score

_CHARACTERS_PER_TOKEN = 32
"""Text with more characters than this for each token allowed is too long without looking."""


class TextScorer(Share, ABC):
    """A scorer of the final response against that of the reference turn; its subclasses say how
    alike two texts are.
    """

    needs_reference: ClassVar[bool] = True

    @abstractmethod
    def compare(self, response: str, reference: str) -> Score:
        """Compare with a `reference` that is not blank. Raises `TooLongError` when that takes too
        long.
        """

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
    """Raise `ValueError` for an option `max_tokens` that leaves nothing to compare."""
    if max_tokens < 1:
        raise ValueError(f"max_tokens: found {max_tokens}, expected a positive number")


def check_length(text: str, max_tokens: int) -> None:
    """Raise `TooLongError` for a text that must have more tokens than allowed, before they are
    looked for.
    """
    if len(text) > max_tokens * _CHARACTERS_PER_TOKEN:
        raise _too_long(max_tokens)


def check_tokens(count: int, max_tokens: int) -> None:
    """Raise `TooLongError` when there are more tokens than allowed."""
    if count > max_tokens:
        raise _too_long(max_tokens)


def same_text(response: str, reference: str, lacking: str) -> Score:
    """1 for the same text without the blanks around it, for references that have nothing else to
    compare.
    """
    same = response.strip() == reference.strip()
    line = (
        f"the reference has no {lacking}; the response {'is the same text' if same else 'differs'}"
    )
    return Score(float(same), None, line, {"compared": "text"})


def _too_long(max_tokens: int) -> TooLongError:
    return TooLongError(f"response or reference has more than {max_tokens} tokens")
