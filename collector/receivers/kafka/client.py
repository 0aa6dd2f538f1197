"""What all clients of Kafka have in common: the settings of the operator.

librdkafka has messages for each attempt to connect. They are switched off, because `error_cb`
reports what matters; `log_level` and `debug` in the section switch them on. What it writes in spite
of that, such as fatal errors, goes through the log of this process when the client is polled.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException

from pathgauge.collector.config.kafka import Kafka

_librdkafka = logging.getLogger("librdkafka")
_UNREACHABLE = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE}
)
"""Errors of a client that has no usable connection. Those of one broker of several are left out."""
_REJECTED = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
"""Errors of a broker that was reached: it refuses the client, or the client its certificate."""
_CREATION = re.compile(r"Failed to create [a-z ]+: ")
_VALUE = re.compile(r'Invalid value ".*" for', re.DOTALL)


def settings(
    config: Kafka, own: Mapping[str, Any], on_error: Callable[[KafkaError], None] | None = None
) -> dict[str, Any]:
    """The settings of a client: those of the operator, and `own`. `on_error` gets the errors that
    belong to no single request, in the thread that polls.
    """
    return {
        "client.id": "pathgauge",
        "logger": _librdkafka,
        "log_level": 0,
        "reconnect.backoff.max.ms": 2000,
        **config.client,
        **own,
        "error_cb": on_error or _ignore,
    }


def is_unreachable(error: KafkaError) -> bool:
    """Whether no broker can be used."""
    return error.code() in _UNREACHABLE


def why(errors: Sequence[KafkaError], raised: KafkaException) -> str:
    """Why a request has failed, from the errors that `on_error` got. That all brokers are down only
    follows from another error. A broker that rejects a client says more than an address where none
    listens: `localhost` often has two addresses, one of which is refused.
    """
    rejections = [error for error in errors if error.code() in _REJECTED]
    causes = [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]
    error: KafkaError = (rejections or causes or errors or raised.args)[-1]
    return error.str()


def refusal(error: KafkaException) -> str:
    """Why librdkafka refuses the settings of a client. Values may be secrets, so none is quoted."""
    text = _CREATION.sub("", cast(KafkaError, error.args[0]).str())
    return _VALUE.sub("found an invalid value for", text)


def _ignore(_: KafkaError) -> None:
    """Errors that show up as failed requests too."""
