"""A metric family with two-phase counters: count at once, show to scrapes when stored.

A count that was scraped and then lost in a crash looks to Prometheus like a counter reset: the
restarted process counts the same events again, and `increase` adds them twice. So a change is first
pending, then written to the store, then committed, which publishes it. A new series is published as
0 at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Generic, TypeVar

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.durable_series import (
    Buckets,
    DurableSeries,
    HistogramSeries,
    State,
)
from pathgauge.collector.sinks.prometheus.exposition.chunks import Chunks, Published
from pathgauge.collector.sinks.prometheus.labels import OF_PLACE

LabelValues = tuple[str, ...]
Snapshot = Published[LabelValues, State]
"""What scrapes see of a family."""

T = TypeVar("T", bound=DurableSeries)


class Family(Generic[T]):
    """All series of one name. Only one thread at a time may count."""

    def __init__(
        self,
        name: str,
        labels: Sequence[str],
        make: Callable[[LabelValues, dict[DurableSeries, None]], T],
        lock: threading.Lock,
        optional_label: str = "",
        *,
        lines: int = 1,
    ) -> None:
        """`make` creates a series, which takes so many `lines` of a scrape; 0: scrapes do not see
        it. `lock` is held while series are added or dropped; the caller
        holds it around `pending`, `commit` and `published`.

        Series may have a value for `optional_label` after the others. They are stored under a name
        of their own: the number of values alone does not tell which labels a stored series had.
        """
        self.labels = (*labels, optional_label) if optional_label else tuple(labels)
        self.stored_names = {len(labels): name}
        """Names in the store, by number of label values."""
        if optional_label:
            self.stored_names[len(labels) + 1] = f"{name} by {optional_label}"
        self._make = make
        self._lock = lock
        self._series: dict[LabelValues, T] = {}
        self._changed: dict[DurableSeries, None] = {}
        self._dropped: dict[LabelValues, None] = {}
        self._pending: dict[LabelValues, State | None] = {}
        """Not committed; `None` for a dropped series."""
        self._place = len(tuple(takewhile(OF_PLACE.__contains__, labels)))
        """The number of labels at the start whose series change together."""
        self._published = Chunks[LabelValues, State](self._place, lines) if lines else None
        self._zero = make((), {}).state()
        """Shared by all series that were never counted, which are most."""

    def __iter__(self) -> Iterator[T]:
        """All series, as they are counted."""
        return iter(self._series.values())

    def get(self, *labels: str) -> T | None:
        """The series with these label values, if there is one."""
        return self._series.get(labels)

    def of(self, *labels: str) -> T:
        """The series with these label values; a new one starts at 0."""
        series = self._series.get(labels)
        return self._add(labels) if series is None else series

    def keep(self, wanted: Collection[LabelValues]) -> None:
        """Drop the series whose label values do not start with any of `wanted`, which are all of
        one length.
        """
        length = len(next(iter(wanted), ()))
        if self._published is not None and length <= self._place:
            gone = self._published.outside(wanted, length)
            self.drop([labels for labels in gone if labels in self._series])
        else:
            self.drop([labels for labels in self._series if labels[:length] not in wanted])

    def drop(self, unwanted: Iterable[LabelValues]) -> None:
        """Drop the series with these label values. Scrapes see them until that is committed."""
        with self._lock:
            for labels in unwanted:
                self._changed.pop(self._series.pop(labels), None)
                self._dropped[labels] = None

    def show_buckets(
        self: Family[HistogramSeries], series: HistogramSeries, buckets: Buckets | None
    ) -> None:
        """Show these buckets of a histogram to scrapes; `None`: those of the family."""
        if series.buckets == buckets:
            return
        series.buckets = buckets
        self._changed[series] = None
        with self._lock:
            shown = self._published and self._published.get(series.labels)
            if shown:
                self._publish(series.labels, shown._replace(buckets=buckets))

    def restore(self, key: LabelValues, numbers: Sequence[float]) -> bool:
        """Continue a stored series; `False` if its form is not that of this family."""
        name, *labels = key
        size = len(self._zero.numbers)
        if self.stored_names.get(len(labels)) != name or size not in (0, len(numbers)):
            return False
        series = self.of(*labels)
        series.numbers = tuple(numbers)
        self._changed.pop(series, None)
        self._publish(series.labels, series.state())
        return True

    def pending(self) -> list[Row]:
        """All changes that are not committed."""
        self._pending.update(dict.fromkeys(self._dropped))
        self._pending.update((series.labels, series.state()) for series in self._changed)
        self._dropped.clear()
        self._changed.clear()
        return [
            Row((self.stored_names[len(labels)], *labels), state and state.numbers)
            for labels, state in self._pending.items()
        ]

    def commit(self) -> None:
        """Publish what `pending` returned last."""
        for labels, state in self._pending.items():
            self._publish(labels, state)
        self._pending.clear()

    def published(self) -> Snapshot:
        """What scrapes see at this moment."""
        return Published([]) if self._published is None else self._published.read()

    def _add(self, labels: LabelValues) -> T:
        series = self._make(labels, self._changed)
        with self._lock:
            self._series[labels] = series
            self._changed[series] = None
            if self._published is not None and self._published.get(labels) is None:
                self._published.put(labels, self._zero)
        return series

    def _publish(self, labels: LabelValues, state: State | None) -> None:
        if self._published is None:
            return
        if state is None and labels in self._series:  # it was dropped, and began again
            self._published.put(labels, self._zero)
        elif state is None:
            self._published.discard(labels)
        else:
            self._published.put(labels, state)
