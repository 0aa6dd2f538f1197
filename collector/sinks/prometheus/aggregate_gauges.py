"""Gauges of criteria that judge the scores of a scenario, an agent or everything together.

They are computed at scrape time from the windows of recent scores, which hold the newest scores of
each scenario. So a busy scenario weighs at most as much as a full window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from pathgauge.collector.core.evaluations.aggregation import (
    Aggregate,
    Aggregation,
    aggregate,
    verdict,
)
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.sinks.prometheus.exposition.gauge_family import GaugeFamily
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, with_judge
from pathgauge.collector.sinks.prometheus.labels import OTHER, TenantLabel

LABELS = ("agent", "scenario", "metric", "over")

_Scores = dict[str, tuple[float, ...]]
"""The scores of each scenario of each agent."""


def aggregate_gauges(
    windows: Iterable[Window],
    criteria: Callable[[str], Mapping[str, Criterion]],
    min_samples: int,
    tenant: TenantLabel,
) -> list[GaugeFamily]:
    """Value, interval, threshold and breach of each aggregate. `criteria` returns those with an
    aggregation, by name, for a scenario.
    """
    names = tenant.names(*LABELS, JUDGE)
    score = GaugeFamily(
        "pathgauge_aggregate_score",
        "Mean, share of passes, pass@k or pass^k of the recent scores of a scenario, an agent or"
        " everything.",
        labels=names,
    )
    low = GaugeFamily(
        "pathgauge_aggregate_confidence_low",
        "Lower bound of the 95 % confidence interval of an aggregate.",
        labels=names,
    )
    high = GaugeFamily(
        "pathgauge_aggregate_confidence_high",
        "Upper bound of the 95 % confidence interval of an aggregate.",
        labels=names,
    )
    samples = GaugeFamily(
        "pathgauge_aggregate_samples", "Number of scores in an aggregate.", labels=names
    )
    threshold = GaugeFamily(
        "pathgauge_aggregate_threshold", "Threshold of an aggregate.", labels=names
    )
    breached = GaugeFamily(
        "pathgauge_aggregate_breached",
        f"1 if an aggregate of at least {min_samples} scores misses its threshold, else 0.",
        labels=names,
    )
    for series, criterion, aggregation, summary in _aggregates(windows, criteria):
        values = tenant.values(
            series.tenant, series.agent, series.scenario, criterion.name, aggregation.over
        )
        labels = with_judge(values, criterion.judge)
        score.add_metric(labels, summary.value)
        low.add_metric(labels, summary.low)
        high.add_metric(labels, summary.high)
        samples.add_metric(labels, summary.samples)
        if criterion.threshold is not None:
            outcome = verdict(aggregation, criterion.scorer, criterion.threshold, summary.value)
            missed = outcome == "failed" and summary.samples >= min_samples
            threshold.add_metric(labels, criterion.threshold)
            breached.add_metric(labels, float(missed))
    return [score, low, high, samples, threshold, breached]


def _aggregates(
    windows: Iterable[Window], criteria: Callable[[str], Mapping[str, Criterion]]
) -> Iterator[tuple[Series, Criterion, Aggregation, Aggregate]]:
    scores: defaultdict[tuple[Series, str], _Scores] = defaultdict(dict)
    aggregated: dict[tuple[Series, str], tuple[Criterion, Aggregation]] = {}
    for window in windows:
        criterion = criteria(window.scenario).get(window.metric)
        if criterion is None or criterion.aggregation is None:
            continue
        if criterion.aggregation.of_runs and window.scenario in ("", OTHER):
            continue  # runs of different scenarios say nothing about repeated runs of one
        key = _series(criterion.aggregation, window), window.metric
        aggregated.setdefault(key, (criterion, criterion.aggregation))
        scores[key][f"{window.agent}\n{window.scenario}"] = window.values
    for (series, metric), (criterion, aggregation) in aggregated.items():
        summary = aggregate(aggregation, criterion.scorer, scores[series, metric])
        if summary is not None:
            yield series, criterion, aggregation, summary


def _series(aggregation: Aggregation, window: Window) -> Series:
    if aggregation.over == "scenario":
        return Series(window.agent, window.scenario, window.tenant)
    if aggregation.over == "agent":
        return Series(window.agent, "", window.tenant)
    return Series("", "", window.tenant)
