"""OTLP/protobuf by hand, so that it can be wrong: numbers and bytes come in, parts of export
requests go out.
"""

from __future__ import annotations

from opentelemetry.proto.trace.v1.trace_pb2 import Span

TRACE_ID, SPAN_ID = b"\x01" * 16, b"\x02" * 8


def varint(number: int) -> bytes:
    """A number of seven bits a byte."""
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def span(
    name: str = "chat",
    trace_id: bytes = TRACE_ID,
    span_id: bytes = SPAN_ID,
    parent: bytes = b"",
    more: bytes = b"",
) -> bytes:
    """A span, and what else is to stand in it."""
    return (
        Span(
            trace_id=trace_id, span_id=span_id, parent_span_id=parent, name=name
        ).SerializeToString()
        + more
    )


def group(*records: bytes, resource: bytes = b"", scope: bytes = b"") -> bytes:
    """The records of one resource and scope. Several groups in a row are a request."""
    return field(
        1,
        field(1, resource)
        + field(2, field(1, scope) + b"".join(field(2, record) for record in records)),
    )


def attribute(value: bytes, key: bytes = b"key") -> bytes:
    """An attribute of a span whose value has this content."""
    return field(9, field(1, key) + field(2, value))


def nested(levels: int) -> bytes:
    """An attribute that is an array in an array in an array; protobuf's own classes refuse to build
    what they refuse to read.
    """
    value = field(1, b"deep")
    for _ in range(levels):
        value = field(5, field(1, value))
    return attribute(value)
