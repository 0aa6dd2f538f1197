"""Counters and histograms that threads change while scrapes read them; each process begins them at
0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector


class Live(Collector):
    """Shows metrics that are registered nowhere else, without the times at which their series
    began.
    """

    def __init__(self, metrics: Iterable[Counter | Histogram]) -> None:
        self._metrics = tuple(metrics)

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks its collectors at a scrape."""
        for metric in self._metrics:
            for family in metric.collect():
                family.samples = [
                    sample for sample in family.samples if not sample.name.endswith("_created")
                ]
                yield family
