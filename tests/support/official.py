"""What protobuf's own parser reads in an export request: the oracle for the walk of the wire
format.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.otlp import UndecodableError, decode_traces
from pathgauge.collector.core.otlp.spans import Resource, Scope, decode_attributes


def read_like_protobuf(body: bytes) -> None:
    """Fail if `body` is a request for protobuf, and its spans are other ones for the collector."""
    try:
        official = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        return
    try:
        decoded = decode_traces(body)
    except UndecodableError:
        assert any(byte & 7 in (3, 4) for byte in body), (
            "only proto2's groups, which OTLP never had, may be refused"
        )
        return
    expected = [
        (
            span,
            span.status.message,
            Resource(decode_attributes(group.resource.attributes)),
            Scope(scope.scope.name, scope.scope.version),
        )
        for group in official.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
        if has_valid_ids(span)
    ]
    assert [
        (record.proto, record.status_message, record.resource, record.scope)
        for record in decoded.records
    ] == expected


def has_valid_ids(span: SpanProto) -> bool:
    """Whether a span is not rejected because of its ids."""
    sizes = (len(span.trace_id), len(span.span_id), len(span.parent_span_id))
    return sizes in ((16, 8, 0), (16, 8, 8)) and any(span.trace_id) and any(span.span_id)
