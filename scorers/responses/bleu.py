"""BLEU of the final response against that of the reference.

The value is sacreBLEU's sentence BLEU, divided by 100: tokens of mteval-v13a, n-grams of up to four
words, exponential smoothing. `pathgauge.scorers.responses.text_scorer` lists the cases without a
value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.responses.text_scorer import (
    TextScorer,
    check_cap,
    check_length,
    check_tokens,
)
from pathgauge.scorers.responses.tokens import ngrams
from pathgauge.scorers.types import Score

_MAX_ORDER = 4

_TEXT = (
    ("<skipped>", ""),
    ("-\n", ""),
    ("\n", " "),
    ("&quot;", '"'),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
)
_SEPARATED = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # not inside a number
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


@dataclass(frozen=True)
class Bleu(TextScorer):
    """BLEU: the share of the response's n-grams (1 to 4 words) that the reference also has, less
    for a response that is too short.
    """

    name: ClassVar[str] = "bleu"

    effective_order: bool = True
    """Ignore n-gram lengths that the response is too short for. Without it, a response of fewer
    than four words scores 0.
    """
    lowercase: bool = False
    """Ignore case."""
    max_tokens: int = 4_000
    """A longer response or reference is not evaluated."""

    def __post_init__(self) -> None:
        check_cap(self.max_tokens)

    def compare(self, response: str, reference: str) -> Score:
        """The geometric mean of the precisions, times the brevity penalty."""
        actual, expected = self._words(response), self._words(reference)
        counts = [(ngrams(actual, n), ngrams(expected, n)) for n in range(1, _MAX_ORDER + 1)]
        totals = [of_actual.total() for of_actual, _ in counts]
        matched = [(of_actual & of_expected).total() for of_actual, of_expected in counts]
        precisions = _smoothed(matched, totals)
        penalty = math.exp(min(0.0, 1 - len(expected) / len(actual))) if actual else 0.0
        used = [
            precision
            for precision, total in zip(precisions, totals, strict=True)
            if total or not self.effective_order
        ]
        values = ", ".join(f"{precision:.2f}" for precision in precisions)
        details = {
            "precisions": precisions,
            "brevity_penalty": penalty,
            "tokens": {"actual": len(actual), "expected": len(expected)},
        }
        return Score(
            penalty * _geometric_mean(used),
            None,
            f"precisions {values} of n-grams of 1 to {_MAX_ORDER} words,"
            f" brevity penalty {penalty:.2f}",
            details,
        )

    def _words(self, text: str) -> list[str]:
        check_length(text, self.max_tokens)
        if self.lowercase:
            text = text.lower()
        words = tokens(text)
        check_tokens(len(words), self.max_tokens)
        return words


def tokens(text: str) -> list[str]:
    """The words and punctuation marks of a text, separated as by mteval-v13a."""
    text = text.rstrip()
    for old, new in _TEXT:
        text = text.replace(old, new)
    text = f" {text} "
    for pattern, separated in _SEPARATED:
        text = pattern.sub(separated, text)
    return text.split()


def _smoothed(matched: Sequence[int], totals: Sequence[int]) -> list[float]:
    """The precision per n-gram length. Where no n-gram matches, half a match is assumed the first
    time, a quarter the second, and so on. All are 0 if not even a word matches.
    """
    if not any(matched):
        return [0.0] * len(totals)
    precisions, missed = [], 0
    for hits, total in zip(matched, totals, strict=True):
        missed += not hits
        precisions.append((hits or 0.5**missed) / total if total else 0.0)
    return precisions


def _geometric_mean(values: Sequence[float]) -> float:
    if not values or not all(values):
        return 0.0
    return math.exp(math.fsum(map(math.log, values)) / len(values))
