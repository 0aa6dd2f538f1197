"""The number of partitions, which decides where traces belong, and the records in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pathgauge.collector.config import Config
from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.core.otlp import Signal
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.receivers.kafka.records import RecordDecoder, Tenants
from pathgauge.collector.receivers.kafka.unread import unread_records
from pathgauge.collector.service.canary import TENANT as CANARY_TENANT
from pathgauge.collector.store.postgres import partition_count
from pathgauge.collector.store.postgres.partition_count import Offsets, PartitionCount

_SIGNALS: Sequence[Signal] = ("traces", "logs")


def topic_names(kafka: Kafka) -> Sequence[str]:
    """The topics of spans and of log records."""
    return kafka.traces_topic, kafka.logs_topic


def build_decoder(
    config: Config,
    topics: Sequence[str],
    partitions: int,
    redact: Callable[[Batch], Batch] | None = None,
) -> RecordDecoder:
    """The decoder of the records of the topics, which have so many partitions."""
    tenants = Tenants.of(config)
    tenants = tenants._replace(known=tenants.known | {CANARY_TENANT})
    signals = dict(zip(topics, _SIGNALS, strict=True))
    return RecordDecoder(signals, tenants, partitions, redact=redact)


def settle_partitions(config: Config, kafka: Kafka, conninfo: str, partitions: int) -> None:
    """Accept the number of partitions of the topics, unless traces would be torn apart. Raises
    `StoreError` and `LogError`.
    """

    def unread(before: PartitionCount, offsets: Offsets) -> int:
        decoder = build_decoder(config, before.topics, before.number)
        return unread_records(kafka, decoder, before.number, offsets)

    found = PartitionCount(partitions, topic_names(kafka))
    closed_before = time.time() - config.assembly.late_ttl
    partition_count.settle(conninfo, found, closed_before, unread)
