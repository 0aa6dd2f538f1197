"""BLEU of one response: the final response of an invocation and of its reference turn come in,
their n-gram precision goes out.

The value is sacreBLEU's sentence BLEU, from 0 to 1: words of mteval-v13a, n-grams of up to four
words, exponential smoothing. See `pathgauge.scorers.responses.text_scorer` for when there is no
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
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # not inside of a number
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


@dataclass(frozen=True)
class Bleu(TextScorer):
    """BLEU: how many runs of one to four words of the response are in the reference, less for a
    response that is too short.
    """

    name: ClassVar[str] = "bleu"

    effective_order: bool = True
    """Leave out the lengths of runs that the response is too short for; else a response of less
    than four words has 0.
    """
    lowercase: bool = False
    """Upper and lower case are the same."""
    max_tokens: int = 4_000
    """A longer response or reference is not evaluated."""

    def __post_init__(self) -> None:
        check_cap(self.max_tokens)

    def compare(self, response: str, reference: str) -> Score:
        """The geometric mean of the precisions, times the brevity penalty."""
        given, asked = self._words(response), self._words(reference)
        counts = [(ngrams(given, n), ngrams(asked, n)) for n in range(1, _MAX_ORDER + 1)]
        totals = [actual.total() for actual, _ in counts]
        precisions = _smoothed([(actual & expected).total() for actual, expected in counts], totals)
        penalty = math.exp(min(0.0, 1 - len(asked) / len(given))) if given else 0.0
        used = [
            precision
            for precision, total in zip(precisions, totals, strict=True)
            if total or not self.effective_order
        ]
        value = (
            penalty * math.exp(math.fsum(map(math.log, used)) / len(used))
            if all(used) and used
            else 0.0
        )
        shown = ", ".join(f"{precision:.2f}" for precision in precisions)
        line = (
            f"precisions {shown} of runs of 1 to {_MAX_ORDER} words, brevity penalty {penalty:.2f}"
        )
        details = {
            "precisions": precisions,
            "brevity_penalty": penalty,
            "tokens": {"actual": len(given), "expected": len(asked)},
        }
        return Score(value, None, line, details)

    def _words(self, text: str) -> list[str]:
        check_length(text, self.max_tokens)
        words = tokens(text.lower() if self.lowercase else text)
        check_tokens(len(words), self.max_tokens)
        return words


def tokens(text: str) -> list[str]:
    """The words and marks of a text, as mteval-v13a separates them."""
    text = text.rstrip()
    for found, instead in _TEXT:
        text = text.replace(found, instead)
    text = f" {text} "
    for pattern, separated in _SEPARATED:
        text = pattern.sub(separated, text)
    return text.split()


def _smoothed(matched: Sequence[int], totals: Sequence[int]) -> list[float]:
    """The precisions; where no run matches, half a match is assumed the first time, a quarter the
    next. All 0 where no word matches.
    """
    if not any(matched):
        return [0.0] * len(totals)
    precisions, missed = [], 0
    for hits, total in zip(matched, totals, strict=True):
        missed += not hits
        precisions.append((hits or 0.5**missed) / total if total else 0.0)
    return precisions
