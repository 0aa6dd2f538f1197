"""Records that the Kafka exporter of the OpenTelemetry Collector has written, with the settings of
docs/scaling.md: they are read, and each is in the partition in which gateways write its trace.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.otlp.split import NO_TRACE
from pathgauge.collector.core.partitioning import partition_of_trace
from pathgauge.collector.receivers.kafka.producer import KafkaLog
from support.kafka import Broker
from support.otlp_requests import batch
from support.repository import GOLDEN
from support.running import until

from .scorers import Cluster, Scorer

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Written:
    """One record."""

    signal: str
    partition: int
    key: str | None
    value: bytes


CAPTURED: dict[str, Any] = json.loads((GOLDEN / "kafka" / "exporter-0.155.0.json").read_text())
PARTITIONS: int = CAPTURED["partitions"]
WRITTEN = [
    Written(
        {"otlp_spans": "traces", "otlp_logs": "logs"}[one["topic"]],
        one["partition"],
        one["key"],
        b64decode(one["value"]),
    )
    for one in CAPTURED["records"]
]
SENT = {signal: batch(b64decode(CAPTURED[signal]), signal) for signal in ("traces", "logs")}
"""The requests that the Collector was given."""


def write(cluster: Cluster, *records: Written, **settings: Any) -> None:
    producer = Producer(dict(cluster.broker.client()) | {"compression.type": "zstd"})
    for one in records:
        topic = cluster.traces if one.signal == "traces" else cluster.logs
        producer.produce(topic, one.value, one.key, one.partition, **settings)
    assert producer.flush(30) == 0


def caught_up(scorer: Scorer, records: int) -> bool:
    return (
        len(scorer.consumer.sources) == scorer.cluster.partitions
        and scorer.offered + scorer.cluster.telemetry.kafka_skipped.total() == records
    )


def read(cluster: Cluster, records: int) -> None:
    """Have a scorer read and commit so many records."""
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer, records))


def identified(one: Span | LogRecord) -> tuple[str, ...]:
    """What it belongs to. The Collector encodes the rest in a form of its own."""
    span_id = one.span_id if isinstance(one, Span) else ""
    return one.trace_id, span_id, str(one.resource.attributes["service.name"]), one.scope.name


def members(batches: Iterable[Batch]) -> list[Span | LogRecord]:
    found: list[Span | LogRecord] = []
    for one in batches:
        found += one.spans
        found += one.logs
    return found


def test_all_that_the_collector_was_given_is_read(broker: Broker) -> None:
    cluster = Cluster(broker, PARTITIONS)
    write(cluster, *WRITTEN, headers=[("x-request-id", b"1")])
    read(cluster, len(WRITTEN))
    assert dict(cluster.telemetry.kafka_skipped.items()) == {}
    found = [one.batch for one in cluster.committed]
    assert Counter(map(identified, members(found))) == Counter(
        map(identified, members(SENT.values()))
    )
    assert {one.origin.transport for one in found} == {"kafka"}
    assert sum(one.without_trace for one in found) == SENT["logs"].without_trace == 2


async def test_gateways_write_each_trace_to_the_same_partition(broker: Broker) -> None:
    cluster = Cluster(broker, PARTITIONS)
    log = KafkaLog(cluster.config(), InternalTelemetry(), 1_000_000)
    assert all([await log.accept(one) for one in SENT.values()])
    await asyncio.to_thread(log.close)
    of_gateways = {
        (one.key().decode(), one.partition())
        for topic in (cluster.traces, cluster.logs)
        for one in broker.records(topic)
    }
    of_the_collector = {(one.key, one.partition) for one in WRITTEN if one.key is not None}
    assert {one for one in of_gateways if one[0] != NO_TRACE} == of_the_collector
    assert of_the_collector == {
        (key, partition_of_trace(key, PARTITIONS)) for key, _ in of_the_collector
    }


def test_what_is_not_divided_by_trace_is_skipped_instead_of_scored_in_parts(
    broker: Broker,
) -> None:
    """As with `record_partitioner: {round_robin: {}}`."""
    cluster = Cluster(broker, PARTITIONS)
    spread = [
        Written(one.signal, number % PARTITIONS, one.key, one.value)
        for number, one in enumerate(WRITTEN)
    ]
    write(cluster, *spread)
    read(cluster, len(spread))
    in_place = [one for one in spread if one in WRITTEN or one.key is None]
    assert 0 < len(in_place) < len(spread) / 2
    assert dict(cluster.telemetry.kafka_skipped.items()) == {
        ("not_by_trace",): len(spread) - len(in_place)
    }
    assert Counter(one.trace_id for one in members(one.batch for one in cluster.committed)) == (
        Counter(one.key for one in in_place if one.key is not None)
    )
