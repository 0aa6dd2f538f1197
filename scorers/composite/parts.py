"""Runs scorers that are computed from other scores, with or without asking a model.

Such a scorer is a generator that yields the scores it needs. So one implementation serves both the
synchronous `score` and the asynchronous `judge`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeAlias

from pathgauge.scorers.judge_protocol import Ask, asks_model
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score, Scorer


class Part(NamedTuple):
    """A score that the whole needs."""

    scorer: Scorer
    actual: Invocation
    expected: ReferenceTurn | None


OfParts: TypeAlias = Generator[Sequence[Part], Sequence[Score], Score]
"""Yields the parts that it needs, receives their scores, and returns the score of the whole."""


def scored(whole: OfParts) -> Score:
    """The score of the whole, without asking a model."""
    needed = _next(whole)
    while not isinstance(needed, Score):
        needed = _next(whole, [part.scorer.score(part.actual, part.expected) for part in needed])
    return needed


async def judged(whole: OfParts, ask: Ask) -> Score:
    """The score of the whole. Parts that need a model ask it one after the other."""
    needed = _next(whole)
    while not isinstance(needed, Score):
        needed = _next(whole, [await _judged(part, ask) for part in needed])
    return needed


async def _judged(part: Part, ask: Ask) -> Score:
    scorer, actual, expected = part
    if asks_model(scorer):
        return await scorer.judge(actual, expected, ask)
    return scorer.score(actual, expected)


def _next(whole: OfParts, scores: Sequence[Score] | None = None) -> Sequence[Part] | Score:
    """The parts needed next, or the score of the whole."""
    try:
        return next(whole) if scores is None else whole.send(scores)
    except StopIteration as end:
        done: Score = end.value
        return done
