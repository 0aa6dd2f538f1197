"""The section `kafka`: the cluster between gateways and scorers.

The settings of the client have librdkafka's own names, so that every way to authenticate works.
Names that decide whether requests can be lost or counted twice are set by pathgauge, and refused
here. Values may be secrets: no message quotes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pathgauge.collector.config.section import Section, not_text
from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.core.documents.quantities import FileName
from pathgauge.scorers.types import Json

OWN_SETTINGS = frozenset(
    {
        "acks",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "batch.size",
        "compression.codec",
        "compression.level",
        "compression.type",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "enable.partition.eof",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "linger.ms",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "message.max.bytes",
        "message.send.max.retries",
        "message.timeout.ms",
        "partition.assignment.strategy",
        "partitioner",
        "plugin.library.paths",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queue.buffering.max.ms",
        "queued.max.messages.kbytes",
        "request.required.acks",
        "request.timeout.ms",
        "retries",
        "session.timeout.ms",
        "transactional.id",
    }
)
"""Settings that pathgauge chooses, with their other names."""

_SETTING = re.compile(r"[a-z][a-z0-9]*(\.[a-z0-9]+)*", re.ASCII)
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}", re.ASCII)
SERVERS = ("bootstrap.servers", "metadata.broker.list")
"""The names of the setting with the addresses of the brokers."""


def _topic(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("the name of a topic: at most 249 letters, digits, '.', '_' and '-'")
    return value


def _settings(value: Json) -> Json:
    """Numbers and switches as librdkafka writes them."""
    if not isinstance(value, dict):
        return value
    return {str(name): _setting(str(name), one) for name, one in value.items()}


def _setting(name: str, value: Json) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"found a value of {name} that is not text, a number or a switch")


class Kafka(Section):
    """The cluster, the topics and the consumer group."""

    client: Annotated[dict[str, str], BeforeValidator(_settings), BeforeValidator(not_text)] = (
        Field(default_factory=dict, repr=False)
    )
    """Settings of librdkafka: `bootstrap.servers`, and what authentication and TLS need."""
    client_files: dict[str, FileName] = Field(default_factory=dict)
    """Files with the values of further settings of `client`, such as passwords."""
    traces_topic: Annotated[str, AfterValidator(_topic)] = "otlp_spans"
    logs_topic: Annotated[str, AfterValidator(_topic)] = "otlp_logs"
    group: Annotated[str, Field(min_length=1, max_length=249)] = "pathgauge"
    """The consumer group of the scorers."""
    group_instance_id: Annotated[str, Field(min_length=1, max_length=249)] | None = None
    """The name of this scorer for static membership: it keeps its partitions if it is restarted
    within the session timeout. Each scorer needs its own.
    """
    tenant: str = ""
    """The tenant of records that do not name one, such as those of the OpenTelemetry Collector."""

    @model_validator(mode="after")
    def _is_complete(self) -> Kafka:
        for name in (*self.client, *self.client_files):
            if name in OWN_SETTINGS or not _SETTING.fullmatch(name):
                raise ValueError(_refusal(name))
        for name in self.client.keys() & self.client_files:
            raise ValueError(f"found {name} in client and in client_files, expected one of them")
        if not any(self.client.get(name, "").strip() for name in SERVERS):
            raise ValueError(
                "found no bootstrap.servers in client, expected the addresses of the brokers, such"
                " as {bootstrap.servers: 'kafka:9092'}"
            )
        if self.traces_topic == self.logs_topic:
            raise ValueError(
                f"found {self.traces_topic!r} as traces_topic and logs_topic, expected two topics"
            )
        return self


def unusable_files(kafka: Kafka, folder: Path) -> Iterator[tuple[str, str]]:
    """The settings whose files cannot be read, each with the reason."""
    for name, file in kafka.client_files.items():
        try:
            if not _content(folder / file):
                yield name, f"found an empty file: {folder / file}"
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            yield name, f"found {file!r}, expected a readable file ({reason})"


def with_files(kafka: Kafka, folder: Path) -> Kafka:
    """The same section, with the contents of the files as settings. Raises OSError."""
    contents = {name: _content(folder / file) for name, file in kafka.client_files.items()}
    return kafka.model_copy(update={"client": kafka.client | contents})


def _content(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip("\r\n")


def _refusal(name: str) -> str:
    if name in OWN_SETTINGS:
        other = {"group.id": "group", "group.instance.id": "group_instance_id"}.get(name)
        expected = f"the key {other} of the section" if other else "nothing: pathgauge sets it"
        return f"found {name} in client, expected {expected}"
    return f"found {name!r} in client, expected a setting of librdkafka" + did_you_mean(
        name, SERVERS
    )


def missing_package() -> bool:
    """Whether the package confluent-kafka is not installed."""
    return find_spec("confluent_kafka") is None
