"""Metrics of the prometheus_client library that start at 0 in every process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector


class Live(Collector):
    """Exports metrics that are in no registry, without their `_created` series."""

    def __init__(self, metrics: Iterable[Counter | Histogram]) -> None:
        self._metrics = tuple(metrics)

    def collect(self) -> Iterator[Metric]:
        """All metrics. prometheus_client calls this at a scrape."""
        for metric in self._metrics:
            for family in metric.collect():
                family.samples = [
                    sample for sample in family.samples if not sample.name.endswith("_created")
                ]
                yield family
