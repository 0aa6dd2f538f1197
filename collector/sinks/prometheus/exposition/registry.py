"""A registry that writes what its collectors show, part by part.

Collectors with many series write their own parts, and keep what did not change. prometheus_client
writes the others, which have few series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, runtime_checkable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from pathgauge.collector.sinks.prometheus.exposition.blocks import Block
from pathgauge.collector.sinks.prometheus.exposition.text import Form

END = b"# EOF\n"
"""The last line of OpenMetrics."""

_GENERATE: dict[Form, Callable[[Collector], bytes]] = {
    "text": generate_latest,
    "openmetrics": generate_openmetrics,
}


@runtime_checkable
class Writing(Protocol):
    """A collector that writes its own parts."""

    def parts(self, form: Form) -> Iterator[bytes | Block]:
        """All series. Only one thread at a time may write them."""
        ...


class Registry(CollectorRegistry):
    """Knows its collectors in the order of their registration."""

    def __init__(self) -> None:
        self._collectors: list[Collector] = []
        super().__init__()

    def register(self, collector: Collector) -> None:
        """Add a collector."""
        super().register(collector)
        self._collectors.append(collector)

    def unregister(self, collector: Collector) -> None:
        """Remove a collector."""
        super().unregister(collector)
        self._collectors.remove(collector)

    def parts(self, form: Form) -> Iterator[bytes | Block]:
        """All series, without the end of the exposition."""
        for collector in tuple(self._collectors):
            yield from parts_of(collector, form)


def parts_of(collector: Collector, form: Form) -> Iterator[bytes | Block]:
    """All series of a collector, without the end of the exposition."""
    if isinstance(collector, Writing):
        yield from collector.parts(form)
    else:
        yield _GENERATE[form](collector).removesuffix(END)


class Families(Collector):
    """Shows these families."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """All of them. prometheus_client calls this at a scrape."""
        return self._families
