"""How much several scorers hold together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Removal, State, Usage

_WORST_FIRST: Sequence[State] = ("failed", "full", "ok")


def total(usages: Sequence[CollectorUsage], results: Usage) -> CollectorUsage:
    """The sum over all scorers and the store of the results; of ages the largest, of states the
    worst.
    """
    return CollectorUsage(
        _stores([results, *(one.store for one in usages)]),
        PipelineUsage(*map(sum, zip(*(one.pipeline for one in usages), strict=True))),
        sum(one.queued_bytes for one in usages),
        sum(one.backlog_requests for one in usages),
        max((one.backlog_age_s for one in usages), default=0.0),
    )


def _stores(usages: Sequence[Usage]) -> Usage:
    worst = min(usages, key=lambda one: _WORST_FIRST.index(one.state))
    return replace(
        worst,
        in_flight=sum(one.in_flight for one in usages),
        used=sum(one.used for one in usages),
        capacity=sum(one.capacity for one in usages),
        kept=sum(one.kept for one in usages),
        results_removed=_by_reason(one.results_removed for one in usages),
        feedback_removed=_by_reason(one.feedback_removed for one in usages),
        write_ahead=sum(one.write_ahead for one in usages),
        requests=sum(one.requests for one in usages),
        quarantined=sum(one.quarantined for one in usages),
    )


def _by_reason(removed: Iterable[Mapping[Removal, int]]) -> Mapping[Removal, int]:
    total: Counter[Removal] = Counter()
    for one in removed:
        total.update(one)
    return total
