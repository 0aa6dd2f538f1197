"""Continues reading where a topic has no record at the position.

The records in between were deleted before they were read: the retention of the topic was too short
for the backlog. Or the topic has lost its newest records, or was created again.
"""

from __future__ import annotations

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from pathgauge.collector.receivers.kafka.lanes import Lane

_log = structlog.get_logger(__name__)

_TIMEOUT_S = 5.0


def continue_after_missing(consumer: Consumer, partition: int, lane: Lane) -> int:
    """Go to the next record that exists. Returns how many were deleted unread."""
    wanted = lane.fetched or 0
    place = TopicPartition(lane.topic, partition)
    try:
        oldest, end = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
    except KafkaException:
        oldest, end = wanted, wanted  # tries the same position again
    start = min(max(wanted, oldest), max(oldest, end))
    if start > wanted:
        _log.error(
            "records were deleted before they were read",
            topic=lane.topic,
            partition=partition,
            records=start - wanted,
        )
    elif start < wanted:
        _log.error(
            "the topic ends before the position that was reached; continuing at its end",
            topic=lane.topic,
            partition=partition,
            position=wanted,
            end=start,
        )
    lane.fetched = start
    # A partition that stopped with an error cannot be sought.
    consumer.incremental_unassign([place])
    consumer.incremental_assign([TopicPartition(lane.topic, partition, start)])
    return max(0, start - wanted)
