"""The durable metric families of one sink, and their way into the store and to scrapes.

A stored series with other labels than the code has today is deleted from the store and starts at 0.
So does a histogram with other bucket bounds: its counts cannot be moved to other buckets. Exemplars
are not stored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from prometheus_client.core import Metric

from pathgauge.collector.core.counters import Counter
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.durable_family import Family, LabelValues, Snapshot, T
from pathgauge.collector.sinks.prometheus.durable_series import (
    Buckets,
    CounterSeries,
    HistogramSeries,
    State,
    StoredValues,
)
from pathgauge.collector.sinks.prometheus.exposition.blocks import Block, compressed
from pathgauge.collector.sinks.prometheus.exposition.chunks import Content, Published
from pathgauge.collector.sinks.prometheus.exposition.families import (
    CounterFamily,
    HistogramFamily,
)
from pathgauge.collector.sinks.prometheus.exposition.text import Form

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
            str, tuple[Callable[[], Snapshot], CounterFamily | HistogramFamily]
        ] = {}
        """What scrapes see, and how it is written."""
        self._sources: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self._refused: dict[LabelValues, None] = {}
        """Stored series to delete from the store."""
        self._bounds = self.stored_values(BOUNDS, ("histogram",))

    def counter(
        self, name: str, documentation: str, labels: Sequence[str] = (), optional_label: str = ""
    ) -> Family[CounterSeries]:
        """A family of counters; scrapes see it as `<name>_total`."""
        family = self._add(Family(name, labels, CounterSeries, self._lock, optional_label))
        written = CounterFamily(name, documentation, family.labels)
        self._expositions[name] = family.published, written
        return family

    def histogram(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        optional_label: str = "",
        *,
        bounds: Sequence[float],
        shown: Buckets | None = None,
    ) -> Family[HistogramSeries]:
        """A family of histograms; `bounds` are the upper bounds of the buckets, ascending. Scrapes
        see those that are `shown`, or all.
        """
        make = partial(HistogramSeries, bounds=bounds)
        all_labels = (*labels, optional_label) if optional_label else labels
        written = HistogramFamily(name, documentation, all_labels, bounds, shown)
        family = self._add(
            Family(name, labels, make, self._lock, optional_label, lines=written.lines)
        )
        self._expositions[name] = family.published, written
        for stored_name in family.stored_names.values():
            self._bounds.of(stored_name).put(*bounds)
        return family

    def stored_values(self, name: str, labels: Sequence[str]) -> Family[StoredValues]:
        """A family that is stored and not shown."""
        return self._add(Family(name, labels, StoredValues, self._lock, lines=0))

    def add_source(self, collect: Callable[[], None], resume: Callable[[], None]) -> None:
        """Counts that are kept elsewhere: `collect` copies them into a family before every
        `pending`, `resume` copies restored ones back.
        """
        self._sources.append((collect, resume))

    def add_telemetry(self, telemetry: InternalTelemetry) -> None:
        """Show all counters as `pathgauge_<name>_total`, and store those that are not local."""
        for counter in telemetry:
            name = f"pathgauge_{counter.name}"
            read: Callable[[], Snapshot] = partial(_present, counter)
            if not counter.local:
                family = self._add(Family(counter.name, counter.labels, CounterSeries, self._lock))
                _collect(counter, family)  # begin at 0 before the first commit
                self.add_source(
                    partial(_collect, counter, family), partial(_resume, counter, family)
                )
                read = family.published
            written = CounterFamily(name, counter.documentation, counter.labels)
            self._expositions[name] = read, written

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

    def published(self) -> Mapping[str, Snapshot]:
        """The same before it is rendered, which takes longer. All of it is of one moment."""
        with self._lock:
            return {name: read() for name, (read, _) in self._expositions.items()}

    def render(self, published: Mapping[str, Snapshot]) -> list[Metric]:
        """Metric families of what `published` returned."""
        return [
            self._expositions[name][1].metric(series.together())
            for name, series in published.items()
        ]

    def parts(self, published: Mapping[str, Snapshot], form: Form) -> Iterator[bytes | Block]:
        """What `published` returned, written. One thread at a time may do so: what is written is
        kept.
        """
        for name, series in published.items():
            family = self._expositions[name][1]
            yield family.head(form)
            for content in series.contents:
                yield _written(family, content, form)

    def _has_bounds(self, name: str, bounds: Sequence[float] | None) -> bool:
        """Whether a family has these bucket bounds today; `None` for unknown ones."""
        today = self._bounds.get(name)
        return today is None or bounds is None or tuple(bounds) == today.numbers

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


def _present(counter: Counter) -> Snapshot:
    return Published([Content({labels: State((count,), {}) for labels, count in counter.items()})])


def _written(
    family: CounterFamily | HistogramFamily, content: Content[LabelValues, State], form: Form
) -> bytes | Block:
    """The series of a chunk; kept if they do not change any more."""
    block = content.blocks.get(form)
    if block is not None:
        return block
    body = family.body(content.series, form)
    if not content.was_read:
        return body
    block = content.blocks[form] = compressed(body)
    return block
