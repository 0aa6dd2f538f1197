"""Writes the requests of a store into the topics, in their order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.core.otlp.split import as_protobuf
from pathgauge.collector.receivers.kafka import LogError, client
from pathgauge.collector.receivers.kafka.producer import HEADROOM_BYTES, producer_settings
from pathgauge.collector.receivers.kafka.records import headers
from pathgauge.collector.store import journal
from pathgauge.collector.store.journal import DamagedError
from pathgauge.collector.store.postgres.heads import Head

_FLUSH_S = 60.0
_WATERMARK_S = 10.0
_AT_ONCE = 1_000
"""Requests that are read, and wait for their acknowledgement, at once."""


@dataclass(slots=True)
class Produced:
    """The requests of one partition, in Kafka."""

    heads: list[Head] = field(default_factory=list)
    """Those that were processed, and are needed by open traces."""
    offsets: dict[str, int] = field(default_factory=dict)
    """The offset in each topic of the first request that was not processed."""
    turns: list[bytes] = field(default_factory=list)
    """Forwarded turns that were not processed."""
    number: int = 0


class Producing:
    """Produces to both topics."""

    def __init__(self, kafka: Kafka, max_message_bytes: int) -> None:
        self._topics = {"traces": kafka.traces_topic, "logs": kafka.logs_topic}
        self._max_value_bytes = max_message_bytes - HEADROOM_BYTES
        own = producer_settings(max_message_bytes, 64 << 20)
        self._producer = Producer(client.settings(kafka, own))

    def produce(
        self, connection: sqlite3.Connection, partition: int, row: int, shift: float
    ) -> Produced:
        """Produce all requests of a store to one partition. Those up to `row` were processed;
        `shift` is added to running times. Raises `LogError`.
        """
        produced = Produced()
        after = 0
        while rows := connection.execute(
            f"SELECT {journal.COLUMNS} FROM journal WHERE id > ? ORDER BY id LIMIT ?",
            (after, _AT_ONCE),
        ).fetchall():
            self._produce(rows, partition, row, shift, produced)
            after = rows[-1][0]
        return produced

    def _produce(
        self, rows: list[Any], partition: int, row: int, shift: float, produced: Produced
    ) -> None:
        offsets: dict[int, int] = {}
        sent: list[tuple[Head, bool]] = []

        for values in rows:
            try:
                number, at, batch = journal.unpack(values)
            except DamagedError:
                continue
            if batch.turn is not None:
                produced.turns.append(batch.body)
                continue
            batch = as_protobuf(batch)
            topic = self._topics[batch.origin.signal]
            traces = sorted({one.trace_id for one in batch.spans or batch.logs})
            if len(batch.body) > self._max_value_bytes:
                raise LogError(
                    f"topic {topic}: found a request of {len(batch.body)} bytes, expected at most"
                    f" {self._max_value_bytes}: raise max.message.bytes"
                )
            at += shift
            self._producer.produce(
                topic,
                batch.body,
                traces[0] if traces else "",
                partition,
                on_delivery=partial(_note, offsets, number),
                timestamp=int(at * 1000),
                headers=headers(batch),
            )
            head = Head(number, topic, 0, at, at, batch.origin.tenant, traces)
            sent.append((head, number <= row))
            self._producer.poll(0)
        if self._producer.flush(_FLUSH_S) or len(offsets) != len(sent):
            raise LogError("Kafka has not acknowledged all requests")
        for head, processed in sent:
            offset = offsets[head.row]
            produced.number += 1
            if processed:
                produced.heads.append(head._replace(offset=offset))
                produced.offsets[head.topic] = offset + 1
            else:
                produced.offsets.setdefault(head.topic, offset)


def _note(offsets: dict[int, int], number: int, error: KafkaError | None, message: Message) -> None:
    if error is None and (offset := message.offset()) is not None:
        offsets[number] = offset


def refuse_records(kafka: Kafka, partitions: int) -> None:
    """Raises `LogError` if one of the topics has records: requests of a migration that failed, or
    of a cluster that runs.
    """
    consumer = Consumer(client.settings(kafka, {"group.id": kafka.group}))
    try:
        for topic, partition, end in _ends(consumer, kafka, partitions):
            if end:
                raise LogError(
                    f"topic {topic}: found records in partition {partition}, expected none: create"
                    " the topic anew"
                )
    except KafkaException as error:
        raise LogError(f"the topics cannot be read: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _ends(consumer: Consumer, kafka: Kafka, partitions: int) -> Iterator[tuple[str, int, int]]:
    for topic in (kafka.traces_topic, kafka.logs_topic):
        for partition in range(partitions):
            place = TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(place, timeout=_WATERMARK_S)
            yield topic, partition, high - low
