"""What all clients of Kafka have in common: the settings of the operator.

librdkafka writes messages to standard error for each attempt to connect. They are switched off,
because `error_cb` reports what matters; `log_level` and `debug` in the section switch them on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError

from pathgauge.collector.config.kafka import Kafka

_UNREACHABLE = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE}
)
"""Errors of a client that has no usable connection. Those of one broker of several are left out."""


def settings(
    config: Kafka, own: Mapping[str, Any], on_error: Callable[[KafkaError], None] | None = None
) -> dict[str, Any]:
    """The settings of a client: those of the operator, and `own`. `on_error` gets the errors that
    belong to no single request, in the thread that polls.
    """
    return {
        "client.id": "pathgauge",
        "log_level": 0,
        "reconnect.backoff.max.ms": 2000,
        **config.client,
        **own,
        "error_cb": on_error or _ignore,
    }


def is_unreachable(error: KafkaError) -> bool:
    """Whether no broker can be used."""
    return error.code() in _UNREACHABLE


def _ignore(_: KafkaError) -> None:
    """Errors that show up as failed requests too."""
