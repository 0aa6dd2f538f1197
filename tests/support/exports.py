"""Converts OTLP export requests to the JSON that Jaeger, Tempo and Grafana export.

It follows the OpenTelemetry to Jaeger transformation and Jaeger's UI model, Tempo's use of
protobuf's own JSON, and the download of Grafana's trace view.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pathgauge.collector.core.otlp.spans import decode_value

_KINDS = {Span.SPAN_KIND_SERVER: "server", Span.SPAN_KIND_CLIENT: "client"}
_STATUS_CODES = {1: "OK", 2: "ERROR"}
_JS_MAX_SAFE_INTEGER = 2**53 - 1


def jaeger_json(*requests: bytes) -> bytes:
    """The response of `/api/traces`."""
    return json.dumps(
        {"data": jaeger_traces(*requests), "total": 0, "limit": 0, "offset": 0, "errors": None}
    ).encode()


def jaeger_traces(*requests: bytes) -> list[dict[str, Any]]:
    """The traces in Jaeger's UI model."""
    traces: dict[str, dict[str, Any]] = {}
    for number, (resource, scope, span) in enumerate(_spans(requests), 1):
        trace_id = span.trace_id.hex()
        trace = traces.setdefault(
            trace_id, {"traceID": trace_id, "spans": [], "processes": {}, "warnings": None}
        )
        process = _jaeger_process(resource)
        known = (key for key, value in trace["processes"].items() if value == process)
        process_id = next(known, f"p{number}")
        trace["processes"][process_id] = process
        trace["spans"].append(_jaeger_span(scope, span) | {"processID": process_id})
    return list(traces.values())


def tempo_json(*requests: bytes) -> bytes:
    """The response of `/api/traces/{id}`."""
    return json.dumps({"batches": _tempo_groups(requests)}).encode()


def tempo_v2_json(*requests: bytes) -> bytes:
    """The response of `/api/v2/traces/{id}`."""
    return json.dumps(
        {"trace": {"resourceSpans": _tempo_groups(requests)}, "metrics": {"inspectedBytes": "4711"}}
    ).encode()


def grafana_json(*requests: bytes) -> bytes:
    """The download of the trace view: one scope per batch, ids in hex, times as numbers."""
    batches = [
        {
            "resource": group["resource"] | {"droppedAttributesCount": 0},
            "instrumentationLibrarySpans": [
                {
                    "instrumentationLibrary": scope["scope"],
                    "spans": list(map(_grafana_span, scope["spans"])),
                }
            ],
        }
        for group in _tempo_groups(requests)
        for scope in group["scopeSpans"]
    ]
    return json.dumps({"batches": batches}).encode()


def _spans(requests: Iterable[bytes]) -> Iterable[tuple[Resource, InstrumentationScope, Span]]:
    for request in map(ExportTraceServiceRequest.FromString, requests):
        for group in request.resource_spans:
            for scope in group.scope_spans:
                for span in scope.spans:
                    yield group.resource, scope.scope, span


def _jaeger_process(resource: Resource) -> dict[str, Any]:
    names = [pair.value.string_value for pair in resource.attributes if pair.key == "service.name"]
    tags = [_jaeger_tag(pair) for pair in resource.attributes if pair.key != "service.name"]
    return {"serviceName": names[0] if names else "OTLPResourceNoServiceName", "tags": tags}


def _jaeger_span(scope: InstrumentationScope, span: Span) -> dict[str, Any]:
    references = [("CHILD_OF", span.trace_id, span.parent_span_id)] if span.parent_span_id else []
    references += [("FOLLOWS_FROM", link.trace_id, link.span_id) for link in span.links]
    return {
        "traceID": span.trace_id.hex(),
        "spanID": span.span_id.hex(),
        "operationName": span.name,
        "references": [
            {"refType": kind, "traceID": trace.hex(), "spanID": id.hex()}
            for kind, trace, id in references
        ],
        "startTime": span.start_time_unix_nano // 1000,
        "duration": (span.end_time_unix_nano - span.start_time_unix_nano) // 1000,
        "tags": [_jaeger_tag(pair) for pair in span.attributes] + list(_field_tags(scope, span)),
        "logs": [
            {
                "timestamp": event.time_unix_nano // 1000,
                "fields": [_string_tag("event", event.name), *map(_jaeger_tag, event.attributes)],
            }
            for event in span.events
        ],
        "warnings": None,
    }


def _field_tags(scope: InstrumentationScope, span: Span) -> Iterable[dict[str, Any]]:
    texts = {
        "otel.scope.name": scope.name,
        "otel.scope.version": scope.version,
        "span.kind": _KINDS.get(span.kind),
        "otel.status_code": _STATUS_CODES.get(span.status.code),
        "otel.status_description": span.status.message,
        "w3c.tracestate": span.trace_state,
    }
    yield from (_string_tag(key, value) for key, value in texts.items() if value)
    dropped = {
        "otel.dropped_attributes_count": span.dropped_attributes_count,
        "otel.dropped_events_count": span.dropped_events_count,
    }
    yield from (
        {"key": key, "type": "int64", "value": count} for key, count in dropped.items() if count
    )
    if span.status.code == 2:
        yield {"key": "error", "type": "bool", "value": True}
    yield _string_tag("internal.span.format", "otlp")


def _string_tag(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "type": "string", "value": value}


def _jaeger_tag(pair: KeyValue) -> dict[str, Any]:
    value: AnyValue = pair.value
    match value.WhichOneof("value"):
        case "bool_value":
            return {"key": pair.key, "type": "bool", "value": value.bool_value}
        case "int_value":
            number: int | str = value.int_value
            if abs(value.int_value) > _JS_MAX_SAFE_INTEGER:
                number = str(number)
            return {"key": pair.key, "type": "int64", "value": number}
        case "double_value":
            return {"key": pair.key, "type": "float64", "value": value.double_value}
        case "bytes_value":
            return {
                "key": pair.key,
                "type": "binary",
                "value": base64.b64encode(value.bytes_value).decode(),
            }
        case "array_value" | "kvlist_value":
            return _string_tag(
                pair.key, json.dumps(decode_value(value), separators=(",", ":"), ensure_ascii=False)
            )
        case _:
            return _string_tag(pair.key, value.string_value)


def _tempo_groups(requests: Iterable[bytes]) -> list[Any]:
    return [
        MessageToDict(group)
        for request in requests
        for group in ExportTraceServiceRequest.FromString(request).resource_spans
    ]


def _grafana_span(span: dict[str, Any]) -> dict[str, Any]:
    ids = {
        key: base64.b64decode(span.get(key, "")).hex()
        for key in ("traceId", "spanId", "parentSpanId")
    }
    return span | ids | {key: int(span[key]) for key in ("startTimeUnixNano", "endTimeUnixNano")}
