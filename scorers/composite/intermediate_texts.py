"""Scores the final response together with what the models said before it: an option of ADK."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pathgauge.scorers.authoring.extras import Extras, extras_of
from pathgauge.scorers.authoring.model_texts import intermediate_texts
from pathgauge.scorers.judge_protocol import Ask, asks_model
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score, Scorer

INCLUDE_INTERMEDIATE = "include_intermediate_responses_in_final"
"""The option in ADK and in configurations."""


def with_intermediate_texts(actual: Invocation) -> Invocation | Score:
    """The invocation with these texts in front of its final response, each on lines of its own."""
    if actual.final_response is None:
        return actual
    texts = intermediate_texts(actual)
    if isinstance(texts, Score):
        return texts
    return replace(actual, final_response="\n".join([*texts, actual.final_response]))


@dataclass(frozen=True)
class WithIntermediateTexts:
    """Applies a scorer to an invocation whose final response begins with the intermediate texts."""

    # Each instance copies these from its scorer.
    name: ClassVar[str]
    version: ClassVar[str]
    low: ClassVar[float]
    high: ClassVar[float]
    higher_is_better: ClassVar[bool]
    needs_reference: ClassVar[bool]

    asks_model: ClassVar[bool]
    model: ClassVar[str | None]
    template: ClassVar[str]
    extras: ClassVar[Extras]

    scorer: Scorer

    def __post_init__(self) -> None:
        for attribute in ("name", "version", "low", "high", "higher_is_better", "needs_reference"):
            object.__setattr__(self, attribute, getattr(self.scorer, attribute))
        judge = self.scorer if asks_model(self.scorer) else None
        object.__setattr__(self, "asks_model", judge is not None)
        object.__setattr__(self, "model", judge.model if judge else None)
        object.__setattr__(self, "template", f"{judge.template}-all-texts" if judge else "")
        object.__setattr__(self, "extras", extras_of([self.scorer]) | Extras(model_texts=True))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score the longer response."""
        longer = with_intermediate_texts(actual)
        return longer if isinstance(longer, Score) else self.scorer.score(longer, expected)

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Score the longer response, asking a model if `scorer` does."""
        longer = with_intermediate_texts(actual)
        if isinstance(longer, Score):
            return longer
        if asks_model(self.scorer):
            return await self.scorer.judge(longer, expected, ask)
        return self.scorer.score(longer, expected)
