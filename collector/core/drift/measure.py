"""What a metric measures, as far as the detection needs it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from pathgauge.scorers.types import Json

_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True)
class Measure:
    """The range of a metric, its direction, and what it should reach."""

    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    threshold: float | None = None
    """In the scale of the metric."""
    objective: float | None = None
    """The share of scores that should meet the threshold."""
    fingerprint: float = 0.0
    """Changes with everything that scores depend on, apart from the agent."""
    target: float | None = field(init=False)
    """The baseline that the threshold stands for, as a score; `None`: it must be learned.

    No mean can reach a threshold at the end of the range, unless all scores do. With an objective,
    this many scores should be the best one, so their mean is at least the objective.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", self._target())

    @property
    def bounded(self) -> bool:
        """Whether values have a lower and an upper limit."""
        return math.isfinite(self.low) and math.isfinite(self.high) and self.high > self.low

    def score(self, value: float) -> float:
        """A value of a bounded metric as a score between 0 and 1, where more is better."""
        share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share if self.higher_is_better else 1 - share))

    def value(self, score: float) -> float:
        """The value with this score."""
        share = score if self.higher_is_better else 1 - score
        return self.low + share * (self.high - self.low)

    def _target(self) -> float | None:
        if self.threshold is None or not self.bounded:
            return None
        target = self.score(self.threshold)
        if target >= 1 - _NEGLIGIBLE:
            return self.objective
        return target if target > _NEGLIGIBLE else None

    def comparable(self, other: Measure) -> bool:
        """Whether scores of both are the same, for the same behaviour of the agent."""
        return (self.low, self.high, self.higher_is_better, self.fingerprint) == (
            other.low,
            other.high,
            other.higher_is_better,
            other.fingerprint,
        )

    def state(self) -> list[Json]:
        """Everything, as JSON values: infinite limits as `None`."""
        low, high = (limit if math.isfinite(limit) else None for limit in (self.low, self.high))
        rest = [self.higher_is_better, self.threshold, self.objective, self.fingerprint]
        return [low, high, *rest]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Measure:
        """The measure of a `state`."""
        low, high, *rest = state
        return cls(-math.inf if low is None else low, math.inf if high is None else high, *rest)
