"""Converts batches to Kafka records and back.

The value is an OTLP request in protobuf (`otlp_proto` of the OpenTelemetry Collector), and the key
is the id of its trace in hexadecimal, or of one of several traces of the same partition. Headers
say what a request's connection says otherwise; a record without them was written by another
program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from confluent_kafka import Message

from pathgauge.collector.config import Config
from pathgauge.collector.core.otlp import DecodeLimits, Encoding, Reason, Signal, UndecodableError
from pathgauge.collector.core.otlp.batch import Batch, Origin, Transport
from pathgauge.collector.core.otlp.decode_batch import decode_batch
from pathgauge.collector.core.partitioning import partition_of_trace

Skip: TypeAlias = Literal[
    "undecodable", "unknown_version", "no_tenant", "unknown_tenant", "not_by_trace", "gone"
]
"""Why a record is not read. `not_by_trace`: its key is not the one trace id of its contents, or the
partition is not that of the trace, so the rest of the trace may be in another one. `gone`: the
topic no longer had it. A closed set, because it is a metric label.
"""

_VERSION = b"1"
_HEADER = "pathgauge."
_MILLISECONDS = 1000.0

Headers: TypeAlias = "list[tuple[str, str | bytes | None]]"


class SkippedError(Exception):
    """A record cannot be read, whenever it is read."""

    def __init__(self, reason: Skip) -> None:
        super().__init__(reason)
        self.reason: Skip = reason


class KafkaRecord(NamedTuple):
    """A record that was read."""

    topic: str
    offset: int
    at: float
    """Unix time of the record in seconds."""
    batch: Batch
    rejected: Mapping[Reason, int]
    """Number of rejected spans or log records by reason; only other programs write such."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to deliver: all was rejected."""
        batch = self.batch
        return not (batch.spans or batch.logs or batch.without_trace or batch.own_events)


class Tenants(NamedTuple):
    """Which tenants records may have."""

    known: frozenset[str]
    default: str | None
    """The tenant of records that name none; `None`: these are skipped."""

    @classmethod
    def of(cls, config: Config) -> Tenants:
        """The tenants of a configuration with a section `kafka`. Without `auth` there is one
        tenant, whose name is empty. If there is one tenant, it is the default.
        """
        known = frozenset(config.auth.tenants) if config.auth is not None else frozenset({""})
        given = config.kafka.tenant if config.kafka is not None else ""
        if given in known:
            return cls(known, given)
        return cls(known, next(iter(known)) if len(known) == 1 else None)


def headers(batch: Batch) -> Headers:
    """The headers of a record."""
    origin = batch.origin
    return _headers(origin.tenant, origin.transport, batch.sent_as or origin.encoding)


@lru_cache(1024)
def _headers(tenant: str, transport: str, sent_as: str) -> Headers:
    return [
        (f"{_HEADER}version", _VERSION),
        (f"{_HEADER}tenant", tenant.encode()),
        (f"{_HEADER}transport", transport.encode()),
        (f"{_HEADER}format", sent_as.encode()),
    ]


@dataclass(frozen=True, slots=True)
class RecordDecoder:
    """Decodes the records of the topics. For any thread."""

    signals: Mapping[str, Signal]
    """By topic."""
    tenants: Tenants
    partitions: int
    """Of each topic. With one partition all records of a trace meet, whatever their keys are."""
    limits: DecodeLimits = field(default_factory=DecodeLimits)
    redact: Callable[[Batch], Batch] | None = None
    """Redacts what other programs wrote; gateways redact before they write."""

    def decode(self, message: Message) -> KafkaRecord:
        """Decode a record. Raises `SkippedError`."""
        topic, offset = cast(str, message.topic()), cast(int, message.offset())
        at = max(0.0, message.timestamp()[1] / _MILLISECONDS)
        found = _own_headers(message.headers())
        signal, value = self.signals[topic], message.value() or b""
        if not found:
            batch, rejected = self._of_others(signal, value, message)
            return KafkaRecord(topic, offset, at, batch, rejected)
        return KafkaRecord(topic, offset, at, self._of_gateway(signal, value, found), {})

    def _of_gateway(self, signal: Signal, value: bytes, found: Mapping[str, Any]) -> Batch:
        if found.get("version") != _VERSION:
            raise SkippedError("unknown_version")
        origin, sent_as = self._origin(signal, found)
        return replace(_decoded(origin, value, _encoded_again(self.limits))[0], sent_as=sent_as)

    def _of_others(
        self, signal: Signal, value: bytes, message: Message
    ) -> tuple[Batch, Mapping[Reason, int]]:
        if self.tenants.default is None:
            raise SkippedError("no_tenant")
        origin = Origin(self.tenants.default, "kafka", signal, "protobuf")
        batch, rejected = _decoded(origin, value, self.limits)
        traces = {record.trace_id for record in batch.spans or batch.logs}
        if self.partitions > 1 and traces and not self._is_by_trace(traces, message):
            raise SkippedError("not_by_trace")
        return self.redact(batch) if self.redact is not None else batch, rejected

    def _is_by_trace(self, traces: Set[str], message: Message) -> bool:
        key = message.key() or b""
        trace_id = key.decode(errors="replace")
        return (
            traces == {trace_id}
            and partition_of_trace(trace_id, self.partitions) == message.partition()
        )

    def _origin(self, signal: Signal, found: Mapping[str, Any]) -> tuple[Origin, Encoding]:
        texts = {name: _text(value) for name, value in found.items()}
        tenant, transport, sent_as = map(texts.get, ("tenant", "transport", "format"))
        if tenant not in self.tenants.known:
            raise SkippedError("unknown_tenant")
        if transport not in get_args(Transport) or sent_as not in get_args(Encoding):
            raise SkippedError("undecodable")
        origin = Origin(tenant, cast(Transport, transport), signal, "protobuf")
        return origin, cast(Encoding, sent_as)


def _own_headers(found: Any) -> dict[str, Any]:
    return {
        name.removeprefix(_HEADER): value for name, value in found or () if name.startswith(_HEADER)
    }


def _text(value: Any) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _decoded(
    origin: Origin, value: bytes, limits: DecodeLimits
) -> tuple[Batch, Mapping[Reason, int]]:
    try:
        decoded = decode_batch(origin, value, limits)
    except UndecodableError:
        raise SkippedError("undecodable") from None
    batch = decoded.batch
    is_empty = not (batch.spans or batch.logs or batch.without_trace or batch.own_events)
    if is_empty and not decoded.rejected:
        raise SkippedError("undecodable")
    return batch, decoded.rejected


@lru_cache(4)
def _encoded_again(limits: DecodeLimits) -> DecodeLimits:
    """Limits for what a gateway has encoded again: it checked the records, but redacted ones may
    be larger. The topic limits their size; their numbers of values are limited here.
    """
    unlimited = sys.maxsize // 100
    return replace(
        limits,
        max_record_bytes=unlimited,
        max_context_bytes=unlimited,
        max_attributes=4 * limits.max_attributes,
        max_values=4 * limits.max_values,
        max_records=4 * limits.max_records,
    )
