"""Labels criteria that ask a model with their judge.

The label is part of the criterion's identity: another model or another prompt is another judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.settings import Settings


def with_judge_labels(criteria: Iterable[Criterion], settings: Settings) -> tuple[Criterion, ...]:
    """The criteria with their judges as `provider:model@template`."""
    return tuple(_with_judge_label(criterion, settings) for criterion in criteria)


def _with_judge_label(criterion: Criterion, settings: Settings) -> Criterion:
    scorer = criterion.scorer
    if not asks_model(scorer):
        return criterion
    return replace(criterion, judge=f"{settings.resolve(scorer.model).label}@{scorer.template}")
