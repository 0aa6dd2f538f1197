"""Counts the records that no scorer has processed, before the number of partitions changes.

Positions do not pass records of which nothing is delivered. So those at the front are read, and do
not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.receivers.kafka import LogError, client
from pathgauge.collector.receivers.kafka.records import RecordDecoder, SkippedError

_REQUEST_S = 10.0
_READ_S = 10.0
_UNKNOWN = frozenset({KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART})


def unread_records(
    config: Kafka,
    decoder: RecordDecoder,
    partitions: int,
    offsets: Mapping[int, Mapping[str, int]],
) -> int:
    """Number of records of the topics of `decoder` from these offsets on, or from the oldest one
    where there is none. A topic that does not exist any more has none. Raises `LogError`.
    """
    own = {
        "group.id": config.group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(client.settings(config, own))
    try:
        return sum(
            _unread(consumer, decoder, topic, partition, offsets.get(partition, {}).get(topic, 0))
            for topic in decoder.signals
            for partition in range(partitions)
        )
    except KafkaException as error:
        raise LogError(f"the topics cannot be read: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _unread(
    consumer: Consumer, decoder: RecordDecoder, topic: str, partition: int, position: int
) -> int:
    try:
        oldest, end = consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=_REQUEST_S
        )
    except KafkaException as error:
        if error.args[0].code() in _UNKNOWN:
            return 0
        raise
    start = max(oldest, position)
    if start >= end:
        return 0
    consumer.assign([TopicPartition(topic, partition, start)])
    while (message := consumer.poll(_READ_S)) is not None:
        failure = message.error()
        if failure is not None and failure.code() == KafkaError._PARTITION_EOF:
            return 0
        if failure is not None:
            raise KafkaException(failure)
        with suppress(SkippedError):
            if not decoder.decode(message).is_empty:
                return end - (message.offset() or 0)
    raise LogError(f"topic {topic}: found no answer within {_READ_S:g} s, expected records")
