"""The response metrics of ADK and Vertex AI: ROUGE-1 under its ADK name, and exact match.

`pathgauge.scorers.responses.text_scorer` lists the cases without a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.matching.wording import first_difference, one_line, told_apart
from pathgauge.scorers.responses.rouge import Rouge1
from pathgauge.scorers.responses.text_scorer import TextScorer
from pathgauge.scorers.types import Score

_MAX_EXCERPT = 20
"""Characters of each text in an explanation, from the first difference on."""


@dataclass(frozen=True)
class ResponseMatchScore(Rouge1):
    """ROUGE-1: the F1 of the words that response and reference share, in any order. Repeated words
    count as often as both texts have them.
    """

    name: ClassVar[str] = "response_match_score"

    stemmer: bool = True
    """Compare English words by their stem."""


@dataclass(frozen=True)
class ResponseExactMatch(TextScorer):
    """1 if the response equals the reference, apart from surrounding blanks, else 0."""

    name: ClassVar[str] = "response_exact_match"
    binary: ClassVar[bool] = True

    ignore_case: bool = False
    """Ignore case."""
    ignore_whitespace: bool = False
    """Treat any white space between words as one blank."""

    def compare(self, response: str, reference: str) -> Score:
        """1 for equal texts; else 0, explained by the first difference."""
        actual, expected = self._normalised(response), self._normalised(reference)
        if actual == expected:
            return Score(1.0, None, "the response is the reference", {"first_difference": None})
        at = first_difference(actual, expected)
        found, wanted = (repr(text[at : at + _MAX_EXCERPT]) for text in (actual, expected))
        found, wanted = told_apart(found, wanted)
        return Score(
            0.0,
            None,
            f"differs at character {at}: found {found}, expected {wanted}",
            {"first_difference": at},
        )

    def _normalised(self, text: str) -> str:
        text = text.strip()
        if self.ignore_whitespace:
            text = one_line(text)
        if self.ignore_case:
            text = text.casefold()
        return text
