"""How the counters and histograms of a sink are written, for prometheus_client and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, Exemplar, HistogramMetricFamily, Metric

from pathgauge.collector.sinks.prometheus.durable_series import Buckets, Source, State
from pathgauge.collector.sinks.prometheus.exposition import text
from pathgauge.collector.sinks.prometheus.exposition.text import Form

_States = Mapping[tuple[str, ...], State]
"""Series by label values. There may be fewer values than labels: the optional label at the end is
missing.
"""


@dataclass(frozen=True, slots=True)
class CounterFamily:
    """Counters of one name."""

    name: str
    documentation: str
    labels: tuple[str, ...]

    def metric(self, states: _States) -> Metric:
        """The family as prometheus_client has it."""
        family = CounterMetricFamily(self.name, self.documentation, labels=self.labels)
        for values, (numbers, exemplars, _) in states.items():
            exemplar = _exemplar(*exemplars[0]) if exemplars else None
            family.add_metric(values, numbers[0], exemplar=exemplar)
        return family

    def head(self, form: Form) -> bytes:
        """What stands before all series."""
        return text.comments(self.name, "counter", self.documentation, form).encode()

    def body(self, states: _States, form: Form) -> bytes:
        """Some of the series."""
        return "".join(self._lines(states, with_exemplars=form == "openmetrics")).encode()

    def _lines(self, states: _States, *, with_exemplars: bool) -> Iterator[str]:
        name, labels = f"{self.name}_total", self.labels
        for values, ((count,), exemplars, _) in states.items():
            of = text.braced(text.labels(labels, values))
            exemplar = _text(*exemplars[0]) if with_exemplars and exemplars else ""
            yield f"{name}{of} {text.number(count)}{exemplar}\n"


@dataclass(frozen=True, slots=True)
class HistogramFamily:
    """Histograms of one name."""

    name: str
    documentation: str
    labels: tuple[str, ...]
    bounds: Sequence[float]
    """Upper bounds of the buckets that are counted."""
    shown: Buckets | None = None
    """The buckets of series that do not choose others; `None`: all."""

    @property
    def lines(self) -> int:
        """Lines of a series at most."""
        return len(self._buckets(None).ends) + 2

    def metric(self, states: _States) -> Metric:
        """The family as prometheus_client has it."""
        family = HistogramMetricFamily(self.name, self.documentation, labels=self.labels)
        names = text.upper_bounds(self.bounds)
        for values, ((total, *counts), exemplars, chosen) in states.items():
            shown = self._buckets(chosen)
            buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = [
                (names[end], count)
                for end, count in zip(shown.ends, shown.cumulated(counts), strict=True)
            ]
            for index, exemplar in shown.exemplars(exemplars).items():
                buckets[index] = *buckets[index][:2], _exemplar(*exemplar)
            family.add_metric(values, buckets, total)
        return family

    def head(self, form: Form) -> bytes:
        """What stands before all series."""
        return text.comments(self.name, "histogram", self.documentation, form).encode()

    def body(self, states: _States, form: Form) -> bytes:
        """Some of the series."""
        return "".join(self._lines(states, with_exemplars=form == "openmetrics")).encode()

    def _lines(self, states: _States, *, with_exemplars: bool) -> Iterator[str]:
        name, bounds = self.name, text.upper_bounds(self.bounds)
        for values, ((total, *counts), exemplars, chosen) in states.items():
            of = text.labels(self.labels, values)
            start = f"{name}_bucket{{{of}{',' if of else ''}le="
            shown = self._buckets(chosen)
            cumulated = shown.cumulated(counts)
            lines = [
                f'{start}"{bounds[end]}"}} {count:.1f}'
                for end, count in zip(shown.ends, cumulated, strict=True)
            ]
            if with_exemplars and exemplars:
                for index, exemplar in shown.exemplars(exemplars).items():
                    lines[index] += _text(*exemplar)
            yield "\n".join(lines)
            braced = text.braced(of)
            yield f"\n{name}_count{braced} {cumulated[-1]:.1f}\n"
            yield f"{name}_sum{braced} {text.number(total)}\n"

    def _buckets(self, chosen: Buckets | None) -> Buckets:
        return chosen or self.shown or Buckets(tuple(range(len(self.bounds) + 1)))


def _exemplar(value: float, source: Source) -> Exemplar:
    return Exemplar(source.labels, value, source.at)


def _text(value: float, source: Source) -> str:
    return text.exemplar(source.labels, value, source.at)
