"""Whether a proposed reference accepts a run: the scorers of its own criteria decide."""

from __future__ import annotations

from collections.abc import Sequence

from pathgauge.collector.core.curation.runs import Run
from pathgauge.scorers.authoring.ranges import meets
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.responses.phrases import ResponseContains
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from pathgauge.scorers.types import Reference, ReferenceTurn, Scorer

_SCORERS: tuple[Scorer, ...] = (
    ToolTrajectoryAvgScore(),
    Failure(),
    ResponseContains(),
    ResponseMatchScore(),
)


def accepts(reference: Reference, turns: Sequence[Run]) -> bool:
    """Whether each turn meets every criterion that applies to it."""
    return len(turns) == len(reference.turns) and all(
        _meets(scorer, reference, run, expected)
        for run, expected in zip(turns, reference.turns, strict=True)
        for scorer in _SCORERS
        if scorer.name in reference.criteria
    )


def _meets(scorer: Scorer, reference: Reference, run: Run, expected: ReferenceTurn) -> bool:
    score = scorer.score(run.invocation, expected)
    if score.value is None:
        return score.reason == "no_reference"
    return meets(scorer, score.value, reference.criteria[scorer.name])
