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

from prometheus_client.core import GaugeMetricFamily, Metric

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.windows import Series, Window
from pathgauge.collector.sinks.prometheus.exposition import text
from pathgauge.collector.sinks.prometheus.exposition.blocks import Block, compressed
from pathgauge.collector.sinks.prometheus.exposition.text import Form
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, with_judge
from pathgauge.collector.sinks.prometheus.labels import TenantLabel

SERIES_OF_CHUNK = 12
"""Series that are read and written in one step."""

_NAMES = {
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
    "pathgauge_last_evaluation_timestamp_seconds": (
        "Unix time of the last evaluation with a score."
    ),
}
_MEAN, _MIN, _SAMPLES, _THRESHOLD, _OBJECTIVE, _BREACHED, _LAST = range(len(_NAMES))

_Rows = Iterator[tuple[tuple[str, ...], Sequence[tuple[int, float]]]]
"""Label values, and the number of a family with a value."""


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
        self._labels = tenant.names("agent", "scenario", "metric", JUDGE)
        self._texts = {
            name: text_.format(min_samples=min_samples) for name, text_ in _NAMES.items()
        }

    def metrics(self, states: Iterable[ScenarioState]) -> list[Metric]:
        """All families, as prometheus_client has them."""
        last = self._tenant.names("agent", "scenario")
        families = [
            GaugeMetricFamily(name, text_, labels=last if number == _LAST else self._labels)
            for number, (name, text_) in enumerate(self._texts.items())
        ]
        for state in states:
            for labels, values in self._rows(state):
                for number, value in values:
                    families[number].add_metric(labels, value)
        return list(families)

    def heads(self, form: Form) -> Iterator[bytes]:
        """What stands before the gauges of each family."""
        for name, text_ in self._texts.items():
            yield text.comments(name, "gauge", text_, form).encode()

    def bodies(self, states: Iterable[ScenarioState]) -> list[bytes]:
        """Some of the gauges, by family."""
        samples: list[list[tuple[str, float]]] = [[] for _ in _NAMES]
        for state in states:
            for labels, values in self._rows(state):
                of = text.labels(self._labels, labels)
                for number, value in values:
                    samples[number].append((of, value))
        return [
            text.gauge_lines(name, of_family).encode()
            for name, of_family in zip(_NAMES, samples, strict=True)
        ]

    def _rows(self, state: ScenarioState) -> _Rows:
        place = self._tenant.values(state.series.tenant, state.series.agent, state.series.scenario)
        for window in state.windows:
            labels = with_judge((*place, window.metric), state.judge(window.metric))
            yield (
                labels,
                ((_MEAN, window.mean), (_MIN, window.minimum), (_SAMPLES, window.samples)),
            )
            criterion = state.thresholds.get(window.metric)
            if criterion is not None:
                labels = with_judge((*place, window.metric), criterion.judge)
                missed = criterion.verdict(window.mean) == "failed"
                breached = missed and window.samples >= self._min_samples
                yield labels, ((_BREACHED, float(breached)),)
        for criterion in state.thresholds.values():
            labels = with_judge((*place, criterion.name), criterion.judge)
            if criterion.threshold is not None:
                yield labels, ((_THRESHOLD, criterion.threshold),)
            if criterion.objective is not None:
                yield labels, ((_OBJECTIVE, criterion.objective),)
        if state.last is not None:
            yield place, ((_LAST, state.last),)


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
        for number, head in enumerate(self._gauges.heads(form)):
            yield head
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
        chunk.blocks = [compressed(body) for body in self._gauges.bodies(states)]
        shown = [(window, state) for state in states for window in state.windows]
        chunk.oldest = min((window.last for window, _ in shown), default=math.inf)
        chunk.windows = [window for window, state in shown if window.metric in state.aggregated]
