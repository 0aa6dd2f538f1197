"""Scores how often a user has to ask the same thing again. Lower is better.

Two inputs are the same question if they share most of their words, whatever their order. So a
question that is asked again in other words is not found; a judge finds it. Words are those of
ROUGE, so that inputs in scripts without blanks, or in another Unicode form, are compared as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Rate
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.responses.tokens import tokens
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.sessions.whole_session import WholeSession
from pathgauge.scorers.types import Json, Reference, Score

MAX_COMPARED = 1_000
"""Inputs of a session; each is compared with all before it."""
_MAX_CHARS = 4_000
"""Characters of an input that are compared."""


@dataclass(frozen=True)
class RepeatedQuestions(WholeSession, Rate):
    """The share of the user's inputs that repeat an earlier one of the session."""

    name: ClassVar[str] = "repeated_questions"

    similarity: float = 0.8
    """The share of words that two inputs must have in common, of all words of both, to be the same
    question; 1: the same words.
    """

    def __post_init__(self) -> None:
        if not 0 < self.similarity <= 1:
            raise ValueError(f"similarity: found {self.similarity}, expected a number above 0 to 1")

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Compare the inputs that were recorded. The reference is not used."""
        texts = [turn.invocation.user_input for turn in turns]
        asked = [(index, _words(text)) for index, text in enumerate(texts) if text is not None]
        if not asked:
            return Score.not_evaluated("texts_not_recorded", "no input of the user was recorded")
        if len(asked) > MAX_COMPARED:
            return Score.not_evaluated("too_long", f"{len(asked)} inputs; at most {MAX_COMPARED}")
        repeats: list[list[Json]] = []
        for position, (index, words) in enumerate(asked):
            earlier = self._repeated(words, asked[:position])
            if earlier is not None:
                repeats.append([index, earlier])
        explanation = f"{len(repeats)} of {counted(len(asked), 'input')} repeat an earlier one"
        return Score(len(repeats) / len(asked), None, explanation, {"repeats": repeats})

    def _repeated(
        self, words: frozenset[str], earlier: Sequence[tuple[int, frozenset[str]]]
    ) -> int | None:
        """The first turn with the same question."""
        for index, others in earlier:
            union = len(words | others)
            if union and len(words & others) / union >= self.similarity:
                return index
        return None


def _words(text: str) -> frozenset[str]:
    return frozenset(tokens(text[:_MAX_CHARS].casefold(), stemmer=False))
