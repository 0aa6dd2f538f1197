"""Builds spans and log records for tests of dialects, sinks and the core.

Ids can be any text, such as `parent="agent"`: they become valid ids by hashing. Times are seconds
after `EPOCH_S`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto, Status

from pathgauge.collector.core.otlp.spans import (
    LogRecord,
    Resource,
    Scope,
    Span,
    encode_attributes,
    encode_value,
)

EPOCH_S = 1_700_000_000
"""Second 0 of all builders, in Unix seconds."""

_LOCAL_PARENT, _REMOTE_PARENT = 0x100, 0x300


def trace_id(name: str) -> str:
    """The trace id for `name`, in hex."""
    return _hash(name, 16).hex()


def span_id(name: str) -> str:
    """The span id for `name`, in hex."""
    return _hash(name, 8).hex()


def span(
    id: str,
    name: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    trace: str = "trace",
    parent: str | None = None,
    start: float = 0.0,
    end: float = 1.0,
    scope: str = "",
    resource: Mapping[str, Any] | None = None,
    error: str | None = None,
    events: Sequence[tuple[str, Mapping[str, Any]]] = (),
    trace_state: str = "",
    remote_parent: bool = False,
    tenant: str = "",
) -> Span:
    """One finished span; `error` is the message of an error status."""
    proto = SpanProto(
        trace_id=_hash(trace, 16),
        span_id=_hash(id, 8),
        parent_span_id=_hash(parent, 8) if parent is not None else b"",
        name=name,
        start_time_unix_nano=_nanoseconds(start),
        end_time_unix_nano=_nanoseconds(end),
        attributes=encode_attributes(attributes or {}),
        events=[
            SpanProto.Event(
                name=event, time_unix_nano=_nanoseconds(start), attributes=encode_attributes(values)
            )
            for event, values in events
        ],
        trace_state=trace_state,
        flags=_REMOTE_PARENT if remote_parent else _LOCAL_PARENT,
    )
    if error is not None:
        proto.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=error))
    return Span(proto.SerializeToString(), Resource(dict(resource or {})), Scope(scope), tenant)


def log(
    event_name: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    body: Any = None,
    trace: str = "trace",
    span: str | None = None,
    time: float = 0.0,
    scope: str = "",
    tenant: str = "",
) -> LogRecord:
    """One log record of the span with the id `span`."""
    proto = LogRecordProto(
        trace_id=_hash(trace, 16),
        span_id=_hash(span, 8) if span is not None else b"",
        event_name=event_name,
        time_unix_nano=_nanoseconds(time),
        attributes=encode_attributes(attributes or {}),
    )
    if body is not None:
        proto.body.CopyFrom(encode_value(body))
    return LogRecord(proto.SerializeToString(), Resource(), Scope(scope), tenant)


def _hash(name: str, size: int) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=size).digest()


def _nanoseconds(seconds: float) -> int:
    return EPOCH_S * 10**9 + round(seconds * 1e9)
