"""The series of each process of a cluster. Those of agents are exposed by the gauge alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.receivers.kafka.producer import KafkaLog
from pathgauge.collector.service.cluster.gauge_role import GaugeRole
from pathgauge.collector.service.cluster.partition_scorers import PartitionScorers
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.service.labelled_metrics import labelled
from pathgauge.collector.sinks.prometheus.exposition.blocks import Block
from pathgauge.collector.sinks.prometheus.exposition.registry import Families, parts_of
from pathgauge.collector.sinks.prometheus.exposition.text import Form
from pathgauge.collector.sinks.prometheus.process_metrics import process_metrics
from pathgauge.collector.sinks.prometheus.store_metrics import unread_publications

PARTITION = "partition"


class ProcessSeries(Collector):
    """The process, and what it has received: while it is the gauge, the gauge shows them.

    The role may change during a scrape, which shows one state whole: `pathgauge_gauge_active` is 1
    exactly when the series of the gauge are there.
    """

    def __init__(
        self, telemetry: InternalTelemetry, traces_open: Callable[[], int], role: GaugeRole | None
    ) -> None:
        self._telemetry = telemetry
        self._role = role
        self._registry = CollectorRegistry()
        self._reloaded, self._reload_time = process_metrics(self._registry, traces_open)
        self.reloaded(successful=True)

    def reloaded(self, *, successful: bool) -> None:
        """Record the result of a reload, or of the start."""
        self._reloaded.set(float(successful))
        if successful:
            self._reload_time.set(time.time())

    def collect(self) -> Iterator[Metric]:
        """All series. prometheus_client calls this at a scrape."""
        gauge = None if self._role is None else self._role.gauge
        yield from self._of_process(gauge)
        if gauge is not None:
            yield from gauge.registry.collect()

    def parts(self, form: Form) -> Iterator[bytes | Block]:
        """All series as text."""
        gauge = None if self._role is None else self._role.gauge
        yield from parts_of(Families(self._of_process(gauge)), form)
        if gauge is not None:
            yield from gauge.registry.parts(form)

    def _of_process(self, gauge: Gauge | None) -> Iterator[Metric]:
        if self._role is not None:
            yield from _of_role(self._role, is_gauge=gauge is not None)
        if gauge is not None:
            return
        yield from self._registry.collect()
        for counter in self._telemetry:
            if counter.local:
                family = CounterMetricFamily(
                    f"pathgauge_{counter.name}", counter.documentation, labels=counter.labels
                )
                for labels, count in counter.items():
                    family.add_metric(labels, count)
                yield family

    def describe(self) -> Iterator[Metric]:
        """The series change with the role of the process."""
        return iter(())


class ClusterMetrics(Collector):
    """How far behind the partitions are, and whether Kafka can be reached."""

    def __init__(
        self,
        scorers: PartitionScorers | None,
        lag: Callable[[], Mapping[int, int]],
        log: KafkaLog | None,
    ) -> None:
        """`lag` returns the number of records of each partition that were not read."""
        self._scorers = scorers
        self._lag = lag
        self._log = log

    def collect(self) -> Iterator[Metric]:
        """All series. prometheus_client calls this at a scrape."""
        if self._scorers is not None:
            yield from _of_partitions(self._scorers, self._lag())
        if self._log is not None:
            health = self._log.health()
            yield GaugeMetricFamily(
                "pathgauge_kafka_up",
                "1 while a Kafka broker can be reached.",
                float(health.reachable),
            )
            yield GaugeMetricFamily(
                "pathgauge_kafka_in_flight_bytes",
                "Size of the requests that wait to become durable in Kafka.",
                health.in_flight,
            )


def _of_role(role: GaugeRole, *, is_gauge: bool) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "pathgauge_gauge_active",
        "1 in the process that is the gauge, 0 in one that waits to become it.",
        float(is_gauge),
    )
    yield CounterMetricFamily(
        "pathgauge_gauge_takeovers",
        "How often this process has become the gauge.",
        role.takeovers,
    )
    yield from unread_publications([role.unread])


def _of_partitions(scorers: PartitionScorers, lag: Mapping[int, int]) -> Iterator[Metric]:
    yield CounterMetricFamily(
        "pathgauge_partitions_fenced",
        "Partitions that were lost before they were committed: another process has claimed them.",
        scorers.fenced,
    )
    yield CounterMetricFamily(
        "pathgauge_partitions_assigned",
        "Partitions that this process was given, each time it was given one.",
        scorers.assignments,
    )
    waiting = GaugeMetricFamily(
        "pathgauge_partition_lag_records",
        "Records of a partition in Kafka that were not read.",
        labels=(PARTITION,),
    )
    for partition, records in lag.items():
        waiting.add_metric((str(partition),), records)
    age = GaugeMetricFamily(
        "pathgauge_partition_backlog_age_seconds",
        "Upper bound for the age of the oldest request that was read and not processed.",
        labels=(PARTITION,),
    )
    for partition, usage in scorers.usages().items():
        age.add_metric((str(partition),), usage.backlog_age_s)
    yield from (waiting, age)
    series = {
        str(number): [metric for one in found for metric in one.collect()]
        for number, found in scorers.series().items()
    }
    yield from labelled(PARTITION, series)
