"""Encodes spans and log records as OTLP/JSON, for people who save or read a trace.

OTLP/JSON differs from protobuf's own JSON: ids are hexadecimal and enums are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.otlp.spans import (
    LogRecord,
    Resource,
    Scope,
    Span,
    encode_attributes,
)

_RecordT = TypeVar("_RecordT", Span, LogRecord)
_Object = dict[str, Any]


def resource_spans(spans: Iterable[Span]) -> list[_Object]:
    """The `resourceSpans` of a request. Adjacent spans that share a resource or a scope form one
    group.
    """
    return _groups(spans, "scopeSpans", "spans", _span)


def resource_logs(logs: Iterable[LogRecord]) -> list[_Object]:
    """The `resourceLogs` of a request."""
    return _groups(logs, "scopeLogs", "logRecords", _log)


def _groups(
    records: Iterable[_RecordT], scopes: str, members: str, encode: Callable[[_RecordT], _Object]
) -> list[_Object]:
    return [
        {
            "resource": _resource(resource),
            scopes: [
                {"scope": _scope(scope), members: list(map(encode, of_scope))}
                for scope, of_scope in groupby(of_resource, key=lambda record: record.scope)
            ],
        }
        for resource, of_resource in groupby(records, key=lambda record: record.resource)
    ]


def _resource(resource: Resource) -> _Object:
    return {"attributes": _attributes(resource.attributes)}


def _scope(scope: Scope) -> _Object:
    return {"name": scope.name, "version": scope.version}


def _attributes(attributes: Mapping[str, Any]) -> list[_Object]:
    return list(map(message_to_json, encode_attributes(attributes)))


def _span(span: Span) -> _Object:
    return span_to_json(span.proto)


def span_to_json(proto: SpanProto) -> _Object:
    """One span."""
    found = message_to_json(proto)
    found |= _ids(traceId=proto.trace_id, spanId=proto.span_id, parentSpanId=proto.parent_span_id)
    for link, written in zip(proto.links, found.get("links", ()), strict=True):
        written.update(_ids(traceId=link.trace_id, spanId=link.span_id))
    return found


def _log(log: LogRecord) -> _Object:
    proto = log.proto
    return {**message_to_json(proto), **_ids(traceId=proto.trace_id, spanId=proto.span_id)}


def _ids(**ids: bytes) -> dict[str, str]:
    return {name: value.hex() for name, value in ids.items() if value}


def message_to_json(message: Message) -> _Object:
    """A message without ids, such as a resource or a scope."""
    found: _Object = MessageToDict(message, use_integers_for_enums=True)
    return found
