"""Checks the topics before anything is written or read.

The spans of open traces stay in Kafka, so the topics have to keep them until a trace is read for
the last time. Spans and log records of a trace meet only if both topics have as many partitions.
Topics are not created: their partitions and replicas are decisions of the operator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, cast

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.receivers.kafka import LogError, client
from pathgauge.scorers.matching.wording import counted

_log = structlog.get_logger(__name__)

PATIENCE_S = 30.0
"""How long a start waits for a broker."""
MIN_MESSAGE_BYTES = 256 << 10
"""A smaller limit would reject ordinary spans of agents."""
_REQUEST_S = 5.0
_UNLIMITED = -1
_REFUSED = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)
"""Errors that no later request would change."""

_T = TypeVar("_T")


class Topics(NamedTuple):
    """What both topics have in common."""

    partitions: int
    max_message_bytes: int
    """The largest message that both take."""


class _Topic(NamedTuple):
    partitions: int
    settings: Mapping[str, str]

    def number(self, name: str) -> int:
        return int(self.settings[name])


def check(config: Kafka, min_retention_s: float, patience_s: float = PATIENCE_S) -> Topics:
    """Check both topics. Waits for a broker; raises `LogError` with every problem.

    `min_retention_s`: how long a record may be needed, in seconds.
    """
    broker = _Broker(config, patience_s)
    partitions = broker.partitions()
    names = (config.traces_topic, config.logs_topic)
    missing = [name for name in names if not partitions.get(name)]
    if missing:
        raise LogError("\n".join(_missing(config, name, partitions) for name in missing))
    found = {name: _Topic(partitions[name], broker.settings(name)) for name in names}
    problems = [text for name in names for text in _problems(name, found[name], min_retention_s)]
    traces, logs = (found[name] for name in names)
    if traces.partitions != logs.partitions:
        problems.append(
            f"topic {config.logs_topic}: found {counted(logs.partitions, 'partition')}, expected"
            f" {traces.partitions}, as many as {config.traces_topic} has"
        )
    if problems:
        raise LogError("\n".join(problems))
    largest = min(topic.number("max.message.bytes") for topic in found.values())
    return Topics(traces.partitions, largest)


class _Broker:
    """A broker that may answer late: requests are repeated until the patience ends."""

    def __init__(self, config: Kafka, patience_s: float) -> None:
        self._servers = _servers(config)
        self._patience_s = patience_s
        self._deadline = time.monotonic() + patience_s
        self._errors: list[KafkaError] = []
        try:
            self._admin = AdminClient(client.settings(config, {}, self._errors.append))
        except KafkaException as error:
            raise LogError(f"kafka.client: {client.refusal(error)}") from None

    def partitions(self) -> dict[str, int]:
        """The number of partitions of each topic of the cluster; 0 for one with an error."""
        topics = self._answer(lambda timeout: self._admin.list_topics(timeout=timeout).topics)
        return {name: 0 if topic.error else len(topic.partitions) for name, topic in topics.items()}

    def settings(self, topic: str) -> Mapping[str, str]:
        """The settings of a topic."""
        resource = ConfigResource(ResourceType.TOPIC, topic)

        def asked(_: float) -> Mapping[str, Any]:
            [future] = self._admin.describe_configs([resource], request_timeout=_REQUEST_S).values()
            return cast(Mapping[str, Any], future.result(2 * _REQUEST_S))

        try:
            entries = self._answer(asked)
        except KafkaException as error:
            reason = cast(KafkaError, error.args[0]).str()
            raise LogError(
                f"topic {topic}: its settings cannot be read, expected the right to describe its"
                f" configs: {reason}"
            ) from None
        return {name: entry.value for name, entry in entries.items()}

    def _answer(self, ask: Callable[[float], _T]) -> _T:
        """The answer to a request, which gets a timeout in seconds. Raises `KafkaException` if it
        is refused, and `LogError` if nobody answers.
        """
        while True:
            try:
                return ask(max(0.1, min(_REQUEST_S, self._deadline - time.monotonic())))
            except KafkaException as error:
                if cast(KafkaError, error.args[0]).code() in _REFUSED:
                    raise
                self._admin.poll(0)
                reason = client.why(self._errors, error)
            if time.monotonic() >= self._deadline:
                raise LogError(
                    f"found no usable Kafka broker at {self._servers} within"
                    f" {self._patience_s:g} s: {reason}"
                )
            _log.warning("waiting for a Kafka broker", servers=self._servers, reason=reason)


def _problems(name: str, topic: _Topic, min_retention_s: float) -> Iterator[str]:
    retention_ms = topic.number("retention.ms")
    if "compact" in topic.settings["cleanup.policy"]:
        found = topic.settings["cleanup.policy"]
        yield f"topic {name}: found cleanup.policy={found}, expected delete"
    if retention_ms != _UNLIMITED and retention_ms < min_retention_s * 1000:
        expected = f"{min_retention_s * 1000:.0f} at least, assembly.max_age + late_ttl, or -1"
        yield f"topic {name}: found retention.ms={retention_ms}, expected {expected}"
    if topic.number("max.message.bytes") < MIN_MESSAGE_BYTES:
        found = topic.settings["max.message.bytes"]
        yield (
            f"topic {name}: found max.message.bytes={found}, expected {MIN_MESSAGE_BYTES} at least"
        )
    if topic.number("retention.bytes") != _UNLIMITED:
        _log.warning(
            "the topic may delete spans of open traces when it has more bytes than this",
            topic=name,
            **{"retention.bytes": topic.number("retention.bytes")},
        )


def _missing(config: Kafka, name: str, partitions: Mapping[str, int]) -> str:
    other = config.logs_topic if name == config.traces_topic else config.traces_topic
    number = partitions.get(other) or 12
    return (
        f"found no topic {name}, expected one, and the right to describe it: kafka-topics.sh"
        f" --bootstrap-server {_servers(config)} --create --topic {name} --partitions {number}"
        " --replication-factor 3"
    )


def _servers(config: Kafka) -> str:
    return config.client.get("bootstrap.servers") or config.client["metadata.broker.list"]
