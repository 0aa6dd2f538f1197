"""Compares recent scores with those of the previous version and of a week ago."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric as Family

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.evaluations.significance import p_value
from pathgauge.collector.core.evaluations.statistics import RunningStatistics, statistics_of
from pathgauge.collector.core.evaluations.windows import Series, Window
from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.baselines import Baselines, Metric
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, with_judge
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.labels import (
    MAX_NAME_BYTES,
    OTHER,
    TenantLabel,
    label_value,
)
from pathgauge.collector.sinks.prometheus.measure_fingerprint import measure_fingerprint

_DOCUMENTATION = {
    "baseline_score": "Mean of the baseline scores, in the scale of the metric.",
    "baseline_samples": "Number of baseline scores.",
    "regression_score": (
        "Mean of the recent scores that are compared with the baseline, in the scale of the metric."
    ),
    "regression_samples": "Number of recent scores that are compared with the baseline.",
    "regression_p_value": (
        "P-value: the probability of a drop at least this large if the scores did not get worse."
    ),
}


class _Measure(NamedTuple):
    """How a metric is measured."""

    fingerprint: float
    higher_is_better: bool
    judge: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Recent scores and their baseline."""

    metric: Metric
    baseline: Literal["version", "week"]
    window: Window
    past: RunningStatistics
    higher_is_better: bool
    judge: str = ""


class Regressions:
    """The comparisons of one sink. Only one thread at a time may call its methods."""

    def __init__(self, baselines: Baselines, min_samples: int) -> None:
        self._baselines = baselines
        self._min_samples = min_samples
        self._criteria = ActiveCriteria(Evaluator(()), ())
        self._measures: dict[str, dict[str, _Measure]] = {}

    def configure(
        self, criteria: ActiveCriteria, pinned: Mapping[str, str], limits: LabelLimits
    ) -> None:
        """Apply other criteria and limits, and the pinned version of each agent."""
        self._criteria = criteria
        self._baselines.pinned = {
            label_value(agent, MAX_NAME_BYTES): label_value(version, MAX_NAME_BYTES)
            for agent, version in pinned.items()
        }
        self._baselines.limit(limits)
        self._measures = {}

    def restore(self, now: float) -> None:
        """Continue with the restored baselines. Times after `now` count as `now`."""
        self._baselines.restore(now)

    def record(
        self, evaluation: Evaluation, series: Series, version: str | None, now: float
    ) -> None:
        """Add the scores of an evaluation to the baselines of later ones. Series named `__other__`
        mix several agents or scenarios and have no baseline.
        """
        if OTHER in (series.agent, series.scenario):
            return
        measures = self._measures_of(series.scenario)
        for result in evaluation.results:
            name, value = result.criterion.name, result.score.value
            measure = measures.get(name)
            if measure is not None and value is not None:
                metric = Metric(series, name)
                self._baselines.record(metric, version, measure.fingerprint, value, now)

    def comparisons(self, windows: Iterable[Window], now: float) -> list[Comparison]:
        """Each window with the week before, and the window of each newest version with the version
        before it, if these have scores.
        """
        compared: list[Comparison] = []
        by_version: dict[Metric, dict[str, Window]] = {}
        for window in windows:
            metric = Metric(Series(window.agent, window.scenario, window.tenant), window.metric)
            if window.version is None:
                compared += self._with_week_before(metric, window, now)
            else:
                by_version.setdefault(metric, {})[window.version] = window
        for metric, of_metric in by_version.items():
            compared += self._with_version_before(metric, of_metric)
        return compared

    def _with_week_before(self, metric: Metric, window: Window, now: float) -> Iterator[Comparison]:
        measure = self._measure(metric)
        if measure is None:
            return
        past = self._baselines.week_ago(metric, measure.fingerprint, now)
        if past is not None:
            yield Comparison(metric, "week", window, past, measure.higher_is_better, measure.judge)

    def _with_version_before(
        self, metric: Metric, windows: Mapping[str, Window]
    ) -> Iterator[Comparison]:
        measure = self._measure(metric)
        if measure is None:
            return
        newest = self._baselines.newest(metric, windows.keys(), measure.fingerprint)
        if newest is None:
            return
        past = self._baselines.version_before(
            metric, newest, measure.fingerprint, self._min_samples
        )
        if past is not None:
            yield Comparison(
                metric, "version", windows[newest], past, measure.higher_is_better, measure.judge
            )

    def _measure(self, metric: Metric) -> _Measure | None:
        return self._measures_of(metric.series.scenario).get(metric.name)

    def _measures_of(self, scenario: str) -> dict[str, _Measure]:
        measures = self._measures.get(scenario)
        if measures is None:
            reference = self._criteria.references.get(scenario)
            measures = self._measures[scenario] = {
                criterion.name: _Measure(
                    measure_fingerprint(criterion, reference),
                    criterion.scorer.higher_is_better,
                    criterion.judge,
                )
                for criterion in self._criteria.of(scenario)
            }
        return measures


def regression_gauges(
    comparisons: Iterable[Comparison], min_samples: int, tenant: TenantLabel
) -> list[Family]:
    """Both sides of each comparison, and the p-value if both have `min_samples`."""
    names = tenant.names("agent", "scenario", "metric", "baseline", JUDGE)
    families = {
        name: GaugeMetricFamily(f"pathgauge_{name}", documentation, labels=names)
        for name, documentation in _DOCUMENTATION.items()
    }
    for one in comparisons:
        series, past, recent = one.metric.series, one.past, statistics_of(one.window.values)
        values = tenant.values(
            series.tenant, series.agent, series.scenario, one.metric.name, one.baseline
        )
        gauges = {
            "baseline_score": past.mean,
            "baseline_samples": past.samples,
            "regression_score": recent.mean,
            "regression_samples": recent.samples,
            "regression_p_value": p_value(
                recent, past, higher_is_better=one.higher_is_better, min_samples=min_samples
            ),
        }
        for name, value in gauges.items():
            if value is not None:
                families[name].add_metric(with_judge(values, one.judge), value)
    return list(families.values())
