"""The series that are rendered at scrape time from what others keep: windows, criteria, the ledger
and queues.

Plain values come in, prometheus_client metric families go out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.windows import Series, Window
from pathgauge.collector.core.internal_telemetry import Counter
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, Judges, judge_value, with_judge
from pathgauge.collector.sinks.prometheus.labels import AgentVersion, TenantLabel, label_value
from pathgauge.scorers.types import Reference

SCORE_LABELS = ("agent", "scenario", "metric")

Thresholds = Mapping[Series, Mapping[str, Criterion]]
"""The criteria that have a threshold, by series and name."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue to watch: how full it is now, and how full it can be, both in its own unit."""

    size: Callable[[], float]
    capacity: float


def window_gauges(windows: Iterable[Window], judges: Judges, tenant: TenantLabel) -> list[Metric]:
    """The gauges that people look at, in the scale of the scorer."""
    names = tenant.names(*SCORE_LABELS, JUDGE)
    mean = GaugeMetricFamily(
        "pathgauge_score_window_mean",
        "Mean of the recent scores, in the scale of the metric.",
        labels=names,
    )
    lowest = GaugeMetricFamily(
        "pathgauge_score_window_min",
        "Lowest of the recent scores, in the scale of the metric.",
        labels=names,
    )
    samples = GaugeMetricFamily(
        "pathgauge_score_window_samples", "How many recent scores there are.", labels=names
    )
    for window in windows:
        values = tenant.values(window.tenant, window.agent, window.scenario, window.metric)
        labels = with_judge(values, judges.of(window.scenario, window.metric))
        mean.add_metric(labels, window.mean)
        lowest.add_metric(labels, window.minimum)
        samples.add_metric(labels, window.samples)
    return [mean, lowest, samples]


def threshold_gauges(
    thresholds: Thresholds, windows: Iterable[Window], min_samples: int, tenant: TenantLabel
) -> list[Metric]:
    """The thresholds and objectives in force, and which window means are on the wrong side of their
    threshold.
    """
    names = tenant.names(*SCORE_LABELS, JUDGE)
    threshold = GaugeMetricFamily(
        "pathgauge_threshold", "Threshold of a metric, in its own scale.", labels=names
    )
    objective = GaugeMetricFamily(
        "pathgauge_objective", "Wanted share of passes, between 0 and 1.", labels=names
    )
    for series, criteria in thresholds.items():
        for criterion in criteria.values():
            if criterion.threshold is not None:
                values = tenant.values(series.tenant, series.agent, series.scenario, criterion.name)
                labels = with_judge(values, criterion.judge)
                threshold.add_metric(labels, criterion.threshold)
                if criterion.objective is not None:
                    objective.add_metric(labels, criterion.objective)
    breached = GaugeMetricFamily(
        "pathgauge_threshold_breached",
        "1 when the window mean misses the threshold, in the direction of the metric and with at"
        f" least {min_samples} samples, else 0.",
        labels=names,
    )
    for window in windows:
        judged = thresholds.get(Series(window.agent, window.scenario, window.tenant), {}).get(
            window.metric
        )
        if judged is not None:
            missed = window.samples >= min_samples and judged.verdict(window.mean) == "failed"
            values = tenant.values(window.tenant, window.agent, window.scenario, window.metric)
            breached.add_metric(with_judge(values, judged.judge), float(missed))
    return [threshold, objective, breached]


def metric_info(criteria: Iterable[Criterion]) -> Metric:
    """Scale and direction of each metric; of several scorers under one name the first."""
    info = GaugeMetricFamily(
        "pathgauge_metric_info",
        "Range and direction of a metric; always 1.",
        labels=("metric", "min", "max", "direction"),
    )
    for name, scorer in {
        criterion.name: criterion.scorer for criterion in reversed(tuple(criteria))
    }.items():
        direction = "higher_is_better" if scorer.higher_is_better else "lower_is_better"
        info.add_metric((name, _bound(scorer.low), _bound(scorer.high), direction), 1)
    return info


def judge_info(criteria: Iterable[Criterion]) -> Metric:
    """Which model judges each metric, and by which template."""
    info = GaugeMetricFamily(
        "pathgauge_judge_info",
        "The model that judges a metric, and a digest of what shapes its question; always 1.",
        labels=("metric", "model", "template"),
    )
    for name, judge in dict.fromkeys(
        (criterion.name, judge_value(criterion.judge)) for criterion in criteria if criterion.judge
    ):
        model, _, template = judge.rpartition("@")
        info.add_metric((name, model, template), 1)
    return info


def last_evaluations(times: Mapping[Series, float | None], tenant: TenantLabel) -> Metric:
    """When each scenario last had a score; `None` where it never had one."""
    last = GaugeMetricFamily(
        "pathgauge_last_evaluation_timestamp_seconds",
        "Unix time of the last evaluation that had a score.",
        labels=tenant.names("agent", "scenario"),
    )
    for series, time in times.items():
        if time is not None:
            last.add_metric(tenant.values(series.tenant, series.agent, series.scenario), time)
    return last


def expected_intervals(
    references: Iterable[Reference], seen: Iterable[Series], tenant: TenantLabel
) -> Metric:
    """How often each scenario should be evaluated: of every tenant that had it, and of no tenant
    while none had.
    """
    family = GaugeMetricFamily(
        "pathgauge_expected_interval_seconds",
        "How often a scenario should be evaluated at least.",
        labels=tenant.names("scenario"),
    )
    tenants: dict[str, set[str]] = {}
    for series in seen:
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
        "Unix time of the first evaluation of a version of an agent.",
        labels=tenant.names("agent", "agent_version"),
    )
    for version, since in versions.items():
        family.add_metric(tenant.values(version.tenant, version.agent, version.version), since)
    return family


InternalTelemetryCounts = Sequence[tuple[Counter, Sequence[tuple[tuple[str, ...], int]]]]
"""Counters, and what they show."""


def ledger_counters(shown: InternalTelemetryCounts) -> list[Metric]:
    """Every counter of the ledger as `pathgauge_<name>_total`."""
    families: list[Metric] = []
    for counter, counts in shown:
        family = CounterMetricFamily(
            f"pathgauge_{counter.name}", counter.documentation, labels=counter.labels
        )
        for values, count in counts:
            family.add_metric(values, count)
        families.append(family)
    return families


def queue_gauges(queues: Mapping[str, Queue]) -> list[Metric]:
    """How full each queue is."""
    size = GaugeMetricFamily(
        "pathgauge_queue_size", "What waits in a queue now.", labels=("queue",)
    )
    capacity = GaugeMetricFamily(
        "pathgauge_queue_capacity",
        "What a queue can hold, in the unit of its size.",
        labels=("queue",),
    )
    for name, queue in queues.items():
        size.add_metric((name,), queue.size())
        capacity.add_metric((name,), queue.capacity)
    return [size, capacity]


def _bound(value: float) -> str:
    return "+Inf" if value == math.inf else f"{value:g}"
