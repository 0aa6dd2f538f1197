"""Gauges that are collected for a scrape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from pathgauge.collector.sinks.prometheus.exposition import text
from pathgauge.collector.sinks.prometheus.exposition.label_text import LabelText
from pathgauge.collector.sinks.prometheus.exposition.text import Form

MAX_LINES = 300
"""Lines that are written in one step, so that other threads wait for a short time only."""


class GaugeFamily:
    """Gauges of one name. That of prometheus_client makes a dictionary for each gauge."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        label_text: LabelText | None = None,
    ) -> None:
        """`label_text` writes these labels, if it is there already."""
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._text = label_text or LabelText(labels)
        self._series: list[tuple[str, ...]] = []
        self._values: list[float] = []

    def add_metric(self, labels: tuple[str, ...], value: float) -> None:
        """Add a gauge; there may be fewer label values than labels."""
        self._series.append(labels)
        self._values.append(value)

    def metric(self) -> Metric:
        """The family as prometheus_client has it."""
        family = GaugeMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels, value in zip(self._series, self._values, strict=True):
            family.add_metric(labels, value)
        return family

    def parts(self, form: Form) -> Iterator[bytes]:
        """The family as text, in several parts."""
        yield self.head(form)
        for start in range(0, len(self._values), MAX_LINES):
            yield self.body(slice(start, start + MAX_LINES))

    def head(self, form: Form) -> bytes:
        """What stands before all gauges."""
        return text.comments(self._name, "gauge", self._documentation, form).encode()

    def body(self, some: slice = slice(None)) -> bytes:
        """Some of the gauges, or all."""
        labels, numbers = self._text.of(self._series[some]), text.numbers(self._values[some])
        return text.samples(self._name, labels, numbers)
