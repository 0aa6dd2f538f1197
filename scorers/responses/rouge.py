"""ROUGE of the final response against that of the reference.

The values are those of rouge_score with two exceptions. Text that is not ASCII is also split into
words (see `pathgauge.scorers.responses.tokens`), and a reference without any words is compared as
text. `pathgauge.scorers.responses.text_scorer` lists the cases without a value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, NamedTuple

from pathgauge.scorers.matching.alignment import TooLongError, lowest, ordered_rows
from pathgauge.scorers.responses.stemmer import load_stemmer
from pathgauge.scorers.responses.text_scorer import (
    TextScorer,
    check_cap,
    check_length,
    check_tokens,
    same_text,
)
from pathgauge.scorers.responses.tokens import ngrams, tokens
from pathgauge.scorers.types import Score

MAX_STEPS = 160_000
"""Words that `RougeLSum` may visit: those of each line of the response, for each line of the
reference that shares words with it. This many take 0.3 s.
"""

_STEPS_PER_LINE = 2
"""The fixed cost of visiting a line, in words."""


class Overlap(NamedTuple):
    """How many words, or pairs of words, two texts share, and how many each has."""

    shared: int
    actual: int
    expected: int


@dataclass(frozen=True)
class Rouge(TextScorer, ABC):
    """The F1 of what two texts share. Subclasses define what is counted in `overlap`."""

    unit: ClassVar[str] = "tokens"

    stemmer: bool = False
    """Compare English words by their stem."""
    max_tokens: int = 4_000
    """A longer response or reference is not evaluated."""

    def __post_init__(self) -> None:
        check_cap(self.max_tokens)
        if self.stemmer:
            load_stemmer()

    @abstractmethod
    def overlap(self, response: str, reference: str) -> Overlap:
        """Count what the two texts share. Raises `TooLongError` if that takes too long."""

    def compare(self, response: str, reference: str) -> Score:
        """The F1 of precision and recall."""
        for text in (response, reference):
            check_length(text, self.max_tokens)
        overlap = self.overlap(response, reference)
        if not overlap.expected:
            return same_text(response, reference, self.unit)
        return _f1(overlap, self.unit)

    def words(self, text: str) -> list[str]:
        """The tokens of a text, in order. Raises `TooLongError`."""
        words = tokens(text, stemmer=self.stemmer)
        check_tokens(len(words), self.max_tokens)
        return words


@dataclass(frozen=True)
class Rouge1(Rouge):
    """ROUGE-1: the F1 of the words that response and reference share, in any order. Repeated words
    count as often as both texts have them.
    """

    name: ClassVar[str] = "rouge_1"

    def overlap(self, response: str, reference: str) -> Overlap:
        """Single words."""
        return _shared_ngrams(self.words(response), self.words(reference), 1)


@dataclass(frozen=True)
class Rouge2(Rouge):
    """ROUGE-2: the F1 of the pairs of neighbouring words that response and reference share."""

    name: ClassVar[str] = "rouge_2"
    unit: ClassVar[str] = "bigrams"

    def overlap(self, response: str, reference: str) -> Overlap:
        """Pairs of words."""
        return _shared_ngrams(self.words(response), self.words(reference), 2)


@dataclass(frozen=True)
class RougeL(Rouge):
    """ROUGE-L: the F1 of the longest common subsequence of words: the same order, gaps allowed."""

    name: ClassVar[str] = "rouge_l"

    def overlap(self, response: str, reference: str) -> Overlap:
        """The longest common subsequence."""
        actual, expected = self.words(response), self.words(reference)
        positions = _positions(expected)
        last_row = ordered_rows([positions.get(word, 0) for word in actual], len(expected))[-1]
        return Overlap(len(expected) - last_row.bit_count(), len(actual), len(expected))


@dataclass(frozen=True)
class RougeLSum(Rouge):
    """ROUGE-Lsum: as ROUGE-L, but line by line. Several lines of the response may cover one line of
    the reference, in any order.
    """

    name: ClassVar[str] = "rouge_l_sum"

    def overlap(self, response: str, reference: str) -> Overlap:
        """For each line of the reference, the union of its longest common subsequences with the
        lines of the response.
        """
        actual, expected = self._lines(response), self._lines(reference)
        lines = _Lines(actual)
        covered = Counter(chain.from_iterable(map(lines.cover, expected)))
        words = Counter(chain.from_iterable(actual))
        return Overlap((covered & words).total(), words.total(), sum(map(len, expected)))

    def _lines(self, text: str) -> list[list[str]]:
        lines = [words for line in text.split("\n") if (words := self.words(line))]
        check_tokens(sum(map(len, lines)), self.max_tokens)
        return lines


class _Lines:
    """The lines of a response, to compare with the lines of a reference one by one."""

    def __init__(self, lines: Sequence[Sequence[str]]) -> None:
        self._lines = lines
        self._lines_with: dict[str, int] = defaultdict(int)
        """For each word, the lines that have it, as bits."""
        for number, line in enumerate(lines):
            for word in line:
                self._lines_with[word] |= 1 << number
        self._steps = 0

    def cover(self, line: Sequence[str]) -> Iterator[str]:
        """The words of a line of the reference that are in its longest common subsequence with any
        line of the response. Raises `TooLongError`.
        """
        positions = _positions(line)
        covered, untried = 0, (1 << len(self._lines)) - 1
        for at, word in enumerate(line):
            while not covered >> at & 1 and (left := self._lines_with.get(word, 0) & untried):
                number = lowest(left)
                untried ^= 1 << number
                covered |= self._common(self._lines[number], positions, len(line))
            if covered >> at & 1:
                yield word

    def _common(self, line: Sequence[str], positions: dict[str, int], width: int) -> int:
        """A longest common subsequence, as bits of the reference's line. Among several it is the
        one that rouge_score finds, which searches from the end.
        """
        self._steps += len(line) + _STEPS_PER_LINE
        if self._steps > MAX_STEPS:
            raise TooLongError("response and reference have too many lines with the same words")
        masks = [positions.get(word, 0) for word in line]
        rows = ordered_rows(masks, width)
        found, before = 0, (1 << width) - 1
        for mask, row in zip(masks[::-1], rows[:0:-1], strict=True):
            last = ((~row | mask) & before).bit_length()  # later words cannot be part of it
            bit = 1 << last >> 1
            found |= mask & bit
            before = bit - 1 if mask & bit else (1 << last) - 1
        return found


def _positions(words: Sequence[str]) -> dict[str, int]:
    """For each word, its positions as bits."""
    positions: dict[str, int] = defaultdict(int)
    for at, word in enumerate(words):
        positions[word] |= 1 << at
    return positions


def _shared_ngrams(response: Sequence[str], reference: Sequence[str], n: int) -> Overlap:
    actual, expected = ngrams(response, n), ngrams(reference, n)
    return Overlap((actual & expected).total(), actual.total(), expected.total())


def _f1(overlap: Overlap, unit: str) -> Score:
    shared, actual, expected = overlap
    precision, recall = shared / max(actual, 1), shared / expected
    value = 2 * precision * recall / (precision + recall) if shared else 0.0
    counts = {"actual": actual, "expected": expected}
    return Score(
        value,
        None,
        f"precision {precision:.2f} of {actual} {unit}, recall {recall:.2f} of {expected} {unit}",
        {"precision": precision, "recall": recall, unit: counts},
    )
