"""Decodes the body of an OTLP export request into valid spans or log records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope as ScopeProto
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceProto
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.otlp.json import JsonReader
from pathgauge.collector.core.otlp.own_events import is_own_event
from pathgauge.collector.core.otlp.protobuf import ProtobufReader
from pathgauge.collector.core.otlp.request import (
    DecodeLimits,
    Reader,
    Reason,
    RejectedError,
    ResourceGroup,
    Signal,
    SourceT,
)
from pathgauge.collector.core.otlp.spans import LogRecord, Resource, Scope, Span, decode_attributes

RecordT = TypeVar("RecordT", Span, LogRecord)

_NO_TRACE_ID, _NO_SPAN_ID = "0" * 32, "0" * 16
_MAX_REASON_CHARS = 200
_VALUE_TAGS = (b"\n", b"\x8a")
"""Bytes that begin each attribute of a resource, each key, and each value in an array or a map; the
second one if padded to two bytes. Counting them gives an upper bound without decoding.
"""
_DEFAULT_LIMITS = DecodeLimits()


@dataclass(frozen=True, slots=True)
class Decoded(Generic[RecordT]):
    """The contents of one export request."""

    records: tuple[RecordT, ...]
    rejected: Mapping[Reason, int] = field(default_factory=dict)
    """Number of permanently rejected records by reason. The sender is informed and must not resend
    them.
    """
    without_trace: int = 0
    """Number of valid log records without a trace id, which are not used."""
    own_events: int = 0
    """Number of evaluation events that pathgauge exported itself. They must not become part of a
    trace.
    """
    message: str = ""
    """The message to the sender about rejected records; empty if there are none."""


def decode_traces(
    body: bytes, *, tenant: str = "", limits: DecodeLimits = _DEFAULT_LIMITS
) -> Decoded[Span]:
    """Decode an `ExportTraceServiceRequest`. Raises `UndecodableError`."""
    return _spans(ProtobufReader(limits), body, tenant, limits)


def decode_logs(
    body: bytes, *, tenant: str = "", limits: DecodeLimits = _DEFAULT_LIMITS
) -> Decoded[LogRecord]:
    """Decode an `ExportLogsServiceRequest`. Raises `UndecodableError`."""
    return _logs(ProtobufReader(limits), body, tenant, limits)


def decode_traces_json(
    body: bytes, *, tenant: str = "", limits: DecodeLimits = _DEFAULT_LIMITS
) -> Decoded[Span]:
    """Decode the JSON form of an `ExportTraceServiceRequest`. Raises `UndecodableError`."""
    return _spans(JsonReader(limits), body, tenant, limits)


def decode_logs_json(
    body: bytes, *, tenant: str = "", limits: DecodeLimits = _DEFAULT_LIMITS
) -> Decoded[LogRecord]:
    """Decode the JSON form of an `ExportLogsServiceRequest`. Raises `UndecodableError`."""
    return _logs(JsonReader(limits), body, tenant, limits)


def _spans(
    reader: Reader[SourceT], body: bytes, tenant: str, limits: DecodeLimits
) -> Decoded[Span]:
    def read(source: SourceT, resource: Resource, scope: Scope) -> Span:
        raw, proto = reader.message(source, SpanProto, limits.max_record_bytes)
        span = Span(raw, resource, scope, tenant, proto)
        if not _has_ids(span):
            raise _invalid_id(span)
        return span

    return _decode(reader, "traces", body, read, limits)


def _logs(
    reader: Reader[SourceT], body: bytes, tenant: str, limits: DecodeLimits
) -> Decoded[LogRecord]:
    def read(source: SourceT, resource: Resource, scope: Scope) -> LogRecord | None:
        raw, proto = reader.message(source, LogRecordProto, limits.max_record_bytes)
        record = LogRecord(raw, resource, scope, tenant, proto)
        return record if _is_trace_id(record.trace_id) else None

    decoded = _decode(reader, "logs", body, read, limits)
    others = tuple(record for record in decoded.records if not is_own_event(record))
    own_events = len(decoded.records) - len(others)
    return replace(decoded, records=others, own_events=own_events) if own_events else decoded


def _decode(
    reader: Reader[SourceT],
    signal: Signal,
    body: bytes,
    read: Callable[[SourceT, Resource, Scope], RecordT | None],
    limits: DecodeLimits,
) -> Decoded[RecordT]:
    rejections = _Rejections()
    records: list[RecordT] = []
    without_trace, remaining = 0, limits.max_records
    groups = reader.groups(body, signal)
    for resource, scope, sources in _contexts(reader, groups, rejections, limits):
        accepted = sources[:remaining]
        remaining -= len(accepted)
        for source in accepted:
            try:
                record = read(source, resource, scope)
            except RejectedError as error:
                rejections.add(error)
                continue
            if record is None:
                without_trace += 1
            else:
                records.append(record)
        if surplus := len(sources) - len(accepted):
            message = f"more than {limits.max_records:,} in one request"
            rejections.add(RejectedError("too_many_records", message), surplus)
    return Decoded(tuple(records), rejections.counts, without_trace, message=rejections.message)


def _contexts(
    reader: Reader[SourceT],
    groups: Iterator[ResourceGroup[SourceT]],
    rejections: _Rejections,
    limits: DecodeLimits,
) -> Iterator[tuple[Resource, Scope, Sequence[SourceT]]]:
    """Each resource and scope with its records. If a resource or scope cannot be decoded, its
    records are rejected, because they would be attributed to the wrong sender.
    """
    remaining = limits.max_context_values
    for group in groups:
        scopes = [scope for scope in group.scopes if scope.records]
        if not scopes:
            continue
        try:
            raw, shared = reader.message(group.resource, ResourceProto, limits.max_context_bytes)
            values = sum(map(raw.count, _VALUE_TAGS))
            if values > remaining:
                raise RejectedError(
                    "too_many_attributes",
                    f"more than {limits.max_context_values:,} keys and values of resources",
                )
            remaining -= values
            resource = Resource(decode_attributes(shared.attributes), len(raw))
        except RejectedError as error:
            rejections.add(error, sum(len(scope.records) for scope in scopes))
            continue
        for scope in scopes:
            try:
                proto = reader.message(scope.scope, ScopeProto, limits.max_context_bytes)[1]
            except RejectedError as error:
                rejections.add(error, len(scope.records))
                continue
            yield resource, Scope(proto.name, proto.version), scope.records


def _has_ids(span: Span) -> bool:
    """Whether the ids of a span are valid."""
    return (
        _is_trace_id(span.trace_id)
        and len(span.span_id) == len(_NO_SPAN_ID)
        and span.span_id != _NO_SPAN_ID
        and (span.parent_id is None or len(span.parent_id) == len(_NO_SPAN_ID))
    )


def _invalid_id(span: Span) -> RejectedError:
    if not _is_trace_id(span.trace_id):
        message = f"trace id: expected 16 bytes, not all zero, found {span.trace_id!r}"
    elif len(span.span_id) != len(_NO_SPAN_ID) or span.span_id == _NO_SPAN_ID:
        message = f"span id: expected 8 bytes, not all zero, found {span.span_id!r}"
    else:
        message = f"parent span id: expected 8 bytes or none, found {span.parent_id!r}"
    return RejectedError("invalid_id", message)


def _is_trace_id(identifier: str) -> bool:
    return len(identifier) == len(_NO_TRACE_ID) and identifier != _NO_TRACE_ID


class _Rejections:
    """Number of rejected records by reason, and the first error as an example."""

    def __init__(self) -> None:
        self.counts: Counter[Reason] = Counter()
        self._first = ""

    def add(self, error: RejectedError, records: int = 1) -> None:
        self.counts[error.reason] += records
        self._first = self._first or str(error)[:_MAX_REASON_CHARS]

    @property
    def message(self) -> str:
        if not self.counts:
            return ""
        counts = ", ".join(f"{reason} {count}" for reason, count in self.counts.items())
        return f"rejected {self.counts.total()}: {counts}; first: {self._first}"
