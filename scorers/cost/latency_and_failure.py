"""Scores how long an invocation took and whether it failed. Lower is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Amount, Rate
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class Latency(Amount):
    """Seconds that the agent took. A failed invocation has no value: failing early is not fast."""

    name: ClassVar[str] = "latency"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if actual.error:
            return Score.not_evaluated("undefined", "the run failed")
        seconds = actual.duration_s
        if seconds is None:
            return Score.not_evaluated("duration_not_recorded")
        return Score(seconds, None, f"{seconds:.3g} s")


@dataclass(frozen=True)
class Failure(Rate):
    """1 if the invocation failed, else 0."""

    name: ClassVar[str] = "failure"
    binary: ClassVar[bool] = True

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if not actual.error:
            return Score(0.0, None, "no error")
        return Score(1.0, None, " ".join(["failed", *(actual.error_type or "").split()]))
