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
from pathgauge.collector.service.labelled_metrics import labelled
from pathgauge.collector.sinks.prometheus.process_metrics import process_metrics
from pathgauge.collector.sinks.prometheus.store_metrics import unread_publications

PARTITION = "partition"


class ProcessSeries(Collector):
    """The process, and what it has received: while it is the gauge, the gauge shows them."""

    def __init__(
        self, telemetry: InternalTelemetry, traces_open: Callable[[], int], gauge: GaugeRole | None
    ) -> None:
        self._telemetry = telemetry
        self._gauge = gauge
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
        if self._gauge is not None and self._gauge.gauge is not None:
            yield from self._gauge.collect()
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
    """Who does what in the cluster, and how far behind the partitions are."""

    def __init__(
        self,
        gauge: GaugeRole | None,
        scorers: PartitionScorers | None,
        lag: Callable[[], Mapping[int, int]],
        log: KafkaLog | None,
    ) -> None:
        """`lag` returns the number of records of each partition that were not read."""
        self._gauge = gauge
        self._scorers = scorers
        self._lag = lag
        self._log = log

    def collect(self) -> Iterator[Metric]:
        """All series. prometheus_client calls this at a scrape."""
        if self._gauge is not None:
            yield from _of_gauge(self._gauge)
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


def _of_gauge(gauge: GaugeRole) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "pathgauge_gauge_active",
        "1 in the process that is the gauge, 0 in one that waits to become it.",
        float(gauge.gauge is not None),
    )
    yield CounterMetricFamily(
        "pathgauge_gauge_takeovers",
        "How often this process has become the gauge.",
        gauge.takeovers,
    )
    yield from unread_publications([gauge.unread])


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
    judges = {str(number): list(one.collect()) for number, one in scorers.judges().items()}
    yield from labelled(PARTITION, judges)
