"""Is an agent worse than it was? Windows over recent scores and what they are compared with come
in, series with p-values go out.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric as Family

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.collector.core.evaluations.significance import p_value
from pathgauge.collector.core.evaluations.statistics import RunningStatistics, moments_of
from pathgauge.collector.core.evaluations.windows import Series, Window
from pathgauge.collector.core.references import versions
from pathgauge.collector.sinks.prometheus.baselines import Baselines, Metric
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, with_judge
from pathgauge.collector.sinks.prometheus.labels import NAME_BYTES, OTHER, TenantLabel, label_value
from pathgauge.scorers.types import Json, Reference


class _Measure(NamedTuple):
    """What scores of a metric are measured with."""

    mark: float
    higher_is_better: bool
    judge: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Recent scores, and what they are compared with."""

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
        self._criteria_for: Callable[[str], tuple[Criterion, ...]] = lambda scenario: ()
        self._references: Mapping[str, Reference] = {}
        self._measures: dict[str, dict[str, _Measure]] = {}

    def configure(
        self,
        criteria_for: Callable[[str], tuple[Criterion, ...]],
        references: Mapping[str, Reference],
        pinned: Mapping[str, str],
    ) -> None:
        """Put criteria and references in force, both by the label of their scenario, and the pinned
        version of each agent.
        """
        self._criteria_for = criteria_for
        self._references = references
        self._baselines.pinned = {
            label_value(agent, NAME_BYTES): label_value(name, NAME_BYTES)
            for agent, name in pinned.items()
        }
        self._measures = {}

    def restore(self, now: float) -> None:
        """Go on with what was restored of the baselines."""
        self._baselines.restore(now)

    def record(
        self, evaluation: Evaluation, series: Series, version: str | None, now: float
    ) -> None:
        """Keep the scores of an evaluation, to compare later ones with. What found no room for its
        name is a mixture, and has no past.
        """
        if OTHER in (series.agent, series.scenario):
            return
        measures = self._measures_of(series.scenario)
        for result in evaluation.results:
            measure = measures.get(result.criterion.name)
            if measure is not None and result.score.value is not None:
                self._baselines.record(
                    Metric(series, result.criterion.name),
                    version,
                    measure.mark,
                    result.score.value,
                    now,
                )

    def comparisons(self, windows: Iterable[Window], now: float) -> list[Comparison]:
        """What can be compared: all windows with the week before, and those of each newest version
        with the version before it.
        """
        compared: list[Comparison] = []
        of_versions: dict[Metric, dict[str, Window]] = {}
        for window in windows:
            metric = Metric(Series(window.agent, window.scenario, window.tenant), window.metric)
            if window.version is not None:
                of_versions.setdefault(metric, {})[window.version] = window
            elif (measure := self._measures_of(window.scenario).get(window.metric)) is not None:
                past = self._baselines.week_ago(metric, measure.mark, now)
                if past is not None:
                    compared.append(
                        Comparison(
                            metric, "week", window, past, measure.higher_is_better, measure.judge
                        )
                    )
        return [*compared, *self._with_versions_before(of_versions)]

    def _with_versions_before(
        self, of_versions: Mapping[Metric, Mapping[str, Window]]
    ) -> Iterator[Comparison]:
        for metric, windows in of_versions.items():
            measure = self._measures_of(metric.series.scenario).get(metric.name)
            newest = (
                None
                if measure is None
                else self._baselines.newest(metric, windows.keys(), measure.mark)
            )
            if measure is not None and newest is not None:
                past = self._baselines.version_before(
                    metric, newest, measure.mark, self._min_samples
                )
                if past is not None:
                    yield Comparison(
                        metric,
                        "version",
                        windows[newest],
                        past,
                        measure.higher_is_better,
                        measure.judge,
                    )

    def _measures_of(self, scenario: str) -> dict[str, _Measure]:
        measures = self._measures.get(scenario)
        if measures is None:
            reference = self._references.get(scenario)
            measures = self._measures[scenario] = {
                criterion.name: _Measure(
                    _mark(criterion, reference), criterion.scorer.higher_is_better, criterion.judge
                )
                for criterion in self._criteria_for(scenario)
            }
        return measures


def known_version(version: str) -> str | None:
    """The label of a version, when it stands for one."""
    return None if version in ("", OTHER) else version


def regression_gauges(
    comparisons: Iterable[Comparison], min_samples: int, tenant: TenantLabel
) -> list[Family]:
    """Both sides of each comparison, and the p-value where both have enough samples."""
    names = tenant.names("agent", "scenario", "metric", "baseline", JUDGE)
    families = {
        name: GaugeMetricFamily(f"pathgauge_{name}", documentation, labels=names)
        for name, documentation in (
            (
                "baseline_score",
                (
                    "Mean of the scores that recent ones are compared with, in the scale of the"
                    " metric."
                ),
            ),
            ("baseline_samples", "How many of them there are."),
            (
                "regression_score",
                "Mean of the recent scores that are compared, in the scale of the metric.",
            ),
            ("regression_samples", "How many of them there are."),
            (
                "regression_p_value",
                (
                    "Probability that scores fall so far, or further, behind the baseline when"
                    " nothing has changed."
                ),
            ),
        )
    }
    for one in comparisons:
        series = one.metric.series
        values = tenant.values(
            series.tenant, series.agent, series.scenario, one.metric.name, one.baseline
        )
        labels = with_judge(values, one.judge)
        recent = moments_of(one.window.values)
        said = {
            "baseline_score": one.past.mean,
            "baseline_samples": one.past.samples,
            "regression_score": recent.mean,
            "regression_samples": recent.samples,
            "regression_p_value": p_value(
                recent, one.past, higher_is_better=one.higher_is_better, least_samples=min_samples
            ),
        }
        for name, value in said.items():
            if value is not None:
                families[name].add_metric(labels, value)
    return list(families.values())


def _mark(criterion: Criterion, reference: Reference | None) -> float:
    """A number that changes with everything that scores of a criterion depend on, thresholds not
    among it.
    """
    scorer, judge = criterion.scorer, [criterion.judge] if criterion.judge else []
    turns = (
        versions.version(dataclasses.replace(reference, criteria={}))
        if reference is not None and scorer.needs_reference
        else ""
    )
    said = json.dumps(
        [scorer.name, scorer.version, _written(scorer), turns, *judge], sort_keys=True
    )
    return float(zlib.crc32(said.encode("utf-8", "surrogatepass")))


def _written(value: object) -> Json:
    """An option as JSON that is the same in every process; of what has no such form, its type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _written(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_written(item) for item in value]
    fields = getattr(value, "__dataclass_fields__", {})
    return {"\0type": type(value).__qualname__} | {
        name: _written(getattr(value, name, None)) for name in fields
    }
