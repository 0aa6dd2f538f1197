"""Gauges that are rendered at scrape time from windows, criteria and queues."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, Metric

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.windows import Series, Window
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, judge_value, with_judge
from pathgauge.collector.sinks.prometheus.labels import AgentVersion, TenantLabel, label_value
from pathgauge.scorers.types import Reference

SCORE_LABELS = ("agent", "scenario", "metric")

Thresholds = Mapping[Series, Mapping[str, Criterion]]
"""The criteria that have a threshold, by series and name."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The fill level of a queue; `size` and `capacity` are in the same unit."""

    size: Callable[[], float]
    capacity: Callable[[], float]


def window_gauges(
    windows: Iterable[Window], judge: Callable[[str, str], str], tenant: TenantLabel
) -> list[Metric]:
    """Mean, minimum and number of recent scores. `judge` maps scenario and metric to a judge."""
    names = tenant.names(*SCORE_LABELS, JUDGE)
    mean = GaugeMetricFamily(
        "pathgauge_score_window_mean",
        "Mean of the recent scores, in the scale of the metric.",
        labels=names,
    )
    lowest = GaugeMetricFamily(
        "pathgauge_score_window_min",
        "Lowest recent score, in the scale of the metric.",
        labels=names,
    )
    samples = GaugeMetricFamily(
        "pathgauge_score_window_samples", "Number of recent scores.", labels=names
    )
    for window in windows:
        labels = with_judge(_values(window, tenant), judge(window.scenario, window.metric))
        mean.add_metric(labels, window.mean)
        lowest.add_metric(labels, window.minimum)
        samples.add_metric(labels, window.samples)
    return [mean, lowest, samples]


def threshold_gauges(
    thresholds: Thresholds, windows: Iterable[Window], min_samples: int, tenant: TenantLabel
) -> list[Metric]:
    """The active thresholds and SLOs, and which window means miss their threshold."""
    names = tenant.names(*SCORE_LABELS, JUDGE)
    threshold = GaugeMetricFamily(
        "pathgauge_threshold", "Threshold of a metric, in its own scale.", labels=names
    )
    objective = GaugeMetricFamily(
        "pathgauge_objective",
        "SLO of a metric: the share of evaluations that should pass, from 0 to 1.",
        labels=names,
    )
    for series, criteria in thresholds.items():
        for criterion in criteria.values():
            values = tenant.values(series.tenant, series.agent, series.scenario, criterion.name)
            labels = with_judge(values, criterion.judge)
            if criterion.threshold is not None:
                threshold.add_metric(labels, criterion.threshold)
            if criterion.objective is not None:
                objective.add_metric(labels, criterion.objective)
    breached = GaugeMetricFamily(
        "pathgauge_threshold_breached",
        f"1 if the mean of at least {min_samples} recent scores misses the threshold, in the"
        " direction of the metric, else 0.",
        labels=names,
    )
    for window in windows:
        series = Series(window.agent, window.scenario, window.tenant)
        with_threshold = thresholds.get(series, {}).get(window.metric)
        if with_threshold is not None:
            missed = with_threshold.verdict(window.mean) == "failed"
            labels = with_judge(_values(window, tenant), with_threshold.judge)
            breached.add_metric(labels, float(missed and window.samples >= min_samples))
    return [threshold, objective, breached]


def metric_info(criteria: Iterable[Criterion]) -> Metric:
    """Range and direction of each metric. If several scorers have one name, the first counts."""
    info = GaugeMetricFamily(
        "pathgauge_metric_info",
        "Range and direction of a metric; the value is always 1.",
        labels=("metric", "min", "max", "direction"),
    )
    scorers = {criterion.name: criterion.scorer for criterion in reversed(tuple(criteria))}
    for name, scorer in scorers.items():
        direction = "higher_is_better" if scorer.higher_is_better else "lower_is_better"
        info.add_metric((name, _bound(scorer.low), _bound(scorer.high), direction), 1)
    return info


def judge_info(criteria: Iterable[Criterion]) -> Metric:
    """Model and template of the judge of each metric."""
    info = GaugeMetricFamily(
        "pathgauge_judge_info",
        "Model and template fingerprint of the judge of a metric; the value is always 1.",
        labels=("metric", "model", "template"),
    )
    judges = [(one.name, judge_value(one.judge)) for one in criteria if one.judge]
    for name, judge in dict.fromkeys(judges):
        model, _, template = judge.rpartition("@")
        info.add_metric((name, model, template), 1)
    return info


def last_evaluations(times: Mapping[Series, float | None], tenant: TenantLabel) -> Metric:
    """When each scenario last had a score; not for those that never had one (`None`)."""
    last = GaugeMetricFamily(
        "pathgauge_last_evaluation_timestamp_seconds",
        "Unix time of the last evaluation with a score.",
        labels=tenant.names("agent", "scenario"),
    )
    for series, time in times.items():
        if time is not None:
            last.add_metric(tenant.values(series.tenant, series.agent, series.scenario), time)
    return last


def expected_intervals(
    references: Iterable[Reference], known: Iterable[Series], tenant: TenantLabel
) -> Metric:
    """How often each scenario should be evaluated, for each tenant that has it. A scenario that no
    tenant has yet is exported without a tenant.
    """
    family = GaugeMetricFamily(
        "pathgauge_expected_interval_seconds",
        "Maximum time between two evaluations of a scenario.",
        labels=tenant.names("scenario"),
    )
    tenants: dict[str, set[str]] = {}
    for series in known:
        tenants.setdefault(series.scenario, set()).add(series.tenant)
    for reference in references:
        if reference.expected_interval is not None:
            scenario = label_value(reference.scenario_id)
            for name in sorted(tenants.get(scenario, {""})):
                family.add_metric(tenant.values(name, scenario), reference.expected_interval)
    return family


def first_seen_versions(versions: Mapping[AgentVersion, float], tenant: TenantLabel) -> Metric:
    """When each version of an agent was first evaluated."""
    family = GaugeMetricFamily(
        "pathgauge_agent_version_first_seen_timestamp_seconds",
        "Unix time of the first evaluation of an agent version.",
        labels=tenant.names("agent", "agent_version"),
    )
    for version, since in versions.items():
        family.add_metric(tenant.values(version.tenant, version.agent, version.version), since)
    return family


def queue_gauges(queues: Mapping[str, Queue]) -> list[Metric]:
    """The fill level of each queue."""
    size = GaugeMetricFamily(
        "pathgauge_queue_size",
        "Present size of a queue, in the unit of its capacity.",
        labels=("queue",),
    )
    capacity = GaugeMetricFamily(
        "pathgauge_queue_capacity", "Maximum size of a queue.", labels=("queue",)
    )
    for name, queue in queues.items():
        size.add_metric((name,), queue.size())
        capacity.add_metric((name,), queue.capacity())
    return [size, capacity]


def _values(window: Window, tenant: TenantLabel) -> tuple[str, ...]:
    return tenant.values(window.tenant, window.agent, window.scenario, window.metric)


def _bound(value: float) -> str:
    return "+Inf" if value == math.inf else f"{value:g}"
