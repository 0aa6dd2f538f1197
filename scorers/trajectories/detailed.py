"""The basis of trajectory scorers that add details of their own."""

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
    """As `TrajectoryScorer`, with more details than the alignment."""

    needs_reference: ClassVar[bool] = True

    @abstractmethod
    def read(self, comparison: Comparison) -> tuple[Reading, Mapping[str, Json]]:
        """The reading, and details to add to those of its alignment. Raises `TooLongError` or
        `RecursionError` if the comparison is too large.
        """

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        reader = _Reader(self)
        score = reader.score(actual, expected)
        if not score.details:
            return score
        added = reader.details[score.details.get("alternative", 0)]
        return replace(score, details={**score.details, **added})


class _Reader(TrajectoryScorer):
    """Reads each alternative trajectory once and keeps the added details."""

    def __init__(self, scorer: DetailedScorer) -> None:
        self.details: list[Mapping[str, Json]] = []
        self._scorer = scorer

    def read(self, comparison: Comparison) -> Reading:
        reading, details = self._scorer.read(comparison)
        self.details.append(details)
        return reading
