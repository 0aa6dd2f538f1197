"""Checks one judge against labelled examples.

A score passes when it meets the threshold of the criterion, or without a threshold, the middle of
the scorer's range. A flip is a verdict that changes when the data is shown in another order, or
that improves when a prompt injection is added.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from pathgauge.collector.core.evaluations.evaluator import Criterion, failed, result_of
from pathgauge.collector.judging.judgment import is_cancelled
from pathgauge.collector.offline.judge_check.attempts import (
    RecordedAnswers,
    ReversedData,
    injection_windows,
    with_injection,
    with_reversed_options,
)
from pathgauge.collector.offline.judge_check.examples import Example
from pathgauge.collector.offline.judge_check.situations import Situation
from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.scorers.authoring.ranges import meets
from pathgauge.scorers.judge_protocol import Ask, Judge
from pathgauge.scorers.judges.agreement import BinaryQuality, OrdinalQuality, binary, ordinal
from pathgauge.scorers.judges.injections import Injection

_TOLERANCE = 1 / 8
"""A score this close to its label is not listed as wrong, as a share of the scorer's range. On a
scale from 1 to 5 it is half a step.
"""


@dataclass(frozen=True, slots=True)
class Flips:
    """How verdicts changed when only something irrelevant was changed."""

    tried: int
    """Comparisons for which both verdicts were given."""
    unanswered: int
    """Comparisons that could not be made, because a verdict is missing."""
    flipped: tuple[str, ...]
    """The example of each flip, and the injection that caused it."""
    median_shift: float | None
    """The median change of scores towards better, as a share of the range."""

    @property
    def share(self) -> float | None:
        """Flips per comparison; `None` when nothing was compared."""
        if not self.tried:
            return None
        return len(self.flipped) / self.tried


class WrongScore(NamedTuple):
    """An example whose score contradicts its label."""

    example: str
    label: bool | float
    score: float
    answer: str | None
    """What the model wrote; `None`: no model was asked."""


class NotJudged(NamedTuple):
    """An example without a verdict."""

    example: str
    reason: str
    explanation: str
    answer: str | None
    """What the model wrote, if anything."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result for one judge."""

    criterion: Criterion
    quality: BinaryQuality | OrdinalQuality
    unanswered: Mapping[str, int]
    """Number of examples without a verdict, by reason."""
    not_judged: tuple[NotJudged, ...]
    wrong: tuple[WrongScore, ...]
    order: Flips
    """When data, choices and rubrics were shown in the opposite order."""
    injected: Flips
    """When injections were added to examples that should fail, and do."""


class _Answer(NamedTuple):
    value: float | None
    reason: str
    """Why there is no value."""
    explanation: str
    text: str | None
    """What the model wrote."""


class _Attempt(NamedTuple):
    """One injection into one example."""

    example: Example
    score: float
    """Without the injection."""
    injection: Injection

    @property
    def name(self) -> str:
        return f"{self.example.name}: {self.injection.name}"


@dataclass(frozen=True, slots=True)
class Checker:
    """Asks a judge about examples, several at a time."""

    ask: Ask
    concurrency: int
    """Examples at a time; the deadline of a question begins when it is asked."""
    injections: int
    """Injections to try on each example that should fail."""
    progress: Progress = unreported

    async def check(self, criterion: Criterion, examples: Sequence[Example]) -> Check:
        """Ask about the examples unchanged, in the opposite order, and with injections."""
        judge = cast(Judge, criterion.scorer)
        answers = await self._answers(criterion, judge, _situations(examples), self.ask, "labels")
        scores = [answer.value for answer in answers]
        return Check(
            criterion,
            _quality(criterion, examples, scores),
            Counter(answer.reason for answer in answers if answer.value is None),
            tuple(_not_judged(examples, answers)),
            tuple(_wrong(criterion, examples, answers)),
            order=await self._order_flips(criterion, examples, scores),
            injected=await self._injection_flips(criterion, examples, scores),
        )

    async def _order_flips(
        self, criterion: Criterion, examples: Sequence[Example], scores: Sequence[float | None]
    ) -> Flips:
        judge = with_reversed_options(cast(Judge, criterion.scorer))
        ask = ReversedData(self.ask)
        answers = await self._answers(criterion, judge, _situations(examples), ask, "order")
        after = [answer.value for answer in answers]
        names = [example.name for example in examples]
        return _flips(criterion, names, scores, after, both_ways=True)

    async def _injection_flips(
        self, criterion: Criterion, examples: Sequence[Example], scores: Sequence[float | None]
    ) -> Flips:
        judge = cast(Judge, criterion.scorer)
        attempts = list(self._attempts(criterion, examples, scores))
        situations = [
            Situation.of(example, await with_injection(example, judge, injection.text))
            for example, _, injection in attempts
        ]
        answers = await self._answers(criterion, judge, situations, self.ask, "injections")
        names = [attempt.name for attempt in attempts]
        before = [attempt.score for attempt in attempts]
        return _flips(criterion, names, before, [answer.value for answer in answers])

    def _attempts(
        self, criterion: Criterion, examples: Sequence[Example], scores: Sequence[float | None]
    ) -> Iterator[_Attempt]:
        """Only for examples that should fail and do: others have no verdict to improve."""
        failing = [
            (example, score)
            for example, score in zip(examples, scores, strict=True)
            if score is not None
            and not _passes(criterion, example.label)
            and not _passes(criterion, score)
        ]
        windows = injection_windows(self.injections)
        for (example, score), injections in zip(failing, windows, strict=False):
            for injection in injections:
                yield _Attempt(example, score, injection)

    async def _answers(
        self,
        criterion: Criterion,
        judge: Judge,
        situations: Sequence[Situation],
        ask: Ask,
        stage: str,
    ) -> list[_Answer]:
        free, answered = asyncio.Semaphore(self.concurrency), itertools.count(1)
        stage = f"{criterion.name}: {stage}"
        self.progress(stage, 0, len(situations))

        async def answer(situation: Situation) -> _Answer:
            async with free:
                recorded = RecordedAnswers(ask)
                try:
                    result = result_of(criterion, await situation.judged(judge, recorded))
                except BaseException as error:  # a judge is third-party code, like every scorer
                    if is_cancelled(error):
                        raise
                    result = failed(criterion, error)
                self.progress(stage, next(answered), len(situations))
                score = result.score
                reason = score.reason or "error"
                return _Answer(score.value, reason, score.explanation, recorded.last)

        return await asyncio.gather(*map(answer, situations))


def _situations(examples: Sequence[Example]) -> list[Situation]:
    return list(map(Situation.of, examples))


def _passes(criterion: Criterion, value: bool | float) -> bool:
    """Whether a label or a score passes."""
    if isinstance(value, bool):
        return value
    threshold = criterion.threshold
    if threshold is None:
        threshold = (criterion.scorer.low + criterion.scorer.high) / 2
    return meets(criterion.scorer, value, threshold)


def _quality(
    criterion: Criterion, examples: Sequence[Example], scores: Sequence[float | None]
) -> BinaryQuality | OrdinalQuality:
    labels = [example.label for example in examples]
    if all(isinstance(label, bool) for label in labels):
        verdicts = [None if score is None else _passes(criterion, score) for score in scores]
        return binary(list(zip(map(bool, labels), verdicts, strict=True)))
    return ordinal(list(zip(map(float, labels), scores, strict=True)))


def _wrong(
    criterion: Criterion, examples: Sequence[Example], answers: Sequence[_Answer]
) -> Iterator[WrongScore]:
    for example, answer in zip(examples, answers, strict=True):
        score = answer.value
        if score is not None and not _agrees(criterion, example.label, score):
            yield WrongScore(example.name, example.label, score, answer.text)


def _not_judged(examples: Sequence[Example], answers: Sequence[_Answer]) -> Iterator[NotJudged]:
    for example, answer in zip(examples, answers, strict=True):
        if answer.value is None:
            yield NotJudged(example.name, answer.reason, answer.explanation, answer.text)


def _agrees(criterion: Criterion, label: bool | float, score: float) -> bool:
    if isinstance(label, bool):
        return _passes(criterion, score) == label
    return abs(score - label) < (criterion.scorer.high - criterion.scorer.low) * _TOLERANCE


def _flips(
    criterion: Criterion,
    names: Sequence[str],
    before: Sequence[float | None],
    after: Sequence[float | None],
    *,
    both_ways: bool = False,
) -> Flips:
    """Compare verdicts: improvements are flips, and with `both_ways` also the opposite."""
    flipped: list[str] = []
    shifts: list[float] = []
    scorer = criterion.scorer
    direction = 1 if scorer.higher_is_better else -1
    for name, old, new in zip(names, before, after, strict=True):
        if old is None or new is None:
            continue
        shifts.append((new - old) * direction / (scorer.high - scorer.low))
        passed, passes = _passes(criterion, old), _passes(criterion, new)
        if passes > passed or (both_ways and passes < passed):
            flipped.append(name)
    median_shift = statistics.median(shifts) if shifts else None
    return Flips(len(shifts), len(names) - len(shifts), tuple(flipped), median_shift)
