"""A turn of an open conversation, with the scores that count for the conversation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.types import Invocation

TurnKey: TypeAlias = "tuple[str, str]"
"""Trace id, span id of the entry agent."""


class JudgedScore(NamedTuple):
    """What a judge said of a turn."""

    judge: str
    value: float


class TurnScore(NamedTuple):
    """The score of one criterion for one turn."""

    criterion: Criterion
    value: float


@dataclass(slots=True)
class Turn:
    """A turn of an open conversation, with its newest evaluation."""

    invocation: Invocation
    size: int
    """In bytes."""
    at: float
    """When it was read, by the time of conversations."""
    closed_by: str
    number: int | None = None
    """Index of the turn of the reference that it was evaluated with; `None`: of none."""
    revision: int = -1
    """Of its newest evaluation; -1 before the first."""
    renumberings: int = 0
    renumber_at: float = -math.inf
    """When other turns may cause its next evaluation."""
    scores: tuple[TurnScore, ...] = ()
    unscored: tuple[Criterion, ...] = ()
    """The criteria for which its turn of the reference expects nothing."""
    held_until: float = -math.inf
    """Until when its first evaluation waits; `-math.inf` if it does not."""

    @property
    def is_held(self) -> bool:
        """Whether it has no evaluation yet, because it waits for other turns."""
        return self.held_until > -math.inf

    @property
    def key(self) -> TurnKey:
        """Its identity within the conversation."""
        return self.invocation.trace_id, self.invocation.span_id

    def evaluate_as(self, number: int | None) -> None:
        """Set the number of its first evaluation, for which it is not held any more."""
        self.number, self.held_until = number, -math.inf

    def record(self, evaluation: Evaluation) -> None:
        """Replace the scores by those of a newer evaluation."""
        self.revision = evaluation.revision
        self.scores = tuple(scores_of(evaluation))
        self.unscored = tuple(
            result.criterion
            for result in evaluation.results
            if result.criterion.scorer.needs_reference and result.score.reason == "no_reference"
        )

    def judged(self) -> dict[str, JudgedScore]:
        """What judges said of its newest evaluation, by criterion."""
        return {
            criterion.name: JudgedScore(criterion.judge, value)
            for criterion, value in self.scores
            if asks_model(criterion.scorer)
        }

    def repeat(self, evaluation: Evaluation, judged: Mapping[str, JudgedScore]) -> None:
        """Take the scores of an evaluation that an earlier process published, with what the same
        judges said of it then: they are not asked again.
        """
        self.record(evaluation)
        for result in evaluation.results:
            criterion = result.criterion
            said = judged.get(criterion.name)
            if said is not None and asks_model(criterion.scorer) and said.judge == criterion.judge:
                self.scores += (TurnScore(criterion, said.value),)

    def continue_from(self, earlier: Turn) -> None:
        """Take the place of an evaluation of the same invocation."""
        self.number, self.revision = earlier.number, max(self.revision, earlier.revision)
        self.renumberings, self.renumber_at = earlier.renumberings, earlier.renumber_at
        self.held_until = earlier.held_until


def scores_of(evaluation: Evaluation) -> Iterator[TurnScore]:
    """The scores of an evaluation that count for its conversation."""
    for result in evaluation.results:
        if result.criterion.scorer.needs_reference and result.score.value is not None:
            yield TurnScore(result.criterion, result.score.value)
