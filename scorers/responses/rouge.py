"""ROUGE: the final response of an invocation and of its reference turn come in, the F1 of the words
that they share goes out.

The values are those of rouge_score with two exceptions: text that is not ASCII has words here (see
`pathgauge.scorers.responses.tokens`), and a reference that has nothing to share is compared as
text. See `pathgauge.scorers.responses.text_scorer` for when there is no value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, NamedTuple

from pathgauge.scorers.matching.alignment import TooLongError, ordered_rows
from pathgauge.scorers.responses.text_scorer import (
    TextScorer,
    check_cap,
    check_length,
    check_tokens,
    same_text,
)
from pathgauge.scorers.responses.tokens import load_stemmer, ngrams, tokens
from pathgauge.scorers.types import Score

MAX_STEPS = 160_000
"""Words that `RougeLSum` walks through, a line of the response once for each line of the reference
that it may cover: 0.3 s.
"""

_STEPS_OF_A_WALK = 2
"""What beginning with a line costs, in words."""


class Overlap(NamedTuple):
    """How many words, or pairs of them, two texts share, and how many each has."""

    shared: int
    actual: int
    expected: int


@dataclass(frozen=True)
class Rouge(TextScorer, ABC):
    """The F1 of what two texts share; its subclasses say what they look at."""

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
        """What the two share. Raises `TooLongError` when that takes too long."""

    def compare(self, response: str, reference: str) -> Score:
        """Precision and recall as one."""
        for text in (response, reference):
            check_length(text, self.max_tokens)
        overlap = self.overlap(response, reference)
        return (
            _f1(overlap, self.unit)
            if overlap.expected
            else same_text(response, reference, self.unit)
        )

    def words(self, text: str) -> list[str]:
        """The tokens of a text, in order. Raises `TooLongError`."""
        words = tokens(text, stemmer=self.stemmer)
        check_tokens(len(words), self.max_tokens)
        return words


@dataclass(frozen=True)
class Rouge1(Rouge):
    """ROUGE-1: the F1 of the words that response and reference share, in any order, each as often
    as both have it.
    """

    name: ClassVar[str] = "rouge_1"

    def overlap(self, response: str, reference: str) -> Overlap:
        """Single words."""
        return _shared_runs(self.words(response), self.words(reference), 1)


@dataclass(frozen=True)
class Rouge2(Rouge):
    """ROUGE-2: the F1 of the pairs of neighbouring words that response and reference share."""

    name: ClassVar[str] = "rouge_2"
    unit: ClassVar[str] = "bigrams"

    def overlap(self, response: str, reference: str) -> Overlap:
        """Pairs of words."""
        return _shared_runs(self.words(response), self.words(reference), 2)


@dataclass(frozen=True)
class RougeL(Rouge):
    """ROUGE-L: the F1 of the longest sequence of words that response and reference have in the same
    order, gaps allowed.
    """

    name: ClassVar[str] = "rouge_l"

    def overlap(self, response: str, reference: str) -> Overlap:
        """The longest common subsequence."""
        given, asked = self.words(response), self.words(reference)
        places = _places(asked)
        added = ordered_rows([places.get(word, 0) for word in given], len(asked))[-1]
        return Overlap(len(asked) - added.bit_count(), len(given), len(asked))


@dataclass(frozen=True)
class RougeLSum(Rouge):
    """ROUGE-Lsum: as ROUGE-L, but line by line: a line of the reference may be covered by several
    lines of the response, in any order.
    """

    name: ClassVar[str] = "rouge_l_sum"

    def overlap(self, response: str, reference: str) -> Overlap:
        """For each line of the reference the union of its longest common subsequences with the
        lines of the response.
        """
        given, asked = self._lines(response), self._lines(reference)
        lines = _Lines(given)
        covered = Counter(chain.from_iterable(map(lines.cover, asked)))
        had = Counter(chain.from_iterable(given))
        return Overlap((covered & had).total(), had.total(), sum(map(len, asked)))

    def _lines(self, text: str) -> list[list[str]]:
        lines = [words for line in text.split("\n") if (words := self.words(line))]
        check_tokens(sum(map(len, lines)), self.max_tokens)
        return lines


class _Lines:
    """The lines of a response, to be compared with the lines of a reference one by one."""

    def __init__(self, lines: Sequence[Sequence[str]]) -> None:
        self._lines = lines
        self._having: dict[str, int] = defaultdict(int)
        """Per word, the lines that have it, as bits."""
        for number, line in enumerate(lines):
            for word in line:
                self._having[word] |= 1 << number
        self._steps = 0

    def cover(self, line: Sequence[str]) -> Iterator[str]:
        """The words of a line of the reference that are in its longest common subsequence with any
        line. Raises `TooLongError`.
        """
        places = _places(line)
        covered, untried = 0, (1 << len(self._lines)) - 1
        for place, word in enumerate(line):
            while not covered >> place & 1 and (left := self._having.get(word, 0) & untried):
                lowest = left & -left
                untried ^= lowest
                covered |= self._walk(self._lines[lowest.bit_length() - 1], places, len(line))
            if covered >> place & 1:
                yield word

    def _walk(self, line: Sequence[str], places: dict[str, int], width: int) -> int:
        """One longest common subsequence, as bits of the reference's line: the one that rouge_score
        finds, from the end.
        """
        self._steps += len(line) + _STEPS_OF_A_WALK
        if self._steps > MAX_STEPS:
            raise TooLongError("response and reference have too many lines with the same words")
        masks = [places.get(word, 0) for word in line]
        rows = ordered_rows(masks, width)
        found, before = 0, (1 << width) - 1
        for mask, row in zip(masks[::-1], rows[:0:-1], strict=True):
            last = ((~row | mask) & before).bit_length()  # words behind it are in neither
            bit = 1 << last >> 1
            found |= mask & bit
            before = bit - 1 if mask & bit else (1 << last) - 1
        return found


def _places(words: Sequence[str]) -> dict[str, int]:
    """Per word, where it stands, as bits."""
    places: dict[str, int] = defaultdict(int)
    for place, word in enumerate(words):
        places[word] |= 1 << place
    return places


def _shared_runs(given: Sequence[str], asked: Sequence[str], length: int) -> Overlap:
    actual, expected = ngrams(given, length), ngrams(asked, length)
    return Overlap((actual & expected).total(), actual.total(), expected.total())


def _f1(overlap: Overlap, unit: str) -> Score:
    shared, actual, expected = overlap
    precision, recall = shared / max(actual, 1), shared / expected
    value = 2 * precision * recall / (precision + recall) if shared else 0.0
    line = f"precision {precision:.2f} of {actual} {unit}, recall {recall:.2f} of {expected} {unit}"
    return Score(
        value,
        None,
        line,
        {"precision": precision, "recall": recall, unit: {"actual": actual, "expected": expected}},
    )
