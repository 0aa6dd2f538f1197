"""Scores how often a model said nearly the same again in one invocation. Lower is better.

Texts are compared by their pairs of neighbouring words. Only texts of the same agent run are
compared: a coordinator may repeat the answer of its sub-agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from pathgauge.scorers.authoring.extras import Extras
from pathgauge.scorers.authoring.missing_telemetry import models_unknown
from pathgauge.scorers.authoring.ranges import Rate
from pathgauge.scorers.matching.wording import short
from pathgauge.scorers.responses.tokens import ngrams, tokens
from pathgauge.scorers.types import Invocation, Json, ModelCall, ReferenceTurn, Score

MAX_TEXTS = 200
"""Different texts of an invocation; with more, it is not evaluated."""

_Pairs: TypeAlias = frozenset[tuple[str, ...]]


class _Text(NamedTuple):
    call: int
    """The position of the model call."""
    run: str | None
    pairs: _Pairs


@dataclass(frozen=True)
class Stagnation(Rate):
    """The share of the model's texts that repeat an earlier one, or nearly."""

    name: ClassVar[str] = "stagnation"
    extras: ClassVar[Extras] = Extras(model_texts=True)

    similarity: float = 0.8
    """Texts repeat each other if they share this part of their pairs of neighbouring words."""
    min_words: int = 5
    """Texts with fewer words are ignored."""

    def __post_init__(self) -> None:
        if not 0 < self.similarity <= 1:
            raise ValueError(
                f"similarity: found {self.similarity}, expected a number above 0, up to 1"
            )
        if self.min_words < 2:
            raise ValueError(f"min_words: found {self.min_words}, expected a number from 2")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if unknown := models_unknown(actual) or _texts_unknown(actual.model_calls):
            return unknown
        texts = list(self._texts(actual.model_calls))
        if not texts:
            return Score.not_evaluated(
                "not_applicable", f"the model said nothing of {self.min_words} words or more"
            )
        if len({(text.run, text.pairs) for text in texts}) > MAX_TEXTS:
            return Score.not_evaluated(
                "too_long", f"more than {MAX_TEXTS} different texts; they are not compared"
            )
        repeated = list(self._repeated(texts))
        explanation = f"{len(repeated)} of {len(texts)} texts repeat an earlier one"
        if repeated:
            first = actual.model_calls[repeated[0][0]].text or ""
            explanation += f": {short(' '.join(first.split()))}"
        details: dict[str, Json] = {"repeated": [list(pair) for pair in repeated]}
        return Score(len(repeated) / len(texts), None, explanation, details)

    def _texts(self, calls: Sequence[ModelCall]) -> Iterator[_Text]:
        for at, call in enumerate(calls):
            words = tokens(call.text or "", stemmer=False)
            if len(words) >= self.min_words:
                yield _Text(at, call.run, frozenset(ngrams(words, 2)))

    def _repeated(self, texts: Sequence[_Text]) -> Iterator[tuple[int, int]]:
        """Each text that repeats one, by the positions of both model calls."""
        kept: dict[str | None, dict[_Pairs, int]] = {}
        for call, run, pairs in texts:
            earlier = kept.setdefault(run, {})
            found = earlier.get(pairs)
            if found is None:
                similar = (at for other, at in earlier.items() if self._similar(pairs, other))
                found = next(similar, None)
            if found is None:
                earlier[pairs] = call
            else:
                yield call, found

    def _similar(self, one: _Pairs, other: _Pairs) -> bool:
        if min(len(one), len(other)) / max(len(one), len(other)) < self.similarity:
            return False
        common = len(one & other)
        return common / (len(one) + len(other) - common) >= self.similarity


def _texts_unknown(calls: Sequence[ModelCall]) -> Score | None:
    """A score without value if the text of a call that succeeded is not known."""
    if any(call.text is None and call.error is None for call in calls):
        return Score.not_evaluated(
            "texts_not_recorded", "what the model said is not recorded for every call"
        )
    return None
