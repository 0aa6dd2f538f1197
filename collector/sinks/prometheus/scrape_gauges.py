"""Gauges that are rendered at scrape time from criteria, versions and queues."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.sinks.prometheus.exposition.gauge_family import GaugeFamily
from pathgauge.collector.sinks.prometheus.judge_label import judge_value
from pathgauge.collector.sinks.prometheus.labels import AgentVersion, TenantLabel


@dataclass(frozen=True, slots=True)
class Queue:
    """The fill level of a queue; `size` and `capacity` are in the same unit."""

    size: Callable[[], float]
    capacity: Callable[[], float]


def metric_info(criteria: Iterable[Criterion]) -> GaugeFamily:
    """Range and direction of each metric. If several scorers have one name, the first counts."""
    info = GaugeFamily(
        "pathgauge_metric_info",
        "Range and direction of a metric; the value is always 1.",
        labels=("metric", "min", "max", "direction"),
    )
    scorers = {criterion.name: criterion.scorer for criterion in reversed(tuple(criteria))}
    for name, scorer in scorers.items():
        direction = "higher_is_better" if scorer.higher_is_better else "lower_is_better"
        info.add_metric((name, _bound(scorer.low), _bound(scorer.high), direction), 1)
    return info


def judge_info(criteria: Iterable[Criterion]) -> GaugeFamily:
    """Model and template of the judge of each metric."""
    info = GaugeFamily(
        "pathgauge_judge_info",
        "Model and template fingerprint of the judge of a metric; the value is always 1.",
        labels=("metric", "model", "template"),
    )
    judges = [(one.name, judge_value(one.judge)) for one in criteria if one.judge]
    for name, judge in dict.fromkeys(judges):
        model, _, template = judge.rpartition("@")
        info.add_metric((name, model, template), 1)
    return info


def first_seen_versions(versions: Mapping[AgentVersion, float], tenant: TenantLabel) -> GaugeFamily:
    """When each version of an agent was first evaluated."""
    family = GaugeFamily(
        "pathgauge_agent_version_first_seen_timestamp_seconds",
        "Unix time of the first evaluation of an agent version.",
        labels=tenant.names("agent", "agent_version"),
    )
    for version, since in versions.items():
        family.add_metric(tenant.values(version.tenant, version.agent, version.version), since)
    return family


def queue_gauges(queues: Mapping[str, Queue]) -> list[GaugeFamily]:
    """The fill level of each queue."""
    size = GaugeFamily(
        "pathgauge_queue_size",
        "Present size of a queue, in the unit of its capacity.",
        labels=("queue",),
    )
    capacity = GaugeFamily(
        "pathgauge_queue_capacity", "Maximum size of a queue.", labels=("queue",)
    )
    for name, queue in queues.items():
        size.add_metric((name,), queue.size())
        capacity.add_metric((name,), queue.capacity())
    return [size, capacity]


def _bound(value: float) -> str:
    return "+Inf" if value == math.inf else f"{value:g}"
