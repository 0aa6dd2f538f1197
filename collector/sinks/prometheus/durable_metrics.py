"""The counts behind counters and histograms, changed in two steps: counted at once, shown to
scrapes when they are durable.

A count that was scraped and then lost in a crash would look to Prometheus like a restart from 0,
and be added to the sum once more. So whoever stores the counts takes what changed
(`DurableMetrics.pending`), commits it together with what it was counted from, and lets scrapes see it then
(`commit`). A series that is new begins at 0, and is shown so at once: that takes nothing back.
Exemplars are not stored.

A stored series whose labels are not those of today's code begins anew, and so does a histogram with
other bounds, as its counts cannot be divided among other buckets. Their rows leave the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, Exemplar, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.sinks.prometheus.durable_series import (
    Count,
    Distribution,
    DurableSeries,
    Note,
    Source,
    State,
)

BOUNDS = "bucket_bounds"
"""The notes that say which bounds the stored counts of each histogram belong to."""

Shown = Iterable[tuple[tuple[str, ...], State]]

T = TypeVar("T", bound=DurableSeries)


class Family(Generic[T]):
    """All series of one name, by the values of their labels."""

    def __init__(
        self,
        name: str,
        labels: Sequence[str],
        make: Callable[[tuple[str, ...], dict[DurableSeries, None]], T],
        lock: threading.Lock,
    ):
        """`lock` is held while series begin, leave or settle, and while a scrape copies them;
        counting needs none.
        """
        self.name = name
        self.labels = labels
        self.make = make
        """What begins a series."""
        self._lock = lock
        self._series: dict[tuple[str, ...], T] = {}
        self._changed: dict[DurableSeries, None] = {}
        self._gone: dict[tuple[str, ...], None] = {}
        self._offered: dict[tuple[str, ...], State | None] = {}
        """What was staged and is not settled; no state for a series that left."""
        self._shown: dict[tuple[str, ...], State] = {}

    def __iter__(self) -> Iterator[T]:
        """All series, as they are counted."""
        return iter(self._series.values())

    def of(self, *labels: str) -> T:
        """The series with these label values, begun at 0 if there is none."""
        tally = self._series.get(labels)
        return self._begin(labels) if tally is None else tally

    def keep(self, wanted: Collection[tuple[str, ...]]) -> None:
        """Drop the series whose label values do not begin with any of `wanted`, all of one length.
        They are shown until that is settled.
        """
        length = len(next(iter(wanted), ()))
        self.drop([labels for labels in self._series if labels[:length] not in wanted])

    def drop(self, unwanted: Iterable[tuple[str, ...]]) -> None:
        """Drop the series with these label values. They are shown until that is settled."""
        with self._lock:
            for labels in unwanted:
                self._changed.pop(self._series.pop(labels), None)
                self._gone[labels] = None

    def get(self, *labels: str) -> T | None:
        """The series with these label values, if there is one."""
        return self._series.get(labels)

    def restore(self, labels: tuple[str, ...], numbers: Sequence[float]) -> None:
        """Let a series go on from what was stored of it, unless that is of another form."""
        size = len(self.make(labels, {}).numbers)
        if len(labels) != len(self.labels) or size not in (0, len(numbers)):
            self.refuse(labels)
            return
        tally = self.of(*labels)
        tally.numbers[:] = numbers
        with self._lock:
            self._changed.pop(tally, None)
            self._shown[labels] = tally.state()

    def refuse(self, labels: tuple[str, ...]) -> None:
        """Have a stored series leave the store."""
        self._gone[labels] = None

    def pending(self) -> list[Row]:
        """What is not settled. The lock must be held, here and below."""
        self._offered.update(dict.fromkeys(self._gone))
        self._offered.update((tally.labels, tally.state()) for tally in self._changed)
        self._gone.clear()
        self._changed.clear()
        return [
            Row((self.name, *labels), state and state.numbers)
            for labels, state in self._offered.items()
        ]

    def commit(self) -> None:
        """Show what was staged last."""
        for labels, state in self._offered.items():
            if state is None:
                self._shown.pop(labels, None)
            else:
                self._shown[labels] = state
        self._offered.clear()

    def shown(self) -> list[tuple[tuple[str, ...], State]]:
        """What scrapes see: label values and states."""
        return list(self._shown.items())

    def _begin(self, labels: tuple[str, ...]) -> T:
        tally = self.make(labels, self._changed)
        with self._lock:
            self._series[labels] = tally
            self._changed[tally] = None
            self._shown.setdefault(labels, tally.state())
        return tally


class DurableMetrics:
    """All families of one sink. One thread counts, stages and settles; series may begin and scrapes
    may run in others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._families: dict[str, Family[Any]] = {}
        self._renderers: dict[str, Callable[[Sequence[str], Shown], Metric]] = {}
        self._beside: dict[str, str] = {}
        """By the names of families, those of the families that are shown with them."""
        self._bounds = self.notes(BOUNDS, ("histogram",))

    def counter(self, name: str, documentation: str, labels: Sequence[str] = ()) -> Family[Count]:
        """A family of counters; scrapes see it as `<name>_total`."""
        self._renderers[name] = partial(_render_counter, name, documentation)
        return self._add(name, labels, Count)

    def histogram(
        self, name: str, documentation: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> Family[Distribution]:
        """A family of histograms; `bounds` are the upper ones of its buckets, in ascending order."""
        self._renderers[name] = partial(_render_histogram, name, documentation, bounds)
        self._bounds.of(name).put(*bounds)
        return self._add(name, labels, partial(Distribution, bounds=bounds))

    def beside(self, family: Family[T], label: str) -> Family[T]:
        """A family of series that have one label more, shown under the name of `family` and stored
        under one of its own.

        So those without the label are stored and shown as if it did not exist.
        """
        name = f"{family.name} by {label}"
        if bounds := self._bounds.get(family.name):
            self._bounds.of(name).put(*bounds.numbers)
        self._beside[family.name] = name
        return self._add(name, (*family.labels, label), family.make)

    def notes(self, name: str, labels: Sequence[str]) -> Family[Note]:
        """A family that is stored and not shown."""
        return self._add(name, labels, Note)

    def pending(self) -> list[Row]:
        """Every series that is not settled, as it is now. Asked again before `commit`, it gives
        those with what was added.
        """
        with self._lock:
            return [row for family in self._families.values() for row in family.pending()]

    def commit(self) -> None:
        """Show what `pending` gave last: it is stored."""
        with self._lock:
            for family in self._families.values():
                family.commit()

    def restore(self, rows: Iterable[Row]) -> None:
        """Go on from what an earlier process stored; to be called before anything is counted. Rows
        of other names are passed over.
        """
        stored = [row for row in rows if row.state is not None and row.key[0] in self._families]
        bounds = {key[1]: tuple(state or ()) for key, state in stored if key[0] == BOUNDS}
        today = {note.labels[0]: tuple(note.numbers) for note in self._bounds}
        for (name, *labels), state in stored:
            family = self._families[name]
            if bounds.get(name, today.get(name)) != today.get(name):
                family.refuse(tuple(labels))
            elif family is not self._bounds:
                family.restore(tuple(labels), state or ())

    def collect(self) -> list[Metric]:
        """What scrapes see, all of it of one moment."""
        return self.render(self.shown())

    def shown(self) -> Mapping[str, Shown]:
        """The same before it is rendered, which takes longer."""
        with self._lock:
            return {
                name: [series for family in self._shown_as(name) for series in family.shown()]
                for name in self._renderers
            }

    def render(self, shown: Mapping[str, Shown]) -> list[Metric]:
        """Families of what was shown."""
        return [
            self._renderers[name](self._shown_as(name)[-1].labels, series)
            for name, series in shown.items()
        ]

    def _shown_as(self, name: str) -> list[Family[Any]]:
        """The families that are shown under a name, that with the most labels last."""
        return [self._families[each] for each in (name, self._beside.get(name)) if each is not None]

    def _add(
        self,
        name: str,
        labels: Sequence[str],
        make: Callable[[tuple[str, ...], dict[DurableSeries, None]], T],
    ) -> Family[T]:
        family = self._families[name] = Family(name, labels, make, self._lock)
        return family


def _render_counter(name: str, documentation: str, labels: Sequence[str], shown: Shown) -> Metric:
    """A series may have fewer values than there are `labels`: it has none of those at the end."""
    family = CounterMetricFamily(name, documentation, labels=labels)
    for values, (numbers, exemplars) in shown:
        family.add_metric(
            values, numbers[0], exemplar=_exemplar(*exemplars[0]) if exemplars else None
        )
    return family


def _render_histogram(
    name: str, documentation: str, bounds: Sequence[float], labels: Sequence[str], shown: Shown
) -> Metric:
    family = HistogramMetricFamily(name, documentation, labels=labels)
    names = [*map(floatToGoString, bounds), "+Inf"]
    for values, ((total, *counts), exemplars) in shown:
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = list(
            zip(names, accumulate(counts), strict=True)
        )
        for place, exemplar in exemplars.items():
            buckets[place] = *buckets[place][:2], _exemplar(*exemplar)
        family.add_metric(values, buckets, total)
    return family


def _exemplar(value: float, source: Source) -> Exemplar:
    return Exemplar(source.labels, value, source.at)
