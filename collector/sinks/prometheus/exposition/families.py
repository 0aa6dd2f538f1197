"""How the counters and histograms of a sink are written, for prometheus_client and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, starmap

from prometheus_client.core import CounterMetricFamily, Exemplar, HistogramMetricFamily, Metric

from pathgauge.collector.sinks.prometheus.durable_series import Buckets, Source, State
from pathgauge.collector.sinks.prometheus.exposition import text
from pathgauge.collector.sinks.prometheus.exposition.label_text import LabelText
from pathgauge.collector.sinks.prometheus.exposition.text import Form

_States = Mapping[tuple[str, ...], State]
"""Series by label values. There may be fewer values than labels: the optional label at the end is
missing.
"""


class CounterFamily:
    """Counters of one name."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._text = LabelText(labels)

    def metric(self, states: _States) -> Metric:
        """The family as prometheus_client has it."""
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, (numbers, exemplars, _) in states.items():
            exemplar = _exemplar(*exemplars[0]) if exemplars else None
            family.add_metric(values, numbers[0], exemplar=exemplar)
        return family

    def head(self, form: Form) -> bytes:
        """What stands before all series."""
        return text.comments(self._name, "counter", self._documentation, form).encode()

    def body(self, states: _States, form: Form) -> bytes:
        """Some of the series."""
        numbers = [text.count(count) for (count,), _, _ in states.values()]
        if form == "openmetrics":
            for at, (_, exemplars, _) in enumerate(states.values()):
                if exemplars:
                    numbers[at] += _text(*exemplars[0])
        return text.samples(f"{self._name}_total", self._text.of([*states]), numbers)


class HistogramFamily:
    """Histograms of one name."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        bounds: Sequence[float],
        shown: Buckets | None = None,
    ) -> None:
        """`bounds` are the upper bounds of the buckets that are counted, `shown` the buckets of
        series that do not choose others; `None`: all.
        """
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._bounds = text.upper_bounds(bounds)
        self._shown = shown or Buckets(tuple(range(len(bounds) + 1)))
        self._text = LabelText(labels)
        self._lines: dict[Buckets, list[str]] = {}
        """The lines of a series in pieces, without labels and numbers."""

    @property
    def lines(self) -> int:
        """Lines of a series at most."""
        return len(self._shown.ends) + 2

    def metric(self, states: _States) -> Metric:
        """The family as prometheus_client has it."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, ((total, *counts), exemplars, chosen) in states.items():
            shown = chosen or self._shown
            buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = [
                (self._bounds[end], count)
                for end, count in zip(shown.ends, shown.cumulated(counts), strict=True)
            ]
            for index, exemplar in shown.exemplars(exemplars).items():
                buckets[index] = *buckets[index][:2], _exemplar(*exemplar)
            family.add_metric(values, buckets, total)
        return family

    def head(self, form: Form) -> bytes:
        """What stands before all series."""
        return text.comments(self._name, "histogram", self._documentation, form).encode()

    def body(self, states: _States, form: Form) -> bytes:
        """Some of the series."""
        pieces: list[str] = []
        for of, state in zip(self._text.of([*states]), states.values(), strict=True):
            (total, *counts), exemplars, chosen = state
            shown = chosen or self._shown
            numbers = [*map(text.count, shown.cumulated(counts))]
            numbers += numbers[-1], text.number(total)
            if form == "openmetrics" and exemplars:
                for index, exemplar in shown.exemplars(exemplars).items():
                    numbers[index] += _text(*exemplar)
            lines = self._lines.get(shown) or self._add_lines(shown)
            pieces += text.filled(lines, [of] * len(numbers), numbers)
        return text.joined(pieces)

    def _add_lines(self, shown: Buckets) -> list[str]:
        comma = "," if self._labels else ""
        around = [
            (f"{self._name}_bucket{{", f'{comma}le="{self._bounds[end]}"}} ') for end in shown.ends
        ]
        around += (
            text.around(f"{self._name}_{kind}", has_labels=bool(self._labels))
            for kind in ("count", "sum")
        )
        lines = self._lines[shown] = [*chain.from_iterable(starmap(text.line, around))]
        return lines


def _exemplar(value: float, source: Source) -> Exemplar:
    return Exemplar(source.labels, value, source.at)


def _text(value: float, source: Source) -> str:
    before, behind = source.around
    return f"{before}{text.number(value)}{behind}"
