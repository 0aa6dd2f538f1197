"""Encodes records as the body of an OTLP export request. Decoding it gives equal records.

Redacted requests are stored in this form.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceProto

from pathgauge.collector.core.otlp.spans import LogRecord, Span, encode_attributes

# Tags of the length-delimited fields 1 and 2. Requests, resource groups and scope groups of both
# signals use the same field numbers.
_GROUP = _CONTEXT = b"\x0a"
_MEMBER = b"\x12"


def encode_request(records: Iterable[Span | LogRecord], without_trace: int = 0) -> bytes:
    """An `ExportTraceServiceRequest` or `ExportLogsServiceRequest`. Adjacent records that share a
    resource or a scope form one group.

    `without_trace` log records without a trace id are only counted, so empty records stand for
    them.
    """
    groups = []
    for _, group in groupby(records, key=lambda record: id(record.resource)):
        members = list(group)
        groups.append(_field(_GROUP, _resource_group(members)))
    if without_trace:
        groups.append(_field(_GROUP, _field(_MEMBER, _field(_MEMBER, b"") * without_trace)))
    return b"".join(groups)


def _resource_group(records: list[Span | LogRecord]) -> bytes:
    attributes = encode_attributes(records[0].resource.attributes)
    resource = ResourceProto(attributes=attributes).SerializeToString()
    by_scope = groupby(records, key=lambda record: id(record.scope))
    scopes = (_field(_MEMBER, _scope_group(list(of_scope))) for _, of_scope in by_scope)
    return _field(_CONTEXT, resource) + b"".join(scopes)


def _scope_group(records: list[Span | LogRecord]) -> bytes:
    scope = InstrumentationScope(
        name=records[0].scope.name, version=records[0].scope.version
    ).SerializeToString()
    return _field(_CONTEXT, scope) + b"".join(_field(_MEMBER, record.raw) for record in records)


def _field(tag: bytes, content: bytes) -> bytes:
    return b"".join((tag, _varint(len(content)), content))


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*digits, number))
