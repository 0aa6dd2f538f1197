"""The check of the topics at the start, with a real broker."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.receivers.kafka import LogError
from pathgauge.collector.receivers.kafka.topics import Topics, check
from support.kafka import Broker
from support.ports import free_port

pytestmark = pytest.mark.slow


def config(broker: Broker, traces: str, logs: str) -> Kafka:
    return Kafka(client=dict(broker.client()), traces_topic=traces, logs_topic=logs)


def problems(broker: Broker, traces: str, logs: str, min_retention_s: float = 900) -> str:
    with pytest.raises(LogError) as caught:
        check(config(broker, traces, logs), min_retention_s)
    return str(caught.value)


def test_topics_that_keep_everything_long_enough_are_accepted(broker: Broker) -> None:
    traces = broker.topic(partitions=3, retention_ms=900_000, max_message_bytes=400_000)
    logs = broker.topic(partitions=3, retention_ms=-1)
    assert check(config(broker, traces, logs), 900) == Topics(3, 400_000)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"retention_ms": 899_999},
            "found retention.ms=899999, expected 900000 at least, assembly.max_age + late_ttl,"
            " or -1",
        ),
        ({"cleanup_policy": "compact"}, "found cleanup.policy=compact, expected delete"),
        (
            {"cleanup_policy": "compact,delete"},
            "found cleanup.policy=compact,delete, expected delete",
        ),
        ({"max_message_bytes": 1000}, "found max.message.bytes=1000, expected 262144 at least"),
    ],
)
def test_a_setting_that_loses_data_is_refused(
    broker: Broker, settings: dict[str, Any], expected: str
) -> None:
    traces, logs = broker.topic(**settings), broker.topic()
    assert problems(broker, traces, logs) == f"topic {traces}: {expected}"


def test_every_problem_is_reported_at_once(broker: Broker) -> None:
    traces, logs = broker.topic(partitions=2, retention_ms=1000), broker.topic(partitions=3)
    assert problems(broker, traces, logs).splitlines() == [
        f"topic {traces}: found retention.ms=1000, expected 900000 at least, assembly.max_age +"
        " late_ttl, or -1",
        f"topic {logs}: found 3 partitions, expected 2, as many as {traces} has",
    ]


def test_a_missing_topic_is_answered_with_the_command_that_creates_it(broker: Broker) -> None:
    traces = broker.topic(partitions=5)
    assert problems(broker, traces, "absent") == (
        "found no topic absent, expected one, and the right to describe it: kafka-topics.sh"
        f" --bootstrap-server {broker.address} --create --topic absent --partitions 5"
        " --replication-factor 3"
    )


def test_without_a_broker_the_start_fails_after_a_while() -> None:
    address = f"127.0.0.1:{free_port()}"
    began = time.monotonic()
    with pytest.raises(LogError) as caught:
        check(Kafka(client={"bootstrap.servers": address}), 900, patience_s=1)
    assert str(caught.value).startswith(f"found no usable Kafka broker at {address} within 1 s: ")
    assert "Connection refused" in str(caught.value)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"ssl.ca.locatio": "x"}, 'No such configuration property: "ssl.ca.locatio"'),
        (
            {"security.protocol": "s3cret-word"},
            'found an invalid value for configuration property "security.protocol"',
        ),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/absent.pem"},
            "ssl.ca.location failed: error:",
        ),
    ],
)
def test_a_setting_that_librdkafka_refuses_is_named_without_its_value(
    setting: dict[str, str], message: str
) -> None:
    with pytest.raises(LogError) as caught:
        check(Kafka(client={"bootstrap.servers": "localhost:1", **setting}), 900)
    assert str(caught.value).startswith(f"kafka.client: {message}")
    assert "s3cret" not in str(caught.value)


def test_the_start_waits_for_a_broker_that_is_late(broker: Broker) -> None:
    traces, logs = broker.topic(), broker.topic()
    broker.pause()
    try:
        threading.Timer(2, broker.resume).start()
        assert check(config(broker, traces, logs), 900, patience_s=20).partitions == 1
    finally:
        broker.resume()


def test_the_start_waits_for_a_broker_that_falls_silent_between_two_requests(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces, logs = broker.topic(), broker.topic()
    describe = AdminClient.describe_configs

    def silent_once(admin: AdminClient, *args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        broker.pause()
        threading.Timer(6, broker.resume).start()
        return describe(admin, *args, **options)

    monkeypatch.setattr(AdminClient, "describe_configs", silent_once)
    try:
        assert check(config(broker, traces, logs), 900, patience_s=30).partitions == 1
    finally:
        broker.resume()
