"""Shares the partitions of the topics among scorers, and delivers their records.

The consumer group subscribes to the traces topic alone. With each of its partitions, the same
partition of the logs topic is assigned too, because the records of a trace have to meet. Positions
come from where the results are stored, not from Kafka: so a position and its results agree.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import Reason, Signal
from pathgauge.collector.receivers.kafka import LogError, client
from pathgauge.collector.receivers.kafka.contact import Contact
from pathgauge.collector.receivers.kafka.ends import Ends
from pathgauge.collector.receivers.kafka.lanes import MAX_LANE_BYTES, Lane, Merged
from pathgauge.collector.receivers.kafka.missing_offsets import continue_after_missing
from pathgauge.collector.receivers.kafka.partition_source import Listener, PartitionSource
from pathgauge.collector.receivers.kafka.records import RecordDecoder, Skip
from pathgauge.collector.receivers.kafka.rereading import Rereader
from pathgauge.collector.store.essential import EssentialThread

_log = structlog.get_logger(__name__)

SESSION_TIMEOUT_S = 10.0
"""After this time without a heartbeat, other scorers take over the partitions."""
MAX_POLL_INTERVAL_S = 300.0
"""How long the callbacks of a listener may take together, before the partitions are lost."""
_AT_ONCE = 500
_POLL_S = 0.2
_POLL_BLOCKED_S = 0.02
_METADATA_S = 2.0


class GroupConsumer:
    """A member of the consumer group. One thread polls, and calls the listener."""

    def __init__(
        self,
        config: Kafka,
        decoder: RecordDecoder,
        listener: Listener,
        telemetry: InternalTelemetry,
        *,
        clock: Callable[[], float] = time.time,
        max_lane_bytes: int = MAX_LANE_BYTES,
    ) -> None:
        """`clock`: Unix time in seconds."""
        self.sources: dict[int, PartitionSource] = {}
        """The assigned partitions. To be changed by the polling thread only."""
        self.failure: Exception | None = None
        """Why the thread has ended on its own; the process should restart."""
        self._config, self._decoder, self._listener = config, decoder, listener
        self._telemetry = telemetry
        self._clock = clock
        self._max_lane_bytes = max_lane_bytes
        self._contact = Contact(config.traces_topic)
        own = _membership(config)
        self._consumer = Consumer(client.settings(config, own, self._contact.failed))
        self._rereader = Rereader(
            client.settings(config, _rereading(config)), decoder, lambda n: self._skipped("gone", n)
        )
        self._ends = Ends(client.settings(config, {}), clock)
        self._has_new_lanes = False
        self._closing = threading.Event()
        self._thread = EssentialThread(self._run, "kafka consumer")

    def start(self) -> None:
        """Join the group."""
        self._thread.start()

    def close(self, timeout_s: float = 60.0) -> None:
        """Leave the group; all partitions are revoked first. Safe to call twice."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        self._rereader.close()  # until here, partitions that are revoked may read with it

    def _run(self) -> None:
        try:
            self._consumer.subscribe(
                [self._config.traces_topic],
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )
            while not self._closing.is_set():
                self._step()
        except LogError as error:
            self.failure = error
        except Exception as error:
            _log.exception("the Kafka consumer has failed")
            self.failure = error
        finally:
            self._consumer.close()
            self._lose_all()

    def _lose_all(self) -> None:
        """After a fatal error, librdkafka tells nobody that the partitions are lost."""
        for partition in list(self.sources):
            del self.sources[partition]
            self._listener.lost(partition)
            _log.info("partition lost", partition=partition)

    def _step(self) -> None:
        waits = any(source.merged.blocked for source in self.sources.values())
        first = self._consumer.poll(_POLL_BLOCKED_S if waits else _POLL_S)
        if self._has_new_lanes:
            self._find_leaders()
        if first is not None:
            for message in (first, *self._consumer.consume(_AT_ONCE, 0)):
                self._receive(message)
        for source in self.sources.values():
            source.merged.deliver(source.deliver, self._clock())
            for lane in source.merged.lanes:
                self._balance(source.partition, lane)
        self._contact.check(self._consumer)
        self._ends.refresh(
            (source.partition, lane)
            for source in self.sources.values()
            for lane in source.merged.lanes
        )

    def _find_leaders(self) -> None:
        """Nobody subscribes to the logs topic, so its leaders would be looked up seconds later.

        A callback must not do this. A call that releases the interpreter lock clears the state that
        confluent-kafka keeps for a poll, and the next callback of that poll aborts the process.
        """
        self._has_new_lanes = False
        with suppress(KafkaException):
            self._consumer.list_topics(self._config.logs_topic, timeout=_METADATA_S)

    def _receive(self, message: Message) -> None:
        error = message.error()
        if error is not None and error.code() == KafkaError._FATAL:
            raise LogError(f"the consumer cannot continue: {self._why(error)}")
        source = self.sources.get(message.partition() or 0)
        lane = source.lane(message.topic()) if source is not None else None
        if lane is None:
            return  # of a partition that was revoked in the meantime
        if error is None:
            self._contact.made()
            lane.add(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            self._contact.made()
            lane.ended(message.offset() or 0)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            missing = continue_after_missing(self._consumer, message.partition() or 0, lane)
            self._skipped("gone", missing)
        else:
            _log.warning("a partition cannot be read", topic=message.topic(), error=error.str())

    def _balance(self, partition: int, lane: Lane) -> None:
        """Stop fetching what cannot be delivered soon, and continue later."""
        place = [TopicPartition(lane.topic, partition)]
        if not lane.paused and lane.size > self._max_lane_bytes:
            self._consumer.pause(place)
            lane.paused, lane.at_end = True, False
        elif lane.paused and lane.size <= self._max_lane_bytes // 4:
            lane.paused = False
            self._consumer.resume(place)

    def _on_assign(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        assigned: list[TopicPartition] = []
        for partition in (place.partition for place in places):
            source = self._source(partition)
            position = self._listener.assigned(source)
            source.merged.at = position.at
            for lane in source.merged.lanes:
                lane.fetched = position.offsets.get(lane.topic)
                start = OFFSET_BEGINNING if lane.fetched is None else lane.fetched
                assigned.append(TopicPartition(lane.topic, partition, start))
            self.sources[partition] = source
        _log.info("partitions assigned", partitions=[place.partition for place in places])
        consumer.incremental_assign(assigned)
        self._has_new_lanes = True

    def _on_revoke(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        self._remove(consumer, places, self._listener.revoked)

    def _on_lost(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        self._remove(consumer, places, self._listener.lost)

    def _remove(
        self,
        consumer: Consumer,
        places: Sequence[TopicPartition],
        tell: Callable[[int], None],
    ) -> None:
        removed: list[TopicPartition] = []
        for partition in (place.partition for place in places):
            if (source := self.sources.pop(partition, None)) is not None:
                tell(partition)
                removed += (TopicPartition(lane.topic, partition) for lane in source.merged.lanes)
        _log.info("partitions revoked", partitions=[place.partition for place in places])
        consumer.incremental_unassign(removed)

    def _source(self, partition: int) -> PartitionSource:
        lanes = [
            Lane(topic, None) for topic in (self._config.traces_topic, self._config.logs_topic)
        ]
        merged = Merged(lanes, self._decoder, self._skipped, self._rejected)
        return PartitionSource(partition, merged, self._rereader, self._listener)

    def _skipped(self, reason: Skip, records: int) -> None:
        self._telemetry.kafka_skipped.add(reason, n=records)

    def _rejected(self, signal: Signal, rejected: Mapping[Reason, int]) -> None:
        of_traces = signal == "traces"
        counter = self._telemetry.refused if of_traces else self._telemetry.refused_logs
        for reason, records in rejected.items():
            counter.add("kafka", reason, n=records)

    def _why(self, error: KafkaError) -> str:
        text = error.str()  # its code only says that it is fatal
        if "fenced" not in text or self._config.group_instance_id is None:
            return text
        return (
            f"another process of the group has joined with the same kafka.group_instance_id"
            f" {self._config.group_instance_id!r}, expected a name of its own for each scorer"
        )


def _membership(config: Kafka) -> dict[str, Any]:
    static = {"group.instance.id": config.group_instance_id} if config.group_instance_id else {}
    return (
        _reading(config)
        | static
        | {
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": int(SESSION_TIMEOUT_S * 1000),
            "heartbeat.interval.ms": int(SESSION_TIMEOUT_S * 1000) // 4,
            "max.poll.interval.ms": int(MAX_POLL_INTERVAL_S * 1000),
            "queued.max.messages.kbytes": 16 << 10,
            # Traces wait for seconds anyway. Records that arrive together wake fewer threads.
            "fetch.min.bytes": 64 << 10,
            "fetch.wait.max.ms": 250,
        }
    )


def _rereading(config: Kafka) -> dict[str, Any]:
    return _reading(config) | {
        "fetch.message.max.bytes": 256 << 10,
        # A question at the end of a partition holds up the next one, of another partition.
        "fetch.wait.max.ms": 50,
        "queued.max.messages.kbytes": 2 << 10,
    }


def _reading(config: Kafka) -> dict[str, Any]:
    return {
        "group.id": config.group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # positions that do not exist are noticed, and counted
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "fetch.error.backoff.ms": 100,
        "fetch.queue.backoff.ms": 50,
    }
