"""Encodes records as the body of an OTLP export request. Decoding it gives equal records.

Redacted requests are stored in this form, and so are the parts of a request that was split.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceProto

from pathgauge.collector.core.otlp.own_events import EVALUATION_RESULT, SCOPE
from pathgauge.collector.core.otlp.spans import (
    LogRecord,
    Resource,
    Scope,
    Span,
    encode_attributes,
)

# Tags of the length-delimited fields 1 and 2. Requests, resource groups and scope groups of both
# signals use the same field numbers.
_GROUP = _CONTEXT = b"\x0a"
_MEMBER = b"\x12"


def encode_request(
    records: Iterable[Span | LogRecord], without_trace: int = 0, own_events: int = 0
) -> bytes:
    """An `ExportTraceServiceRequest` or `ExportLogsServiceRequest`. Adjacent records that share a
    resource or a scope form one group.

    Log records without a trace id and own evaluation events are only counted, so records without
    content stand for them.
    """
    return RequestEncoder().encode(records, without_trace, own_events)


class RequestEncoder:
    """Encodes several requests whose records share resources and scopes, each of which is encoded
    once. The records have to live longer than the encoder.
    """

    __slots__ = ("_resources", "_scopes")

    def __init__(self) -> None:
        self._resources: dict[int, bytes] = {}
        self._scopes: dict[int, bytes] = {}

    def encode(
        self, records: Iterable[Span | LogRecord], without_trace: int = 0, own_events: int = 0
    ) -> bytes:
        """As `encode_request`."""
        groups = [
            _field(_GROUP, self._resource_group(list(members)))
            for _, members in groupby(records, key=lambda record: id(record.resource))
        ]
        if without_trace:
            groups.append(_field(_GROUP, _field(_MEMBER, _field(_MEMBER, b"") * without_trace)))
        if own_events:
            groups.append(_field(_GROUP, _field(_MEMBER, _OWN_SCOPE + _OWN_EVENT * own_events)))
        return b"".join(groups)

    def context_bytes(self, record: Span | LogRecord) -> int:
        """The size of the resource and the scope of a record."""
        return len(self._resource(record.resource)) + len(self._scope(record.scope))

    def _resource_group(self, records: Sequence[Span | LogRecord]) -> bytes:
        by_scope = groupby(records, key=lambda record: id(record.scope))
        scopes = (
            _field(_MEMBER, self._scope(scoped[0].scope) + _members(scoped))
            for scoped in (list(of_scope) for _, of_scope in by_scope)
        )
        return self._resource(records[0].resource) + b"".join(scopes)

    def _resource(self, resource: Resource) -> bytes:
        found = self._resources.get(id(resource))
        if found is None:
            message = ResourceProto(attributes=encode_attributes(resource.attributes))
            found = self._resources[id(resource)] = _field(_CONTEXT, message.SerializeToString())
        return found

    def _scope(self, scope: Scope) -> bytes:
        found = self._scopes.get(id(scope))
        if found is None:
            message = InstrumentationScope(name=scope.name, version=scope.version)
            found = self._scopes[id(scope)] = _field(_CONTEXT, message.SerializeToString())
        return found


def _members(records: Iterable[Span | LogRecord]) -> bytes:
    parts: list[bytes] = []
    for record in records:  # the loop that takes the time: one join of all, no call for each
        raw = record.raw
        parts += _MEMBER, _varint(len(raw)), raw
    return b"".join(parts)


def _field(tag: bytes, content: bytes) -> bytes:
    return b"".join((tag, _varint(len(content)), content))


@lru_cache(16_384)
def _varint(number: int) -> bytes:
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*digits, number))


_OWN_SCOPE = _field(_CONTEXT, InstrumentationScope(name=SCOPE).SerializeToString())
_OWN_EVENT = _field(
    _MEMBER,
    LogRecordProto(trace_id=b"\x01" * 16, event_name=EVALUATION_RESULT).SerializeToString(),
)
