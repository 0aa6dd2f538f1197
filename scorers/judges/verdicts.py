"""How the sampled answers to one question become a score.

Labels need a strict majority of the requested samples. Numbers are averaged if more than half of
the samples were answered. The details contain the agreement between the answers.
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pathgauge.scorers.judges.answers import Answer, Number, Reasoned
from pathgauge.scorers.judges.samples import SampleResults, is_decided, lacks_quorum, majority
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Json, Score

AnswerT = TypeVar("AnswerT", bound=Answer)
ReasonedT = TypeVar("ReasonedT", bound=Reasoned)

Average = Literal["mean", "median"]

MAX_REASONING = 2_000
"""Maximum characters of a reasoning in the details."""
_MAX_EXPLANATION = 200
"""Maximum characters of a reasoning in an explanation."""
_AGREEMENT_TOLERANCE = 0.1
"""A number agrees with the outcome if it differs by at most this share of the range."""


class Verdict(ABC, Generic[AnswerT]):
    """How answers become a score."""

    answer: type[AnswerT]

    @abstractmethod
    def is_decided(self, answers: Sequence[AnswerT], left: int, requested: int) -> bool:
        """Whether the remaining samples cannot change the outcome."""

    @abstractmethod
    def score(self, results: SampleResults[AnswerT]) -> Score:
        """The score. Its details have sample counts and `agreement` under `judge`."""


@dataclass(frozen=True)
class Vote(Verdict[ReasonedT]):
    """The value that the majority of the labels has; the most frequent label with this value is the
    verdict.
    """

    answer: type[ReasonedT]
    label: Callable[[ReasonedT], Any]
    values: Mapping[Any, float | None]
    """`None`: what is asked does not apply."""
    words: Mapping[Any, str]
    """How explanations name each label."""

    def is_decided(self, answers: Sequence[ReasonedT], left: int, requested: int) -> bool:
        """Whether a value has the majority and no other label can get it, or none can get it."""
        labels = [self.label(answer) for answer in answers]
        votes = [self._vote(label) for label in labels]
        has_winner = majority(votes, requested) is not None
        return is_decided(labels if has_winner else votes, left, requested)

    def score(self, results: SampleResults[ReasonedT]) -> Score:
        """The value of the label; `judge_undecided` without a majority."""
        labels = [self.label(answer) for answer in results.answers]
        votes = [self._vote(label) for label in labels]
        vote = majority(votes, results.requested)
        if vote is None:
            return with_samples(results.undecided(f"no majority: {self._counted(labels)}"), results)
        winner = max((label for label in labels if self._vote(label) == vote), key=labels.count)
        word, value = self.words[winner], self.values[vote]
        reasoning = results.answers[labels.index(winner)].reasoning
        found = f"{word} in {labels.count(winner)}"
        if labels.count(winner) < votes.count(vote):
            found = self._counted(labels)
        score = Score(
            value,
            "not_applicable" if value is None else None,
            f"{found} of {counted(len(labels), 'answer')}: {one_line(reasoning)}",
            {"verdict": word, "reasoning": reasoning[:MAX_REASONING]},
        )
        return with_samples(score, results, agreement=votes.count(vote) / len(labels))

    def _vote(self, label: Any) -> Any:
        """The first of all labels with the same value as this one."""
        value = self.values[label]
        return next(other for other, found in self.values.items() if found == value)

    def _counted(self, labels: Iterable[Any]) -> str:
        return tally(self.words[label] for label in labels)


class Proportion(Vote[ReasonedT]):
    """The mean of the values of all answers, which needs all samples. Each label has a value.

    `verdict` in the details is the label with the majority.
    """

    def is_decided(self, answers: Sequence[ReasonedT], left: int, requested: int) -> bool:
        """Whether too many samples failed."""
        return lacks_quorum(answers, left, requested)

    def score(self, results: SampleResults[ReasonedT]) -> Score:
        """The mean, if enough samples were answered."""
        if not results.has_quorum:
            return with_samples(results.undecided("too few answers"), results)
        labels = [self.label(answer) for answer in results.answers]
        values = [self.values[label] for label in labels]
        most_frequent = max(labels, key=labels.count)
        reasoning = results.answers[labels.index(most_frequent)].reasoning
        winner = majority(labels, results.requested)
        verdict = None if winner is None else self.words[winner]
        score = Score(
            statistics.mean(value for value in values if value is not None),
            None,
            f"{self._counted(labels)} of {counted(len(labels), 'answer')}: {one_line(reasoning)}",
            {"verdict": verdict, "reasoning": reasoning[:MAX_REASONING]},
        )
        return with_samples(score, results, agreement=labels.count(most_frequent) / len(labels))


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

    def score(self, results: SampleResults[Number]) -> Score:
        """The average, if enough samples were answered; the reasoning is of the nearest answer."""
        if not results.has_quorum:
            return with_samples(results.undecided("too few answers"), results)
        numbers = [answer.score for answer in results.answers]
        average = statistics.mean if self.average == "mean" else statistics.median
        value = float(average(numbers))
        nearest = min(results.answers, key=lambda answer: abs(answer.score - value)).reasoning
        explanation = one_line(nearest) or f"{value:g}"
        spread = None
        if len(numbers) > 1:
            spread = statistics.stdev(numbers)
            listed = ", ".join(f"{number:g}" for number in numbers)
            explanation = f"{self.average} of {listed}: {explanation}"
        score = Score(
            value,
            None,
            explanation,
            {"scores": numbers, "reasoning": nearest[:MAX_REASONING]},
        )
        return with_samples(
            score, results, agreement=self._agreement(numbers, value), spread=spread
        )

    def _agreement(self, numbers: Sequence[float], value: float) -> float:
        tolerance = _AGREEMENT_TOLERANCE * (self.high - self.low)
        return sum(abs(number - value) <= tolerance for number in numbers) / len(numbers)


def with_samples(score: Score, results: SampleResults[Any], **more: Json) -> Score:
    """The score with the sample counts in its details."""
    return Score(
        score.value,
        score.reason,
        score.explanation,
        {"judge": {**results.counts(), **more}, **score.details},
    )


def one_line(reasoning: str) -> str:
    """The beginning of a reasoning, on one line."""
    line = " ".join(reasoning.split())
    return line if len(line) <= _MAX_EXPLANATION else f"{line[: _MAX_EXPLANATION - 1]}…"


def tally(words: Iterable[str]) -> str:
    """For instance `2 valid, 1 invalid`."""
    found = list(words)
    return ", ".join(f"{found.count(word)} {word}" for word in dict.fromkeys(found)) or "no answers"
