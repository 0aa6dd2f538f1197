"""The durable metric families of one sink, and their way into the store and to scrapes.

A stored series with other labels than the code has today is deleted from the store and starts at 0.
So does a histogram with other bucket bounds: its counts cannot be moved to other buckets. Exemplars
are not stored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from prometheus_client.core import CounterMetricFamily, Exemplar, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from pathgauge.collector.core.internal_telemetry import Counter, InternalTelemetry, Row
from pathgauge.collector.sinks.prometheus.durable_family import Family, LabelValues, Published, T
from pathgauge.collector.sinks.prometheus.durable_series import (
    CounterSeries,
    HistogramSeries,
    Source,
    State,
    StoredValues,
)

BOUNDS = "bucket_bounds"
"""Stored with the histograms: the bucket bounds of each."""
RETIRED = frozenset({"scores_of_version", "scores_of_day"})
"""Families that earlier versions stored. Their series are deleted from the store."""


class DurableMetrics:
    """All families of one sink. One thread counts, stores what `pending` returns, and calls
    `commit`; scrapes may run in others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._families: dict[str, Family[Any]] = {}
        """By name in the store."""
        self._expositions: dict[
            str, tuple[Callable[[], Published], Callable[[Published], Metric]]
        ] = {}
        """What scrapes see, and how it is rendered."""
        self._sources: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self._refused: dict[LabelValues, None] = {}
        """Stored series to delete from the store."""
        self._bounds = self.stored_values(BOUNDS, ("histogram",))

    def counter(
        self, name: str, documentation: str, labels: Sequence[str] = (), optional_label: str = ""
    ) -> Family[CounterSeries]:
        """A family of counters; scrapes see it as `<name>_total`."""
        family = self._add(Family(name, labels, CounterSeries, self._lock, optional_label))
        render = partial(_render_counter, name, documentation, family.labels)
        self._expositions[name] = family.published, render
        return family

    def histogram(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        optional_label: str = "",
        *,
        bounds: Sequence[float],
    ) -> Family[HistogramSeries]:
        """A family of histograms; `bounds` are the upper bounds of the buckets, ascending."""
        make = partial(HistogramSeries, bounds=bounds)
        family = self._add(Family(name, labels, make, self._lock, optional_label))
        render = partial(_render_histogram, name, documentation, family.labels, bounds)
        self._expositions[name] = family.published, render
        for stored_name in family.stored_names.values():
            self._bounds.of(stored_name).put(*bounds)
        return family

    def stored_values(self, name: str, labels: Sequence[str]) -> Family[StoredValues]:
        """A family that is stored and not shown."""
        return self._add(Family(name, labels, StoredValues, self._lock))

    def add_source(self, collect: Callable[[], None], resume: Callable[[], None]) -> None:
        """Counts that are kept elsewhere: `collect` copies them into a family before every
        `pending`, `resume` copies restored ones back.
        """
        self._sources.append((collect, resume))

    def add_telemetry(self, telemetry: InternalTelemetry) -> None:
        """Show all counters as `pathgauge_<name>_total`, and store those that are not local."""
        for counter in telemetry:
            name = f"pathgauge_{counter.name}"
            read: Callable[[], Published] = partial(_present, counter)
            if not counter.local:
                family = self._add(Family(counter.name, counter.labels, CounterSeries, self._lock))
                _collect(counter, family)  # begin at 0 before the first commit
                self.add_source(
                    partial(_collect, counter, family), partial(_resume, counter, family)
                )
                read = family.published
            render = partial(_render_counter, name, counter.documentation, counter.labels)
            self._expositions[name] = read, render

    def pending(self) -> list[Row]:
        """Every series that changed since the last commit, with its present numbers."""
        for collect, _ in self._sources:
            collect()
        rows: dict[tuple[str, ...], Row] = {key: Row(key, None) for key in self._refused}
        with self._lock:
            for family in dict.fromkeys(self._families.values()):
                rows.update((tuple(row.key), row) for row in family.pending())
        return list(rows.values())

    def commit(self) -> None:
        """Publish what `pending` returned last: it is stored."""
        self._refused.clear()
        with self._lock:
            for family in dict.fromkeys(self._families.values()):
                family.commit()

    def restore(self, rows: Iterable[Row]) -> None:
        """Continue what an earlier process stored; call it before anything is counted. Rows of
        unknown names are ignored.
        """
        stored = {tuple(key): state for key, state in rows if state is not None}
        for key, numbers in stored.items():
            if key[0] in RETIRED:
                self._refused[key] = None
            family = self._families.get(key[0], self._bounds)
            if family is self._bounds:
                continue
            bounds = stored.get((BOUNDS, key[0]))
            if not (self._has_bounds(key[0], bounds) and family.restore(key, numbers)):
                self._refused[key] = None
        for _, resume in self._sources:
            resume()

    def collect(self) -> list[Metric]:
        """What scrapes see."""
        return self.render(self.published())

    def published(self) -> Mapping[str, Published]:
        """The same before it is rendered, which takes longer. All of it is of one moment."""
        with self._lock:
            return {name: read() for name, (read, _) in self._expositions.items()}

    def render(self, published: Mapping[str, Published]) -> list[Metric]:
        """Metric families of what `published` returned."""
        return [self._expositions[name][1](series) for name, series in published.items()]

    def _has_bounds(self, name: str, bounds: Sequence[float] | None) -> bool:
        """Whether a family has these bucket bounds today; `None` for unknown ones."""
        today = self._bounds.get(name)
        return today is None or bounds is None or list(bounds) == today.numbers

    def _add(self, family: Family[T]) -> Family[T]:
        self._families.update(dict.fromkeys(family.stored_names.values(), family))
        return family


def _collect(counter: Counter, family: Family[CounterSeries]) -> None:
    for labels, count in counter.items():
        series = family.of(*labels)
        if count != series.numbers[0]:
            series.add(count - series.numbers[0])


def _resume(counter: Counter, family: Family[CounterSeries]) -> None:
    for series in family:
        counter.restore(series.labels, int(series.numbers[0]))


def _present(counter: Counter) -> Published:
    return {labels: State((count,), {}) for labels, count in counter.items()}


def _render_counter(
    name: str, documentation: str, labels: Sequence[str], published: Published
) -> Metric:
    """A series may have fewer values than `labels`: it lacks the optional label at the end."""
    family = CounterMetricFamily(name, documentation, labels=labels)
    for values, (numbers, exemplars) in published.items():
        exemplar = _exemplar(*exemplars[0]) if exemplars else None
        family.add_metric(values, numbers[0], exemplar=exemplar)
    return family


def _render_histogram(
    name: str,
    documentation: str,
    labels: Sequence[str],
    bounds: Sequence[float],
    published: Published,
) -> Metric:
    family = HistogramMetricFamily(name, documentation, labels=labels)
    names = [*map(floatToGoString, bounds), "+Inf"]
    for values, ((total, *counts), exemplars) in published.items():
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = list(
            zip(names, accumulate(counts), strict=True)
        )
        for index, exemplar in exemplars.items():
            buckets[index] = *buckets[index][:2], _exemplar(*exemplar)
        family.add_metric(values, buckets, total)
    return family


def _exemplar(value: float, source: Source) -> Exemplar:
    return Exemplar(source.labels, value, source.at)
