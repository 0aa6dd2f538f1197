"""Gauges of single scenarios: their windows of recent scores, their thresholds, and when they were
last evaluated.

They depend on the time of the scrape only in that windows become stale. So a scrape asks for the
windows of the series that changed since the last one, a few at a time: the scoring thread waits for
each request, and would wait long for all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.sinks.prometheus.exposition.blocks import Block, compressed
from pathgauge.collector.sinks.prometheus.exposition.gauge_family import GaugeFamily
from pathgauge.collector.sinks.prometheus.exposition.label_text import LabelText
from pathgauge.collector.sinks.prometheus.exposition.text import Form
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, with_judge
from pathgauge.collector.sinks.prometheus.labels import TenantLabel

SERIES_OF_CHUNK = 12
"""Series that are read and written in one step."""

_OF_METRICS = {
    "pathgauge_score_window_mean": "Mean of the recent scores, in the scale of the metric.",
    "pathgauge_score_window_min": "Lowest recent score, in the scale of the metric.",
    "pathgauge_score_window_samples": "Number of recent scores.",
    "pathgauge_threshold": "Threshold of a metric, in its own scale.",
    "pathgauge_objective": (
        "SLO of a metric: the share of evaluations that should pass, from 0 to 1."
    ),
    "pathgauge_threshold_breached": (
        "1 if the mean of at least {min_samples} recent scores misses the threshold, in the"
        " direction of the metric, else 0."
    ),
}
_LAST = "pathgauge_last_evaluation_timestamp_seconds"


class ScenarioState(NamedTuple):
    """What the gauges of one series show."""

    series: Series
    windows: Sequence[Window]
    thresholds: Mapping[str, Criterion]
    """The criteria that have a threshold, by name. Empty for a series that is not in use."""
    aggregated: Collection[str]
    """The metrics of criteria that judge many scores together."""
    judge: Callable[[str], str]
    """The judge of a metric."""
    last: float | None
    """Unix time of the last score; `None` without one."""


class ScenarioGauges:
    """How these gauges are written."""

    def __init__(self, tenant: TenantLabel, min_samples: int) -> None:
        """A window needs `min_samples` to breach a threshold."""
        self._tenant = tenant
        self._min_samples = min_samples
        of_place = tenant.names("agent", "scenario")
        self._labels_of_place = of_place, LabelText(of_place)
        of_metric = tenant.names("agent", "scenario", "metric", JUDGE)
        self._labels_of_metric = of_metric, LabelText(of_metric)

    def families(self, states: Iterable[ScenarioState]) -> list[GaugeFamily]:
        """All gauges of some scenarios."""
        of_metrics = [
            GaugeFamily(name, text.format(min_samples=self._min_samples), *self._labels_of_metric)
            for name, text in _OF_METRICS.items()
        ]
        mean, minimum, samples, threshold, objective, breached = of_metrics
        last = GaugeFamily(
            _LAST, "Unix time of the last evaluation with a score.", *self._labels_of_place
        )
        for state in states:
            series = state.series
            place = self._tenant.values(series.tenant, series.agent, series.scenario)
            for window in state.windows:
                of = with_judge((*place, window.metric), state.judge(window.metric))
                mean.add_metric(of, window.mean)
                minimum.add_metric(of, window.minimum)
                samples.add_metric(of, window.samples)
                criterion = state.thresholds.get(window.metric)
                if criterion is not None:
                    of = with_judge((*place, window.metric), criterion.judge)
                    breached.add_metric(of, float(self._breaches(window, criterion)))
            for criterion in state.thresholds.values():
                of = with_judge((*place, criterion.name), criterion.judge)
                if criterion.threshold is not None:
                    threshold.add_metric(of, criterion.threshold)
                if criterion.objective is not None:
                    objective.add_metric(of, criterion.objective)
            if state.last is not None:
                last.add_metric(place, state.last)
        return [*of_metrics, last]

    def _breaches(self, window: Window, criterion: Criterion) -> bool:
        if window.samples < self._min_samples:
            return False
        return criterion.verdict(window.mean) == "failed"


@dataclass(slots=True, eq=False)
class _Chunk:
    """A few series, with what was written of them."""

    series: dict[Series, None] = field(default_factory=dict)
    blocks: list[Block] | None = None
    """By family; `None` if something changed."""
    windows: Sequence[Window] = ()
    """The windows of criteria that judge many scores together."""
    oldest: float = math.inf
    """Of the windows that are shown, the earliest time of a last score."""


class ScenarioChunks:
    """The series of a sink in chunks. Only one thread at a time may call its methods."""

    def __init__(self, gauges: ScenarioGauges) -> None:
        self._gauges = gauges
        self._of_series: dict[Series, _Chunk] = {}
        self._chunks: dict[_Chunk, None] = {}
        self._open = _Chunk()

    def change(self, changed: Iterable[Series]) -> None:
        """These series changed, or are new, or are gone."""
        for series in changed:
            chunk = self._of_series.get(series)
            if chunk is None:
                if len(self._open.series) >= SERIES_OF_CHUNK:
                    self._open = _Chunk()
                chunk = self._of_series[series] = self._open
                chunk.series[series] = None
                self._chunks[chunk] = None
            chunk.blocks = None

    def start_again(self, series: Iterable[Series]) -> None:
        """Any series may have changed; these are all."""
        self._of_series.clear()
        self._chunks.clear()
        self._open = _Chunk()
        self.change(series)

    def parts(
        self,
        form: Form,
        read: Callable[[Sequence[Series]], Sequence[ScenarioState]],
        is_stale: Callable[[float], bool],
    ) -> Iterator[bytes | Block]:
        """All families. `read` returns the present state of series, without those that are gone.
        `is_stale`: whether a window with a last score of that time is not shown any more.
        """
        for chunk in tuple(self._chunks):
            if chunk.blocks is None or is_stale(chunk.oldest):
                self._write(chunk, read(tuple(chunk.series)))
        for number, family in enumerate(self._gauges.families(())):
            yield family.head(form)
            for chunk in self._chunks:
                if chunk.blocks is not None:
                    yield chunk.blocks[number]

    def windows(self) -> Iterator[Window]:
        """The windows of criteria that judge many scores together, as they were last read."""
        for chunk in self._chunks:
            yield from chunk.windows

    def _write(self, chunk: _Chunk, states: Sequence[ScenarioState]) -> None:
        known = {state.series for state in states}
        for series in [series for series in chunk.series if series not in known]:
            del chunk.series[series], self._of_series[series]
        if not chunk.series:
            del self._chunks[chunk]
        chunk.blocks = [compressed(family.body()) for family in self._gauges.families(states)]
        shown = [(window, state) for state in states for window in state.windows]
        chunk.oldest = min((window.last for window, _ in shown), default=math.inf)
        chunk.windows = [window for window, state in shown if window.metric in state.aggregated]
