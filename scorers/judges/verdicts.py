"""Verdicts: what the samples of a question answered comes in, a score with its evidence goes out.

Labels are voted on, and win by a strict majority of the requested samples. Numbers are averaged,
once more than half of these samples answered. The details say how far the answers agree.
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pathgauge.scorers.judges.answers import Answer, Number, Reasoned
from pathgauge.scorers.judges.samples import Panel, is_decided, lacks_quorum, majority
from pathgauge.scorers.types import Json, Score

AnswerT = TypeVar("AnswerT", bound=Answer)
ReasonedT = TypeVar("ReasonedT", bound=Reasoned)

Average = Literal["mean", "median"]

MAX_REASONING = 2_000
"""Characters of a reasoning in the details."""
_SHOWN = 200
"""Characters of a reasoning in an explanation."""
_NEAR = 0.1
"""Of the range: how near to the outcome a number has to be to agree with it."""


class Verdict(ABC, Generic[AnswerT]):
    """How answers become a score."""

    answer: type[AnswerT]

    @abstractmethod
    def is_decided(self, answers: Sequence[AnswerT], left: int, requested: int) -> bool:
        """Whether the samples that are left can change nothing."""

    @abstractmethod
    def score(self, panel: Panel[AnswerT]) -> Score:
        """The score, whose details under `judge` are those of the panel, with `agreement`."""


@dataclass(frozen=True)
class Vote(Verdict[ReasonedT]):
    """The value of the label that has the majority."""

    answer: type[ReasonedT]
    label: Callable[[ReasonedT], Any]
    values: Mapping[Any, float]
    words: Mapping[Any, str]
    """What a label is called in explanations."""

    def is_decided(self, answers: Sequence[ReasonedT], left: int, requested: int) -> bool:
        """Whether a label has won, or none can."""
        return is_decided([self.label(answer) for answer in answers], left, requested)

    def score(self, panel: Panel[ReasonedT]) -> Score:
        """The value of the label; `judge_undecided` when none has a majority."""
        labels = [self.label(answer) for answer in panel.answers]
        winner = majority(labels, panel.requested)
        if winner is None:
            return with_panel(
                panel.undecided(f"no majority: {counted(map(self.words.__getitem__, labels))}"),
                panel,
            )
        reasoning = panel.answers[labels.index(winner)].reasoning
        line = (
            f"{self.words[winner]} in {labels.count(winner)} of {len(labels)} answers:"
            f" {one_line(reasoning)}"
        )
        score = Score(
            self.values[winner],
            None,
            line,
            {"verdict": self.words[winner], "reasoning": reasoning[:MAX_REASONING]},
        )
        return with_panel(score, panel, agreement=labels.count(winner) / len(labels))


class Proportion(Vote[ReasonedT]):
    """The mean of the values of all answers, which needs all samples; `verdict` in the details is
    the label that has the majority.
    """

    def is_decided(self, answers: Sequence[ReasonedT], left: int, requested: int) -> bool:
        """Whether too many samples failed."""
        return lacks_quorum(answers, left, requested)

    def score(self, panel: Panel[ReasonedT]) -> Score:
        """The mean over the answers, of which there have to be enough."""
        if not panel.has_quorum:
            return with_panel(panel.undecided("too few answers"), panel)
        labels = [self.label(answer) for answer in panel.answers]
        winner, most = majority(labels, panel.requested), max(map(labels.count, labels))
        verdict = None if winner is None else self.words[winner]
        telling = panel.answers[
            labels.index(next(label for label in labels if labels.count(label) == most))
        ].reasoning
        line = (
            f"{counted(map(self.words.__getitem__, labels))} of {len(labels)} answers:"
            f" {one_line(telling)}"
        )
        value = statistics.mean(self.values[label] for label in labels)
        score = Score(value, None, line, {"verdict": verdict, "reasoning": telling[:MAX_REASONING]})
        return with_panel(score, panel, agreement=most / len(labels))


@dataclass(frozen=True)
class Grade(Verdict[Number]):
    """The mean or the median of numbers."""

    answer: type[Number]
    low: float
    high: float
    average: Average = "mean"

    def is_decided(self, answers: Sequence[Number], left: int, requested: int) -> bool:
        """Whether too many samples failed."""
        return lacks_quorum(answers, left, requested)

    def score(self, panel: Panel[Number]) -> Score:
        """The average over the answers, of which there have to be enough. The reasoning is that of
        the answer nearest to it.
        """
        if not panel.has_quorum:
            return with_panel(panel.undecided("too few answers"), panel)
        numbers = [answer.score for answer in panel.answers]
        value = float(
            statistics.mean(numbers) if self.average == "mean" else statistics.median(numbers)
        )
        nearest = min(panel.answers, key=lambda answer: abs(answer.score - value)).reasoning
        line = (
            f"{self.average} of {', '.join(f'{number:g}' for number in numbers)}: "
            if len(numbers) > 1
            else ""
        )
        score = Score(
            value,
            None,
            line + (one_line(nearest) or f"{value:g}"),
            {"scores": numbers, "reasoning": nearest[:MAX_REASONING]},
        )
        near = [abs(number - value) <= _NEAR * (self.high - self.low) for number in numbers]
        spread = statistics.stdev(numbers) if len(numbers) > 1 else None
        return with_panel(score, panel, agreement=sum(near) / len(near), spread=spread)


def with_panel(score: Score, panel: Panel[Any], **more: Json) -> Score:
    """A score whose details say what the samples were."""
    return Score(
        score.value,
        score.reason,
        score.explanation,
        {"judge": {**panel.told(), **more}, **score.details},
    )


def one_line(reasoning: str) -> str:
    """The beginning of a reasoning, on one line."""
    line = " ".join(reasoning.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def counted(words: Any) -> str:
    """For instance `2 valid, 1 invalid`."""
    found = list(words)
    return ", ".join(f"{found.count(word)} {word}" for word in dict.fromkeys(found)) or "no answers"
