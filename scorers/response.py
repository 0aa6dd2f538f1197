"""Text scorers: the final response of an invocation and of its reference turn come in, how alike they read goes out.

Importing this module loads rouge-score, nltk and numpy, which takes about a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from rouge_score.rouge_scorer import RougeScorer

from scorers.tokens import tokens
from scorers.types import Invocation, ReferenceTurn, Score

_CHARACTERS_PER_TOKEN = 32
"""Text with more characters than this for each token allowed is too long without looking."""


class _Tokenised:
    """The tokeniser of a RougeScorer that is given tokens, as they were counted before."""

    def tokenize(self, tokens: list[str]) -> list[str]:
        return tokens


_rouge = RougeScorer(["rouge1"], tokenizer=_Tokenised())
_reference_tokens = lru_cache(maxsize=1024)(tokens)


@dataclass(frozen=True)
class ResponseMatchScore:
    """ROUGE-1: the F1 of the words that response and reference share, in any order, each as often as both have it."""

    name: ClassVar[str] = "response_match_score"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = True

    stemmer: bool = True
    """Compare English words by their stem."""
    max_tokens: int = 4_000
    """A longer response or reference is not evaluated."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens: found {self.max_tokens}, expected a positive number")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        if expected is None or expected.response is None or not expected.response.strip():
            return Score.not_evaluated("no_reference", "no reference for the response")
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        return self._compared(actual.final_response, expected.response)

    def _compared(self, response: str, reference: str) -> Score:
        if max(len(response), len(reference)) > self.max_tokens * _CHARACTERS_PER_TOKEN:
            return self._too_long()
        asked, given = _reference_tokens(reference, stemmer=self.stemmer), tokens(response, stemmer=self.stemmer)
        if max(len(asked), len(given)) > self.max_tokens:
            return self._too_long()
        return _overlap(given, asked) if asked else _same_text(response, reference)

    def _too_long(self) -> Score:
        return Score.not_evaluated("too_long", f"response or reference has more than {self.max_tokens} tokens")


def _overlap(given: list[str], asked: list[str]) -> Score:
    rouge = _rouge.score(asked, given)["rouge1"]
    line = f"precision {rouge.precision:.2f} of {len(given)} tokens, recall {rouge.recall:.2f} of {len(asked)} tokens"
    details = {"precision": float(rouge.precision), "recall": float(rouge.recall), "tokens": {"actual": len(given), "expected": len(asked)}}
    return Score(float(rouge.fmeasure), None, line, details)


def _same_text(response: str, reference: str) -> Score:
    """Emoji and punctuation make no tokens, yet a reference made of them alone can be met."""
    same = response.strip() == reference.strip()
    line = f"the reference has no words; the response {'is the same text' if same else 'differs'}"
    return Score(float(same), None, line, {"compared": "text"})
