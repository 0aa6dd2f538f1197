"""Which judge a criterion has: criteria that ask a model come in, the same with the name of their
judge go out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.settings import Settings


def named(criteria: Iterable[Criterion], settings: Settings) -> tuple[Criterion, ...]:
    """Criteria with their judges as `provider:model@template`, as another model or another question
    is another judge.
    """
    return tuple(_named(criterion, settings) for criterion in criteria)


def _named(criterion: Criterion, settings: Settings) -> Criterion:
    scorer = criterion.scorer
    if not asks_model(scorer):
        return criterion
    return replace(criterion, judge=f"{settings.resolve(scorer.model).label}@{scorer.template}")
