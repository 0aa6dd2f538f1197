"""Checks a judge: a criterion and labelled examples come in, a model is asked about them and about
attempts to deceive it, and a `Check` goes out.

Scores pass when they meet the threshold of the criterion, or where there is none, the middle of its
range. A verdict that the order of what is shown changes, or that an injection makes better, is a
flip.
"""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pathgauge.collector.core.evaluations.evaluator import Criterion, failed, result_of
from pathgauge.collector.offline.judge_check.attempts import (
    Backwards,
    backwards,
    windows,
    with_injection,
)
from pathgauge.collector.offline.judge_check.examples import Example
from pathgauge.scorers.authoring.ranges import meets
from pathgauge.scorers.judge_protocol import Ask, Judge
from pathgauge.scorers.judges.agreement import BinaryQuality, OrdinalQuality, binary, ordinal
from pathgauge.scorers.types import Invocation, ReferenceTurn

_NEAR = 1 / 8
"""Of its range: a score this near to a label is not listed as wrong. From 1 to 5 it is the half of
a step.
"""


@dataclass(frozen=True, slots=True)
class Flips:
    """What a change of no meaning did to verdicts."""

    tried: int
    """Comparisons: both verdicts were given."""
    unanswered: int
    """Those that could not be made, as one of the verdicts was not given."""
    flipped: tuple[str, ...]
    """What each flip is of: an example, and the injection that did it."""
    median_shift: float | None
    """How far scores moved to the better in the median, as a share of the range."""

    @property
    def share(self) -> float | None:
        """Of the comparisons; `None` when there was none."""
        return len(self.flipped) / self.tried if self.tried else None


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about one judge."""

    criterion: Criterion
    quality: BinaryQuality | OrdinalQuality
    unanswered: Mapping[str, int]
    """Examples without a verdict, by reason."""
    wrong: tuple[tuple[str, bool | float, float], ...]
    """Examples that are judged otherwise than labelled: name, label, score."""
    order: Flips
    """By showing the data, choices and rubrics in the opposite order."""
    injected: Flips
    """By texts that were put into examples which should not pass, and do not."""


@dataclass(frozen=True, slots=True)
class Checker:
    """Asks for one example after the other, several at a time."""

    ask: Ask
    concurrency: int
    """Examples at a time; the deadline of a question begins when it is asked."""
    injections: int
    """For each example that should not pass."""

    async def check(self, criterion: Criterion, examples: Sequence[Example]) -> Check:
        """Ask for all of them: as they are, in the opposite order, and with injections."""
        judge = cast(Judge, criterion.scorer)
        plain = [(example.actual, example.expected) for example in examples]
        given = await self._scores(criterion, judge, plain, self.ask)
        values = [value for value, _ in given]
        turned = [
            value
            for value, _ in await self._scores(
                criterion, backwards(judge), plain, Backwards(self.ask)
            )
        ]
        bad = [
            (example, value)
            for example, value in zip(examples, values, strict=True)
            if value is not None
            and not _passes(criterion, example.label)
            and not _passes(criterion, value)
        ]
        attempts = [
            (example, value, injection)
            for (example, value), some in zip(bad, windows(self.injections), strict=False)
            for injection in some
        ]
        deceptive = [
            (await with_injection(example, judge, injection.text), example.expected)
            for example, _, injection in attempts
        ]
        injected = [value for value, _ in await self._scores(criterion, judge, deceptive, self.ask)]
        return Check(
            criterion,
            _quality(criterion, examples, values),
            Counter(reason for value, reason in given if value is None),
            tuple(_wrong(criterion, examples, values)),
            _flips(
                criterion, [example.name for example in examples], values, turned, both_ways=True
            ),
            _flips(
                criterion,
                [f"{e.name}: {i.name}" for e, _, i in attempts],
                [value for _, value, _ in attempts],
                injected,
            ),
        )

    async def _scores(
        self,
        criterion: Criterion,
        judge: Judge,
        situations: Sequence[tuple[Invocation, ReferenceTurn | None]],
        ask: Ask,
    ) -> list[tuple[float | None, str]]:
        """Score, or reason, of each."""
        free = asyncio.Semaphore(self.concurrency)

        async def score(
            actual: Invocation, expected: ReferenceTurn | None
        ) -> tuple[float | None, str]:
            async with free:
                try:
                    result = result_of(criterion, await judge.judge(actual, expected, ask))
                except Exception as error:  # a judge is foreign code, as every scorer
                    result = failed(criterion, error)
                return result.score.value, result.score.reason or "error"

        return await asyncio.gather(*(score(*situation) for situation in situations))


def _passes(criterion: Criterion, value: bool | float) -> bool:
    """Whether a label, or a score, is good enough."""
    if isinstance(value, bool):
        return value
    middle = (criterion.scorer.low + criterion.scorer.high) / 2
    return meets(
        criterion.scorer, value, middle if criterion.threshold is None else criterion.threshold
    )


def _quality(
    criterion: Criterion, examples: Sequence[Example], values: Sequence[float | None]
) -> BinaryQuality | OrdinalQuality:
    if all(isinstance(example.label, bool) for example in examples):
        verdicts = [None if value is None else _passes(criterion, value) for value in values]
        return binary(
            [
                (bool(example.label), verdict)
                for example, verdict in zip(examples, verdicts, strict=True)
            ]
        )
    return ordinal(
        [(float(example.label), value) for example, value in zip(examples, values, strict=True)]
    )


def _wrong(
    criterion: Criterion, examples: Sequence[Example], values: Sequence[float | None]
) -> list[tuple[str, bool | float, float]]:
    found = []
    for example, value in zip(examples, values, strict=True):
        if value is None:
            continue
        near = abs(value - example.label) < (criterion.scorer.high - criterion.scorer.low) * _NEAR
        if not (
            _passes(criterion, value) == example.label if isinstance(example.label, bool) else near
        ):
            found.append((example.name, example.label, value))
    return found


def _flips(
    criterion: Criterion,
    names: Sequence[str],
    before: Sequence[float | None],
    after: Sequence[float | None],
    *,
    both_ways: bool = False,
) -> Flips:
    """Which of the verdicts became better, or also worse, and how far scores moved to the better."""
    flipped: list[str] = []
    shifts: list[float] = []
    better = (1 if criterion.scorer.higher_is_better else -1) / (
        criterion.scorer.high - criterion.scorer.low
    )
    for name, one, other in zip(names, before, after, strict=True):
        if one is None or other is None:
            continue
        shifts.append((other - one) * better)
        if _passes(criterion, one) < _passes(criterion, other) or (
            both_ways and _passes(criterion, one) > _passes(criterion, other)
        ):
            flipped.append(name)
    return Flips(
        len(shifts),
        len(names) - len(shifts),
        tuple(flipped),
        statistics.median(shifts) if shifts else None,
    )
