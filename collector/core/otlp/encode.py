"""Records in, the body of an OTLP export request that holds them out; decoded again, it gives equal
records.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceProto

from pathgauge.collector.core.otlp.spans import LogRecord, Span, encode_attributes

# Tags of the length-delimited fields 1 and 2: requests, resource groups and scope groups of both
# signals number theirs alike.
_GROUP = _CONTEXT = b"\x0a"
_MEMBER = b"\x12"


def encode_request(records: Iterable[Span | LogRecord], without_trace: int = 0) -> bytes:
    """An `ExportTraceServiceRequest` or `ExportLogsServiceRequest`; neighbours that share a
    resource or a scope are one group.

    Log records that name no trace are to be counted, so as many empty ones are put in.
    """
    groups = []
    for _, group in groupby(records, key=lambda record: id(record.resource)):
        members = list(group)
        resource = ResourceProto(
            attributes=encode_attributes(members[0].resource.attributes)
        ).SerializeToString()
        scopes = [
            _scope_group(list(of_scope))
            for _, of_scope in groupby(members, key=lambda record: id(record.scope))
        ]
        groups.append(
            _field(
                _GROUP,
                _field(_CONTEXT, resource) + b"".join(_field(_MEMBER, scope) for scope in scopes),
            )
        )
    if without_trace:
        groups.append(_field(_GROUP, _field(_MEMBER, _field(_MEMBER, b"") * without_trace)))
    return b"".join(groups)


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
