"""Checks the settings of the client without a broker: what librdkafka does not accept would end the
start.

A client is built without the addresses of brokers, and closed. Values may be secrets, so none is
quoted, except the paths of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pathgauge.collector.config import Config
from pathgauge.collector.config.kafka import SERVERS, Kafka
from pathgauge.collector.core.documents import ConfigError, KeyPath, Problem
from pathgauge.collector.receivers.kafka import client

_UNKNOWN = re.compile(r'No such configuration property: "(?P<name>[^"]+)"')
_VALUE = re.compile(r'[Pp]roperty "(?P<name>[^"]+)"|value for "(?P<of_switch>[^"]+)"')
_RANGE = re.compile(r"outside allowed range (?P<range>\S+)")
_LOCATION = ".location"
_NOT_FILES = frozenset({"probe"})
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CHOICES = {
    "security.protocol": "plaintext, ssl, sasl_plaintext or sasl_ssl",
    "sasl.oauthbearer.method": "default or oidc",
    "ssl.endpoint.identification.algorithm": "none or https",
}


def check_client(config: Config) -> None:
    """Raises `ConfigError` with every setting of the section `kafka` that a client cannot have."""
    if config.kafka is None:
        return
    kafka = config.kafka
    problems = [config.problem(_path(kafka, name), text) for name, text in _unreadable(kafka)]
    if not problems:
        problems = list(_refused(config, kafka))
    if problems:
        raise ConfigError(problems)


def _unreadable(kafka: Kafka) -> Iterator[tuple[str, str]]:
    """The files that the client would read, as far as they cannot be."""
    for name, file in kafka.client.items():
        if not name.endswith(_LOCATION) or file in _NOT_FILES:
            continue
        try:
            if not Path(file).is_dir():  # of certificates
                Path(file).open("rb").close()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a path"
            yield name, f"found {file!r}, expected a readable file ({reason})"


def _refused(config: Config, kafka: Kafka) -> Iterator[Problem]:
    """What librdkafka says. It names one setting at a time, so the next try is without it."""
    left = {name: value for name, value in kafka.client.items() if name not in SERVERS}
    if _ENDPOINT in left:
        left[_ENDPOINT] = "http://localhost:0"  # a client asks for its token at once
    while (reason := _refusal(kafka.model_copy(update={"client": left}))) is not None:
        unknown, value = _UNKNOWN.search(reason), _VALUE.search(reason)
        name = _named(left, reason)
        if unknown is not None and name is not None:
            text = "found an unknown setting, expected one of librdkafka"
            yield config.problem(_path(kafka, name), text)
        elif value is not None and name is not None:
            yield config.problem(_path(kafka, name), _wrong_value(name, reason))
        else:
            path = ("kafka", "client") if name is None else _path(kafka, name)
            text = f"found settings that librdkafka refuses, expected others: {reason}"
            yield config.problem(path, text)
            return
        del left[name]


def _refusal(kafka: Kafka) -> str | None:
    try:
        AdminClient(client.settings(kafka, {}))
    except KafkaException as error:
        return client.refusal(error).strip()
    return None


def _named(settings: dict[str, str], reason: str) -> str | None:
    """The setting that librdkafka names: the longest one, as names begin with others."""
    named = [name for name in settings if name in reason]
    return max(named, key=len, default=None)


def _wrong_value(name: str, reason: str) -> str:
    allowed = _RANGE.search(reason)
    if allowed is not None:
        return f"found a number that is too small or too large, expected {allowed['range']}"
    if "Expected bool" in reason:
        return "found another value, expected true or false"
    expected = _CHOICES.get(name, "one that librdkafka accepts")
    return f"found another value, expected {expected}"


def _path(kafka: Kafka, name: str) -> KeyPath:
    section = "client_files" if name in kafka.client_files else "client"
    return ("kafka", section, name)
