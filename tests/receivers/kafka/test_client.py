"""What a client of Kafka says about a request that failed."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from pathgauge.collector.receivers.kafka import client

TIMED_OUT = KafkaException(KafkaError(KafkaError._TRANSPORT, "timed out"))
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "all brokers are down")
REFUSED = KafkaError(KafkaError._TRANSPORT, "connection to ::1 refused")
PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "wrong password")
CERTIFICATE = KafkaError(KafkaError._SSL, "unknown certificate")


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ([], "timed out"),
        ([DOWN], "all brokers are down"),
        ([REFUSED, DOWN], "connection to ::1 refused"),
        ([PASSWORD, REFUSED, DOWN], "wrong password"),
        ([REFUSED, CERTIFICATE, REFUSED], "unknown certificate"),
        ([CERTIFICATE, PASSWORD], "wrong password"),
    ],
    ids=[
        "none",
        "follows from another",
        "refused",
        "rejected at one of two addresses",
        "rejected between refusals",
        "rejected twice",
    ],
)
def test_the_error_that_tells_most_is_the_reason(errors: list[KafkaError], reason: str) -> None:
    assert client.why(errors, TIMED_OUT) == reason
