"""Text scorers of ADK and Vertex AI: the final response of an invocation and of its reference turn
come in, how alike they read goes out.

See `pathgauge.scorers.responses.text_scorer` for when there is no value, and
`pathgauge.scorers.responses.rouge` and `pathgauge.scorers.responses.bleu` for more of them.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.responses.rouge import Rouge1
from pathgauge.scorers.responses.text_scorer import TextScorer
from pathgauge.scorers.types import Score

_SHOWN = 20
"""Characters that an explanation shows of each text, from the first difference on."""


@dataclass(frozen=True)
class ResponseMatchScore(Rouge1):
    """ROUGE-1: the F1 of the words that response and reference share, in any order, each as often
    as both have it.
    """

    name: ClassVar[str] = "response_match_score"

    stemmer: bool = True
    """Compare English words by their stem."""


@dataclass(frozen=True)
class ResponseExactMatch(TextScorer):
    """1 when the response is the reference, but for blanks around them, else 0."""

    name: ClassVar[str] = "response_exact_match"

    ignore_case: bool = False
    """Upper and lower case are the same."""
    ignore_whitespace: bool = False
    """Any white space between words is the same as one blank."""

    def compare(self, response: str, reference: str) -> Score:
        """Equal texts, or where they differ first."""
        given, asked = self._normalised(response), self._normalised(reference)
        if given == asked:
            return Score(1.0, None, "the response is the reference", {"first_difference": None})
        at = bisect_left(
            range(min(len(given), len(asked))),
            True,
            key=lambda last: given[: last + 1] != asked[: last + 1],
        )
        found, expected = given[at : at + _SHOWN], asked[at : at + _SHOWN]
        return Score(
            0.0,
            None,
            f"differs at character {at}: found {found!r}, expected {expected!r}",
            {"first_difference": at},
        )

    def _normalised(self, text: str) -> str:
        text = " ".join(text.split()) if self.ignore_whitespace else text.strip()
        return text.casefold() if self.ignore_case else text
