"""A connection that ends is no outage: only brokers that do not answer are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer
from structlog.testing import capture_logs

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.receivers.kafka import client
from pathgauge.collector.receivers.kafka.contact import Contact
from pathgauge.collector.receivers.kafka.producer import KafkaLog
from support.kafka import Broker, running_broker
from support.otlp_requests import spans_batch
from support.ports import free_port
from support.running import until

from .scorers import Cluster, Scorer

pytestmark = pytest.mark.slow

REACHED = {"event": "a Kafka broker has been reached", "log_level": "info"}


@pytest.fixture(scope="module")
def linked() -> Iterator[Broker]:
    """A broker that can also be reached over a link."""
    with running_broker(links=1) as broker:
        yield broker


def over_link(broker: Broker) -> dict[str, Any]:
    return {"client": dict(broker.client_over(broker.links[0]))}


def cut(broker: Broker) -> None:
    """Reset all connections over the link, and wait for the next one."""
    [link] = broker.links
    before = link.connections
    link.cut()
    assert until(lambda: link.connections > before)


def offered(scorer: Scorer, records: int) -> bool:
    return scorer.offered == records


def of_contact(lines: list[Any]) -> list[Mapping[str, str]]:
    return [line for line in lines if "Kafka broker" in line["event"]]


async def test_a_gateway_does_not_report_a_connection_that_was_reset(linked: Broker) -> None:
    cluster = Cluster(linked)
    with capture_logs() as lines:
        log = KafkaLog(cluster.config(**over_link(linked)), cluster.telemetry, 1_000_000)
        for trace in range(3):
            assert await log.accept(spans_batch(trace))
            await asyncio.to_thread(cut, linked)
        assert await log.accept(spans_batch(3))
        assert log.health().reachable
        await asyncio.to_thread(log.close)
    assert of_contact(lines) == [REACHED]


def test_a_scorer_does_not_report_a_connection_that_was_reset(linked: Broker) -> None:
    cluster = Cluster(linked)
    with capture_logs() as lines, Scorer(cluster, **over_link(linked)) as scorer:
        for trace in range(3):
            linked.produce(cluster.traces, spans_batch(trace).body)
            assert until(partial(offered, scorer, trace + 1))
            cut(linked)
        linked.produce(cluster.traces, spans_batch(3).body)
        assert until(partial(offered, scorer, 4))
    assert of_contact(lines) == [REACHED]


def test_a_scorer_reports_an_outage_once_and_why(linked: Broker) -> None:
    cluster = Cluster(linked)
    with capture_logs() as lines, Scorer(cluster):
        assert until(lambda: of_contact(lines) == [REACHED])
        linked.kill()
        try:
            assert until(lambda: len(of_contact(lines)) == 2)
        finally:
            linked.restart()
        assert until(lambda: len(of_contact(lines)) == 3)
    [_, lost, found] = of_contact(lines)
    assert (lost["event"], found) == ("no Kafka broker can be reached", REACHED)
    assert "Connection refused" in lost["reason"]


def test_errors_that_arrive_after_a_question_say_why_nobody_answered_it() -> None:
    contact = Contact("otlp_spans")
    nowhere = {"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    settings = client.settings(Kafka(client=nowhere), {"group.id": "scorers"}, contact.failed)
    consumer = Consumer(settings)

    def is_reported() -> bool:
        consumer.poll(0.2)
        contact.check(consumer)
        return contact.reason != "no answer from a broker yet"

    contact.check(consumer)
    assert until(is_reported)
    consumer.close()
    assert "Connection refused" in contact.reason
