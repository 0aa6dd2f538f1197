"""Criteria and references of a scorer that are not active here: their properties without their
function.

The same stand-in is used again for the same properties, so that sinks can recognize it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, ClassVar, NoReturn, cast

from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.authoring.ranges import Share, is_binary
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.matching.comparison import Comparison
from pathgauge.scorers.trajectories.adk import TrajectoryScorer
from pathgauge.scorers.types import (
    Invocation,
    Json,
    Reference,
    ReferenceTurn,
    Score,
    Scorer,
)

_MAX_CACHED = 1_000


class _Absent(Share):
    """A scorer that another process runs."""

    name: ClassVar[str] = ""
    asks_model: ClassVar[bool] = False
    binary: ClassVar[bool] = False

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score.not_evaluated("not_applicable", f"{self.name} is in another process")


class _AbsentTrajectoryScorer(_Absent, TrajectoryScorer):
    """One that compares tool calls, so that sinks count the calls."""

    def read(self, comparison: Comparison) -> NoReturn:
        raise NotImplementedError(f"{self.name} is in another process")


def described(criterion: Criterion) -> list[Json]:
    """All properties of a criterion that sinks and the store ask for. Equal lists mean that one
    criterion can be used for the other.
    """
    scorer, aggregation = criterion.scorer, criterion.aggregation
    return [
        criterion.name,
        criterion.threshold,
        criterion.objective,
        criterion.judge,
        None
        if aggregation is None
        else [aggregation.over, aggregation.measure, aggregation.each, aggregation.k],
        isinstance(scorer, TrajectoryScorer),
        asks_model(scorer),
        scorer.name,
        scorer.version,
        scorer.low,
        scorer.high,
        scorer.higher_is_better,
        scorer.needs_reference,
        is_binary(scorer),
    ]


@lru_cache(_MAX_CACHED)
def criterion_of(text: str) -> Criterion:
    """A criterion with the properties in this JSON of `described`."""
    name, threshold, objective, judge, aggregation, is_trajectory, *declared = json.loads(text)
    return Criterion(
        name,
        _scorer(is_trajectory, *declared),
        threshold,
        objective,
        judge,
        None if aggregation is None else Aggregation(*aggregation),
    )


def described_reference(reference: Reference) -> list[Json]:
    """The same for references, but for their expected behaviour, which the version identifies."""
    return [
        reference.scenario_id,
        reference.version,
        len(reference.turns),
        reference.source,
        reference.expected_interval,
        reference.required,
    ]


@lru_cache(_MAX_CACHED)
def reference_of(text: str) -> Reference:
    """A reference with the properties in this JSON of `described_reference`."""
    scenario_id, version, turns, source, expected_interval, required = json.loads(text)
    return Reference(
        scenario_id,
        (ReferenceTurn(),) * turns,
        version,
        source,
        expected_interval=expected_interval,
        required=required,
    )


def _scorer(is_trajectory: bool, *declared: Any) -> Scorer:
    names = (
        "asks_model",
        "name",
        "version",
        "low",
        "high",
        "higher_is_better",
        "needs_reference",
        "binary",
    )
    kind = _AbsentTrajectoryScorer if is_trajectory else _Absent
    # These are attributes of the class in every scorer.
    made = type(kind.__name__, (kind,), dict(zip(names, declared, strict=True)))
    return cast(Scorer, made())
