"""Trajectory scorers with evidence of their own: an invocation and its reference turn come in, a
score with more details goes out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.comparison import Comparison
from pathgauge.scorers.trajectories.adk import Reading, TrajectoryScorer
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score


class DetailedScorer(Share, ABC):
    """As `TrajectoryScorer`, for scorers that have more to show than the alignment."""

    needs_reference: ClassVar[bool] = True

    @abstractmethod
    def look(self, comparison: Comparison) -> tuple[Reading, Mapping[str, Json]]:
        """What is read, and details beside those of its alignment. Raises `TooLongError` or
        `RecursionError` when that takes too long.
        """

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        reader = _Reader(self)
        score = reader.score(actual, expected)
        if not score.details:
            return score
        return replace(
            score, details={**score.details, **reader.more[score.details.get("alternative", 0)]}
        )


class _Reader(TrajectoryScorer):
    """Reads each trajectory of a reference once, and keeps the details."""

    def __init__(self, scorer: DetailedScorer) -> None:
        self.more: list[Mapping[str, Json]] = []
        self._scorer = scorer

    def read(self, comparison: Comparison) -> Reading:
        reading, more = self._scorer.look(comparison)
        self.more.append(more)
        return reading
