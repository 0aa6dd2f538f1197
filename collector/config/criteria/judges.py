"""Labels criteria that ask a model with their judge, and checks their prices and options.

The label is part of the criterion's identity: another model or another prompt is another judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pathgauge.collector.config.judging import JudgeBudget, no_price
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.composite.intermediate_texts import WithIntermediateTexts
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.settings import Settings
from pathgauge.scorers.judges.model_judge import ModelJudge


def with_judge_labels(criteria: Iterable[Criterion], settings: Settings) -> tuple[Criterion, ...]:
    """The criteria with their judges as `provider:model@template`."""
    return tuple(_with_judge_label(criterion, settings) for criterion in criteria)


def _with_judge_label(criterion: Criterion, settings: Settings) -> Criterion:
    scorer = criterion.scorer
    if not asks_model(scorer):
        return criterion
    return replace(criterion, judge=f"{settings.resolve(scorer.model).label}@{scorer.template}")


def unpriced(
    criteria: Iterable[Criterion], budget: JudgeBudget | None, settings: Settings
) -> list[str]:
    """What is wrong with a budget in US dollars, for each model that it pays and that has no
    price.
    """
    if budget is None or not budget.is_in_dollars:
        return []
    asked = [one.scorer for one in criteria]
    models = {settings.resolve(one.model) for one in asked if asks_model(one)}
    return [no_price(one.label) for one in sorted(models) if settings.price(one) is None]


def repeated_samples(criteria: Iterable[Criterion]) -> Iterator[str]:
    """A warning about judges that ask for the same answer several times."""
    names = dict.fromkeys(criterion.name for criterion in criteria if _repeats(criterion))
    if names:
        yield (
            "several samples at temperature 0 repeat the same answer; set a higher temperature,"
            f" or samples: 1, for {', '.join(names)}"
        )


def _repeats(criterion: Criterion) -> bool:
    scorer = criterion.scorer
    while isinstance(scorer, OfAgent | WithIntermediateTexts):
        scorer = scorer.scorer
    return isinstance(scorer, ModelJudge) and scorer.samples > 1 and scorer.temperature == 0
