"""Requests become durable in a real Kafka, or their senders are told to retry."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from structlog.testing import capture_logs

from pathgauge.collector.config.kafka import OWN_SETTINGS, Kafka
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import DecodeLimits
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.decode_batch import decode_batch
from pathgauge.collector.core.partitioning import partition_of_trace
from pathgauge.collector.receivers.kafka import producer as produced
from pathgauge.collector.receivers.kafka.producer import KafkaLog
from support.kafka import Broker
from support.otlp_requests import batch, logs_batch, spans_batch, trace_id, traces_body
from support.running import until

pytestmark = pytest.mark.slow

PARTITIONS = 5
MESSAGE_BYTES = 300_000


class Log:
    """A producer with topics of its own."""

    def __init__(self, broker: Broker, **options: Any) -> None:
        self.broker = broker
        limits: Any = {"max_message_bytes": MESSAGE_BYTES}
        self.traces = broker.topic(partitions=PARTITIONS, **limits)
        self.logs = broker.topic(partitions=PARTITIONS, **limits)
        self.telemetry = InternalTelemetry()
        config = Kafka(client=dict(broker.client()), traces_topic=self.traces, logs_topic=self.logs)
        self.kafka = KafkaLog(
            config, self.telemetry, options.pop("limit", MESSAGE_BYTES), **options
        )

    def values(self, signal: str = "traces") -> list[tuple[Any, ...]]:
        """Key and body of all records."""
        return [(one.key(), one.value()) for one in self.broker.records(getattr(self, signal))]

    def span_ids(self) -> set[str]:
        """Of all spans that are stored."""
        origin = Origin("", "grpc", "traces", "protobuf")
        return {
            span.span_id
            for _, body in self.values()
            for span in decode_batch(origin, body, DecodeLimits()).batch.spans
        }


@contextmanager
def log(broker: Broker, **options: Any) -> Iterator[Log]:
    running = Log(broker, **options)
    try:
        yield running
    finally:
        running.kafka.close()


async def test_a_request_is_split_by_trace_and_each_trace_has_its_partition(
    broker: Broker,
) -> None:
    with log(broker) as running:
        sent = spans_batch(*range(40), 3, 7, tenant="acme")
        assert await running.kafka.accept(sent)
        records = broker.records(running.traces)
    assert {one.key().decode() for one in records} == {trace_id(n) for n in range(40)}
    for one in records:
        assert one.partition() == partition_of_trace(one.key().decode(), PARTITIONS)
        assert dict(one.headers()) == {
            "pathgauge.version": b"1",
            "pathgauge.tenant": b"acme",
            "pathgauge.transport": b"grpc",
            "pathgauge.format": b"protobuf",
        }
    found = [
        span
        for one in records
        for span in decode_batch(sent.origin, one.value(), DecodeLimits()).batch.spans
    ]
    assert sorted(found, key=lambda span: span.raw) == sorted(sent.spans, key=lambda span: span.raw)
    assert {span.resource.attributes["service.name"] for span in found} == {"bot"}


def test_a_key_in_hexadecimal_has_the_same_partition_as_of_the_collector(broker: Broker) -> None:
    topic = broker.topic(partitions=7)
    keys = ["", "0" * 31 + "1", *(os.urandom(16).hex() for _ in range(300))]
    client = Producer(dict(broker.client(partitioner="fnv1a")))
    for key in keys:
        client.produce(topic, b"", key.encode())
    client.flush()
    placed = {one.key().decode(): one.partition() for one in broker.records(topic)}
    assert placed == {key: partition_of_trace(key, 7) for key in keys}


async def test_log_records_go_to_their_topic_and_counts_are_stored_once(broker: Broker) -> None:
    with log(broker) as running:
        sent = logs_batch(0, None, 1, None)
        assert await running.kafka.accept(sent)
        assert await running.kafka.accept(logs_batch(None))
        stored = [
            decode_batch(sent.origin, body, DecodeLimits()).batch
            for _, body in running.values("logs")
        ]
    assert sum(len(one.logs) for one in stored) == 2
    assert sum(one.without_trace for one in stored) == 3


async def test_a_trace_larger_than_a_message_is_stored_in_several(broker: Broker) -> None:
    with log(broker) as running:
        sent = spans_batch(*[1] * 40, content=os.urandom(20_000))
        assert await running.kafka.accept(sent)
        records = running.values()
        assert running.span_ids() == {span.span_id for span in sent.spans}
    assert {key for key, _ in records} == {trace_id(1).encode()}
    assert 1 < len(records) < 5
    assert running.telemetry.refused.total() == 0


async def test_a_span_that_fits_into_no_message_is_refused_alone_and_for_good(
    broker: Broker,
) -> None:
    with log(broker) as running:
        group = traces_body([1], os.urandom(MESSAGE_BYTES))
        sent = batch(group + traces_body([1, 2]))
        assert await running.kafka.accept(sent)
        assert len(running.span_ids()) == 2
        assert await running.kafka.accept(batch(group))
    assert dict(running.telemetry.refused.items()) == {("grpc", "too_large"): 2}


async def test_a_message_that_only_the_broker_refuses_is_refused_for_good(broker: Broker) -> None:
    with log(broker, limit=10 * MESSAGE_BYTES) as running:
        sent = batch(traces_body([1, 1], os.urandom(MESSAGE_BYTES)) + traces_body([2]))
        assert await running.kafka.accept(sent)
        assert [key.decode() for key, _ in running.values()] == [trace_id(2)]
    assert dict(running.telemetry.refused.items()) == {("grpc", "too_large"): 2}


async def test_spans_that_receivers_let_through_fit_with_their_resource(broker: Broker) -> None:
    with log(broker) as running:
        largest = running.kafka.max_record_bytes
        sent = batch(traces_body([1], os.urandom(largest - 100), "s" * 60_000))
        assert len(sent.spans[0].raw) in range(largest - 100, largest + 1)
        assert await running.kafka.accept(sent)
        assert len(running.span_ids()) == 1


async def test_a_full_queue_tells_senders_to_retry(broker: Broker) -> None:
    with log(broker, max_in_flight_bytes=100_000) as running:
        broker.pause()
        try:
            waiting = asyncio.create_task(
                running.kafka.accept(spans_batch(1, content=os.urandom(90_000)))
            )
            await asyncio.sleep(0)
            assert not await running.kafka.accept(spans_batch(2, content=os.urandom(90_000)))
            assert running.kafka.health().in_flight > 90_000
        finally:
            broker.resume()
        assert await waiting
        assert running.kafka.health().in_flight == 0
        assert await running.kafka.accept(spans_batch(3))


async def test_without_a_broker_senders_are_told_to_retry_before_they_give_up(
    broker: Broker,
) -> None:
    with capture_logs() as lines, log(broker) as running:
        assert await asyncio.to_thread(until, lambda: running.kafka.health().reachable)
        broker.kill()
        try:
            began = time.monotonic()
            assert not await running.kafka.accept(spans_batch(1, 2, 3))
            assert time.monotonic() - began < 9.5
            assert await asyncio.to_thread(until, lambda: running.kafka.health().reason)
        finally:
            await asyncio.to_thread(broker.restart)
        # without any request, only asking shows that the broker is back
        assert await asyncio.to_thread(until, lambda: running.kafka.health().reachable)
        assert await running.kafka.accept(spans_batch(2))
        assert (await asyncio.to_thread(running.kafka.health)).reason == ""
    untaken = [line for line in lines if line["event"].startswith("a record did not reach Kafka")]
    assert [line["error"] for line in untaken] == ["Local: Message timed out"]


async def test_what_was_acknowledged_survives_a_kill_of_the_broker(broker: Broker) -> None:
    with log(broker) as running:
        acknowledged: set[str] = set()
        stop = asyncio.Event()

        async def send(sender: int) -> None:
            number = sender
            while not stop.is_set():
                sent = spans_batch(number, number + 1, content=os.urandom(500))
                if await running.kafka.accept(sent):
                    acknowledged.update(span.span_id for span in sent.spans)
                number += 1000

        senders = [asyncio.create_task(send(n)) for n in range(0, 80, 2)]
        for _ in range(2):
            before = len(acknowledged)
            await asyncio.to_thread(until, lambda size=before: len(acknowledged) > size + 500)
            await asyncio.to_thread(broker.restart)
        before = len(acknowledged)
        await asyncio.to_thread(until, lambda: len(acknowledged) > before + 500)
        stop.set()
        await asyncio.gather(*senders)
        assert len(acknowledged) > 1500
        assert acknowledged <= running.span_ids()


async def test_after_a_fatal_error_a_new_producer_takes_over(broker: Broker) -> None:
    """librdkafka raises one when a broker has lost what it acknowledged; here it is pretended."""
    made: list[Any] = []

    class Failing:
        """A producer that refuses its first record for good."""

        def __init__(self, settings: dict[str, Any]) -> None:
            self.real, self.first = Producer(settings), not made
            made.append(self)

        def produce(self, *arguments: Any, **options: Any) -> None:
            if self.first:
                raise KafkaException(KafkaError(KafkaError._FATAL, "fatal", fatal=True))
            self.real.produce(*arguments, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def __len__(self) -> int:
            return len(self.real)

    with log(broker, make=Failing) as running:
        assert not await running.kafka.accept(spans_batch(1))
        assert await asyncio.to_thread(until, lambda: len(made) == 2)
        assert await running.kafka.accept(spans_batch(1))


async def test_a_broker_that_answers_late_once_is_not_reported(broker: Broker) -> None:
    class Late:
        """A producer whose questions for metadata time out as often as is wanted."""

        left = seen = answered = 0

        def __init__(self, settings: dict[str, Any]) -> None:
            self.real = Producer(settings)

        def list_topics(self, *arguments: Any, **options: Any) -> Any:
            if Late.left:
                Late.left, Late.seen, Late.answered = Late.left - 1, Late.seen + 1, 0
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            found = self.real.list_topics(*arguments, **options)
            Late.answered += 1
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def __len__(self) -> int:
            return len(self.real)

    def reports() -> list[str]:
        return [line["reason"] for line in lines if line["log_level"] == "error"]

    with capture_logs() as lines, log(broker, make=Late) as running:
        assert await asyncio.to_thread(until, lambda: running.kafka.health().reachable)
        Late.left = 2
        assert await asyncio.to_thread(until, lambda: Late.seen == 2 and Late.answered)
        assert running.kafka.health().reachable
        assert reports() == []
        Late.left = 1_000
        assert await asyncio.to_thread(until, reports)
        assert Late.seen >= 5
        Late.left = 0
        assert await asyncio.to_thread(until, lambda: running.kafka.health().reachable)


async def test_a_closed_log_has_delivered_everything_and_takes_nothing(broker: Broker) -> None:
    running = Log(broker)
    waiting = [asyncio.create_task(running.kafka.accept(spans_batch(n))) for n in range(20)]
    await asyncio.sleep(0)
    await asyncio.to_thread(running.kafka.close)
    assert all(await asyncio.gather(*waiting))
    assert not await running.kafka.accept(spans_batch(1))
    running.kafka.close()
    assert len(running.values()) == 20


async def test_a_sender_that_leaves_does_not_disturb_others(broker: Broker) -> None:
    with log(broker) as running:
        leaving = asyncio.create_task(running.kafka.accept(spans_batch(1)))
        await asyncio.sleep(0)
        leaving.cancel()
        assert await running.kafka.accept(spans_batch(2))
        assert running.kafka.health().in_flight == 0


def test_operators_cannot_replace_what_keeps_requests_safe() -> None:
    assert produced.producer_settings(1, 1).keys() <= OWN_SETTINGS


def sent_as_json(count: int) -> Batch:
    spans = [{"traceId": trace_id(n), "spanId": f"{n + 1:016x}", "name": "x"} for n in range(count)]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    return decode_batch(Origin("", "http", "traces", "json"), body, DecodeLimits()).batch


@pytest.mark.parametrize("count", [1, 3])
async def test_a_json_request_is_stored_as_protobuf(broker: Broker, count: int) -> None:
    with log(broker) as running:
        sent = sent_as_json(count)
        assert await running.kafka.accept(sent)
        assert running.span_ids() == {span.span_id for span in sent.spans}
        [formats] = {
            dict(one.headers())["pathgauge.format"] for one in broker.records(running.traces)
        }
    assert formats == b"json"
