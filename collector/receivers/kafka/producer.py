"""Makes requests durable in Kafka before their senders are answered.

librdkafka reports deliveries in the thread that polls. One thread does this for all requests, and
wakes the event loop once for all requests that were completed together. A request that fails in
part is sent again as a whole: the spans that arrive twice are recognised when a trace is assembled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import structlog
from confluent_kafka import KafkaError, KafkaException, Producer

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.otlp.split import NO_TRACE, as_protobuf, pieces, split
from pathgauge.collector.core.partitioning import partition_of_trace
from pathgauge.collector.receivers.kafka import client
from pathgauge.collector.receivers.kafka.contact import Contact
from pathgauge.collector.receivers.kafka.deliveries import Deliveries, Request
from pathgauge.collector.receivers.kafka.records import headers
from pathgauge.collector.store.essential import EssentialThread

_log = structlog.get_logger(__name__)

DELIVERY_TIMEOUT_S = 7.0
"""Exporters wait 10 s for an answer. librdkafka looks for late records once a second."""
HEADROOM_BYTES = 2048
"""What the largest record leaves free for its key, headers and framing."""
CONTEXT_BYTES = 64 << 10
"""What the largest span leaves free for its resource and scope, which are sent with it."""
MAX_IN_FLIGHT_BYTES = 64 << 20
_LARGE_BODY_BYTES = 256 << 10
"""Splitting a larger body may take more than a millisecond, too long for the event loop."""
_POLL_S = 0.2
_FLUSH_S = 1.0


class LogHealth(NamedTuple):
    """The state of the log, for readiness and metrics."""

    reachable: bool
    """Whether a broker has answered lately."""
    reason: str
    """Why none did; empty if one did."""
    in_flight: int
    """Bytes of the requests that wait to become durable."""
    capacity: int
    """Beyond so many bytes, senders are told to retry."""


class _Part(NamedTuple):
    """A record to produce."""

    key: str
    batch: Batch


class KafkaLog:
    """Produces the requests of one process. `accept` is for one event loop."""

    def __init__(
        self,
        config: Kafka,
        telemetry: InternalTelemetry,
        max_message_bytes: int,
        max_in_flight_bytes: int = MAX_IN_FLIGHT_BYTES,
        *,
        partitions: int | None = None,
        make: Callable[[dict[str, Any]], Producer] = Producer,
    ) -> None:
        """`max_message_bytes`: the largest record that both topics take. `partitions`: their
        number; traces of one partition share a record. `None`: each trace has its own.
        """
        self._partitions = partitions
        self._topics = {"traces": config.traces_topic, "logs": config.logs_topic}
        self._telemetry = telemetry
        self._max_value_bytes = max_message_bytes - HEADROOM_BYTES
        self._capacity = max_in_flight_bytes
        self._in_flight = 0
        own = producer_settings(max_message_bytes, max_in_flight_bytes)
        self._make: Callable[[], Producer] = lambda: make(
            client.settings(config, own, self._on_error)
        )
        self._deliveries = Deliveries()
        self._contact = Contact(config.traces_topic)
        self._has_failed = self._closing = False
        self._producer = self._make()
        self._thread = EssentialThread(self._poll, "kafka producer")
        self._thread.start()

    @property
    def max_record_bytes(self) -> int:
        """The largest span or log record that fits with its resource and scope. Receivers should
        reject larger ones, so that their senders learn about it.
        """
        return max(1, self._max_value_bytes - CONTEXT_BYTES)

    async def accept(self, batch: Batch) -> bool:
        """Make a batch durable: a `Consumer`. `False` if the queue is full, or if no broker has
        acknowledged all of it in time; then parts of it may be durable.

        A record that fits into no message is dropped and counted as refused. The answer stays
        `True`, because sending it again would not help.
        """
        if self._closing or (
            self._in_flight and self._in_flight + len(batch.body) > self._capacity
        ):
            return False
        with self._counted(len(batch.body)):
            if len(batch.body) > _LARGE_BODY_BYTES:
                parts, too_large = await asyncio.to_thread(self._parts, batch)
            else:
                parts, too_large = self._parts(batch)
            request = Request(asyncio.get_running_loop(), len(parts), self._deliveries)
            if not parts or (self._produce(parts, request) and await request.outcome):
                self._refuse(batch, too_large + request.too_large)
                return True
            return False

    def health(self) -> LogHealth:
        """The state of the log. For any thread."""
        reason = self._contact.reason
        return LogHealth(not reason, reason, self._in_flight, self._capacity)

    def close(self, timeout_s: float = DELIVERY_TIMEOUT_S + 2) -> None:
        """Wait until all requests are durable or have failed. Blocks; safe to call twice."""
        self._closing = True
        self._thread.join(timeout_s)
        self._producer.flush(0)

    @contextmanager
    def _counted(self, size: int) -> Iterator[None]:
        self._in_flight += size
        try:
            yield
        finally:
            self._in_flight -= size

    def _parts(self, batch: Batch) -> tuple[list[_Part], int]:
        """The records of a batch, and how many spans or log records fit into none."""
        parts: list[_Part] = []
        too_large = 0
        for part in split(as_protobuf(batch), self._part_of).values():
            key = next((one.trace_id for one in part.spans or part.logs), NO_TRACE)
            if len(part.body) <= self._max_value_bytes:
                parts.append(_Part(key, part))
                continue
            cut = pieces(part, self._max_value_bytes)
            parts += (_Part(key, piece) for piece in cut.fitting)
            too_large += cut.too_large
        return parts, too_large

    def _part_of(self, trace_id: str) -> str | int:
        """What decides whether two traces share a record. The key of the record is the id of one of
        them, which leads to the partition of all.
        """
        if self._partitions is None:
            return trace_id
        return partition_of_trace(trace_id, self._partitions)

    def _produce(self, parts: list[_Part], request: Request) -> bool:
        """Queue all parts. `False` if one does not fit; those before it stay queued."""
        producer, topic = self._producer, self._topics[parts[0].batch.origin.signal]
        try:
            for key, batch in parts:
                producer.produce(
                    topic,
                    batch.body,
                    key,
                    on_delivery=request.part(len(batch.spans) + len(batch.logs)),
                    headers=headers(batch),
                )
        except BufferError:
            return False
        except KafkaException as error:
            _log.warning("a request could not be queued", error=str(error.args[0]))
            self._has_failed |= error.args[0].fatal()
            return False
        return True

    def _refuse(self, batch: Batch, records: int) -> None:
        if records:
            of_traces = batch.origin.signal == "traces"
            counter = self._telemetry.refused if of_traces else self._telemetry.refused_logs
            counter.add(batch.origin.transport, "too_large", n=records)

    def _poll(self) -> None:
        while not self._closing or len(self._producer):
            if self._producer.poll(_POLL_S) and self._deliveries.resolve():
                self._contact.made()
            if self._has_failed:
                self._replace()
            self._contact.check(self._producer)
        self._deliveries.resolve()

    def _replace(self) -> None:
        """Continue with a new producer: after a fatal error the old one accepts nothing."""
        old, self._producer, self._has_failed = self._producer, self._make(), False
        old.purge()
        old.flush(_FLUSH_S)
        self._deliveries.resolve()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            _log.error("the producer has failed and is replaced", error=error.str())
            self._has_failed = True
        else:
            self._contact.failed(error)


def producer_settings(max_message_bytes: int, max_in_flight_bytes: int) -> dict[str, Any]:
    """What makes every acknowledged record durable, once and in order."""
    return {
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "fnv1a",
        "compression.type": "zstd",
        # Spans get no smaller with the default of 3, which takes three times as long: librdkafka
        # compresses every batch with a state of its own.
        "compression.level": 1,
        "linger.ms": 5,
        "delivery.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000),
        "request.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000) // 2,
        "message.max.bytes": max_message_bytes,
        "batch.size": min(max_message_bytes, 1_000_000),
        # `accept` keeps to the limit; encoded again, parts take up to twice as much.
        "queue.buffering.max.kbytes": max(1, 2 * max_in_flight_bytes // 1024),
        "queue.buffering.max.messages": 1_000_000,
    }
