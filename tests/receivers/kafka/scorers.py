"""Members of a consumer group that store what they get as a scorer does: records and positions in
one transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import Signal
from pathgauge.collector.receivers.kafka.consumer import GroupConsumer
from pathgauge.collector.receivers.kafka.partition_source import PartitionSource, Position
from pathgauge.collector.receivers.kafka.records import KafkaRecord, RecordDecoder, Tenants
from support.kafka import Broker


@dataclass
class Cluster:
    """A broker with two topics, and the database of the scorers."""

    broker: Broker
    partitions: int = 1
    tenants: Tenants = Tenants(frozenset({""}), "")  # noqa: RUF009
    committed: list[KafkaRecord] = field(default_factory=list)
    positions: dict[int, Position] = field(default_factory=dict)
    telemetry: InternalTelemetry = field(default_factory=InternalTelemetry)

    def __post_init__(self) -> None:
        limits: Any = {"max_message_bytes": 1_100_000, "retention_ms": -1}
        self.traces = self.broker.topic(partitions=self.partitions, **limits)
        self.logs = self.broker.topic(partitions=self.partitions, **limits)
        self.database = threading.Lock()

    def config(self, **changes: Any) -> Kafka:
        return Kafka(
            **{
                "client": dict(self.broker.client()),
                "traces_topic": self.traces,
                "logs_topic": self.logs,
                "group": f"group-of-{self.traces}",
            }
            | changes
        )

    @property
    def decoder(self) -> RecordDecoder:
        signals: Mapping[str, Signal] = {self.traces: "traces", self.logs: "logs"}
        return RecordDecoder(signals, self.tenants, self.partitions)

    def span_ids(self) -> list[str]:
        """Of all committed spans, in the order of their commits."""
        with self.database:
            return [span.span_id for record in self.committed for span in record.batch.spans]


class Scorer:
    """A member of the group."""

    def __init__(self, cluster: Cluster, options: Mapping[str, Any] | None = None, **changes: Any):
        self.cluster = cluster
        self.uncommitted: dict[int, list[KafkaRecord]] = {}
        self.log: list[tuple[str, int]] = []
        self.is_full = False
        self.offered = 0
        self.consumer = GroupConsumer(
            cluster.config(**changes), cluster.decoder, self, cluster.telemetry, **options or {}
        )

    def __enter__(self) -> Scorer:
        self.consumer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.close()

    @property
    def owned(self) -> set[int]:
        return set(self.consumer.sources)

    def source(self, partition: int = 0) -> PartitionSource:
        return self.consumer.sources[partition]

    def assigned(self, source: PartitionSource) -> Position:
        self.log.append(("assigned", source.partition))
        self.uncommitted[source.partition] = []
        return self.cluster.positions.get(source.partition, Position({}))

    def deliver(self, partition: int, record: KafkaRecord) -> bool:
        self.offered += 1
        if not self.is_full:
            self.uncommitted[partition].append(record)
            if len(self.uncommitted[partition]) >= 7:
                self._commit(partition)
        return not self.is_full

    def revoked(self, partition: int) -> None:
        self.log.append(("revoked", partition))
        self._commit(partition)

    def lost(self, partition: int) -> None:
        self.log.append(("lost", partition))
        self.uncommitted.pop(partition)

    def commit_idle(self) -> None:
        """Commit what is left. Only when nothing arrives."""
        for partition in list(self.uncommitted):
            self._commit(partition)

    def _commit(self, partition: int) -> None:
        done = self.uncommitted[partition]
        with self.cluster.database:
            before = self.cluster.positions.get(partition, Position({}))
            offsets = dict(before.offsets) | {one.topic: one.offset + 1 for one in done}
            at = done[-1].at if done else before.at
            self.cluster.positions[partition] = Position(offsets, at)
            self.cluster.committed += done
        self.uncommitted[partition] = []
