"""Divides what judges may do between several scorers, which ask models on their own."""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.config.judging import Judge
from pathgauge.collector.core.partitioning import Partition


def share_of(judge: Judge, scorer: Partition) -> Judge:
    """The section for one scorer. Together they keep to it, except for limits that are lower than
    the number of scorers: each has 1 of these.
    """
    written: Mapping[str, float | None] = judge.budget.model_dump()
    budget = {
        name: None if limit is None else _share(limit, scorer) for name, limit in written.items()
    }
    return judge.model_copy(
        update={
            "concurrency": _share(judge.concurrency, scorer),
            "queue_size": _share(judge.queue_size, scorer),
            "budget": judge.budget.model_copy(update=budget),
        }
    )


def _share(limit: float, scorer: Partition) -> float:
    """The share of a whole number is a whole number."""
    if isinstance(limit, int):
        return max(1, (limit + scorer.total - 1 - scorer.number) // scorer.total)
    return limit / scorer.total
