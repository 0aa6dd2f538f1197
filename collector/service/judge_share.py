"""Divides what judges may do between several scorers, which ask models on their own."""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.config import Config
from pathgauge.collector.config.judging import Judge, JudgeBudget
from pathgauge.collector.core.partitioning import Partition
from pathgauge.scorers.types import Json


def share_of(config: Config, scorer: Partition) -> Config:
    """The configuration of one scorer. Together they keep to it, except for limits that are lower
    than the number of scorers: each has 1 of these.
    """
    changes: dict[str, Json] = {}
    if config.judge is not None:
        changes["judge"] = _of_judge(config.judge, scorer)
    shadow = config.shadow
    if shadow is not None and shadow.budget is not None:
        budget = _of_budget(shadow.budget, scorer)
        changes["shadow"] = shadow.model_copy(update={"budget": budget})
    return config.with_changes(changes) if changes else config


def _of_judge(judge: Judge, scorer: Partition) -> Judge:
    return judge.model_copy(
        update={
            "concurrency": _share(judge.concurrency, scorer),
            "queue_size": _share(judge.queue_size, scorer),
            "budget": _of_budget(judge.budget, scorer),
        }
    )


def _of_budget(budget: JudgeBudget, scorer: Partition) -> JudgeBudget:
    written: Mapping[str, float | None] = budget.model_dump()
    shares = {
        name: None if limit is None else _share(limit, scorer) for name, limit in written.items()
    }
    return budget.model_copy(update=shares)


def _share(limit: float, scorer: Partition) -> float:
    """The share of a whole number is a whole number."""
    if isinstance(limit, int):
        return max(1, (limit + scorer.total - 1 - scorer.number) // scorer.total)
    return limit / scorer.total
