"""Learns what the answers of good runs have in common: phrases, and a typical answer.

An answer that lacks most of the usual words is set aside; one that lacks a single word is not,
because people and models word the same thing in many ways.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pathgauge.collector.core.curation.minority import Cut, bound, rare
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.responses.text_match import ResponseMatchScore

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_CODE = re.compile(r"\w*\d\w*")
_OTHER = "xxxxxxxx"
_MAX_WORDS = 12
_MAX_SEARCHED = 400
"""Words of the answer that phrases are taken from."""
_MAX_PHRASES = 3
_MIN_LETTERS = 4
"""Of at least one word of a phrase, so that it is not made of words that every answer has."""
_MAX_COMPARED = 60
"""Answers among which the typical one is looked for."""
_MIN_SIMILARITY = 0.5
_STEP = 0.05
"""Thresholds are multiples of it, and so much below the lowest score of a good run."""


class Typical(NamedTuple):
    """An answer, and the least similarity of the others to it."""

    answer: str
    threshold: float


def rare_answers(answers: Mapping[int, str | None], share: float) -> Iterator[Cut]:
    """Runs without an answer, or with one that lacks most of the usual words."""
    groups = {
        "has an answer": {run for run, answer in answers.items() if answer},
        "has no answer": {run for run, answer in answers.items() if not answer},
    }
    for kind in rare(groups, share):
        yield Cut(frozenset(groups[kind]), kind)
    words = {run: set(_words(answer)) for run, answer in answers.items() if answer}
    for run in _of_other_words(words, share):
        yield Cut(frozenset([run]), "answers with other words")


def _of_other_words(words: Mapping[int, set[str]], share: float) -> list[int]:
    counts = Counter(word for some in words.values() for word in some)
    limit = bound(len(words), share)
    usual = {word for word, count in counts.items() if count >= len(words) - limit}
    if len(usual) < 2:
        return []
    others = [run for run, some in words.items() if len(usual & some) * 2 < len(usual)]
    return others if len(others) <= limit else []


def phrases(answers: Sequence[str]) -> list[str]:
    """The longest phrases that all answers have; none overlaps another one."""
    words = list(_WORD.finditer(answers[0]))[:_MAX_SEARCHED]
    texts = [answer.casefold() for answer in dict.fromkeys(answers)]
    found: list[str] = []
    used: set[int] = set()
    for length in range(_MAX_WORDS, 0, -1):
        for start in range(len(words) - length + 1):
            places = range(start, start + length)
            phrase = answers[0][words[start].start() : words[places[-1]].end()]
            if used.isdisjoint(places) and _is_common(phrase, texts):
                used.update(places)
                found.append(phrase)
    return found[:_MAX_PHRASES]


def _is_common(phrase: str, texts: Sequence[str]) -> bool:
    """Whether all texts have the phrase, and it says something. Digits move on, as in values."""
    words = _words(phrase)
    says_something = any(len(word) >= _MIN_LETTERS for word in words)
    has_digit = any(char.isdigit() for char in phrase)
    return says_something and not has_digit and all(phrase.casefold() in text for text in texts)


def typical(answers: Sequence[str]) -> Typical | None:
    """The answer that is most like all others, if they are alike at all."""
    scorer = ResponseMatchScore()
    candidates = list(dict.fromkeys(answers))[:_MAX_COMPARED]
    words = [Counter(_words(one)) for one in candidates]
    best = max(
        zip(candidates, words, strict=True),
        key=lambda one: (sum(_overlap(one[1], other) for other in words), one[0]),
    )[0]
    if len(candidates) == 1:
        return Typical(best, 1.0)
    # Numbers and codes move on: those that two answers share now count as different.
    lowest = min(
        _similarity(scorer, _CODE.sub(_OTHER, other), best) for other in dict.fromkeys(answers)
    )
    if lowest < _MIN_SIMILARITY:
        return None
    return Typical(best, round(math.floor(lowest / _STEP - 1) * _STEP, 2))


def _overlap(one: Counter[str], other: Counter[str]) -> float:
    """The share of words that two answers have in common."""
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _similarity(scorer: ResponseMatchScore, response: str, reference: str) -> float:
    try:
        return scorer.compare(response, reference).value or 0.0
    except TooLongError:
        return 0.0


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
