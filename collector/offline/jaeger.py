"""Translates Jaeger's JSON, as exported by its UI and `/api/traces`, into an OTLP/JSON request.

It reverses the OpenTelemetry to Jaeger transformation field by field. Two things are lost: times
are whole microseconds, and arrays and maps stay the JSON text that Jaeger stores. Malformed data
becomes an entry that the OTLP decoder rejects and counts.
"""

from __future__ import annotations

from typing import Any

_VALUE_FIELDS = {
    "string": "stringValue",
    "bool": "boolValue",
    "int64": "intValue",
    "float64": "doubleValue",
    "binary": "bytesValue",
}
_TYPES: dict[type, str] = {str: "string", bool: "bool", int: "int64", float: "float64"}
"""For tags without a type, as in Grafana downloads."""

_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS_CODES = {"OK": 1, "ERROR": 2}
_NO_SERVICE_NAME = "OTLPResourceNoServiceName"
_FIELD_TAGS = frozenset(
    {
        "otel.scope.name",
        "otel.scope.version",
        "otel.library.name",
        "otel.library.version",
        "otel.status_code",
        "otel.status_description",
        "otel.dropped_attributes_count",
        "otel.dropped_events_count",
        "otel.dropped_links_count",
        "span.kind",
        "w3c.tracestate",
    }
)
"""Tags that hold fields of a span; all others are attributes."""

_MALFORMED = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError)
_UNREADABLE = "malformed"
"""Replaces malformed data. It is not an object, so the decoder rejects it."""

_Group = tuple[str, str, str]
"""Process id, name and version of the scope."""


def export_request(document: Any) -> dict[str, Any] | None:
    """Translate an API response or a single trace; `None` when the document is something else."""
    traces = _traces(document)
    if not traces:
        return None
    return {"resourceSpans": [group for trace in traces for group in _resource_groups(trace)]}


def _traces(document: Any) -> list[Any]:
    traces = [document]
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        traces = document["data"]
    if not any(map(_is_trace, traces)):
        return []
    return traces


def _is_trace(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "spans" in value
        and not value.keys().isdisjoint({"traceID", "processes"})
    )


def _resource_groups(trace: Any) -> list[dict[str, Any]]:
    sources = [None]  # a malformed trace becomes one malformed span
    if isinstance(trace, dict) and isinstance(trace.get("spans"), list):
        sources = trace["spans"]
    groups: dict[_Group, list[Any]] = {}
    for source in sources:
        key, span = _span(source)
        groups.setdefault(key, []).append(span)
    return [
        {
            "resource": _resource(trace, process),
            "scopeSpans": [{"scope": {"name": name, "version": version}, "spans": group}],
        }
        for (process, name, version), group in groups.items()
    ]


def _resource(trace: Any, process_id: str) -> Any:
    try:
        process = (trace.get("processes") or {}).get(process_id)
        if process is None:
            return None
        attributes = [_attribute(tag) for tag in process.get("tags") or ()]
        if (service := process.get("serviceName")) and service != _NO_SERVICE_NAME:
            attributes.append(_attribute({"key": "service.name", "value": service}))
    except _MALFORMED:
        return _UNREADABLE
    return {"attributes": attributes}


def _span(source: Any) -> tuple[_Group, Any]:
    try:
        tags = {tag["key"]: tag["value"] for tag in source.get("tags") or ()}
        name = tags.get("otel.scope.name") or tags.get("otel.library.name") or ""
        version = tags.get("otel.scope.version") or tags.get("otel.library.version") or ""
        return (str(source.get("processID")), str(name), str(version)), _fields(source, tags)
    except _MALFORMED:
        return ("", "", ""), _UNREADABLE


def _fields(source: Any, tags: dict[str, Any]) -> dict[str, Any]:
    failed = tags.get("error") is True
    status = tags.get("otel.status_code", "")
    if failed:
        status = "ERROR"
    start = _nanoseconds(source["startTime"])
    trace_id = _id(source["traceID"], 32)
    references = source.get("references") or ()
    parent = _parent(references, trace_id)
    parent_id = source.get("parentSpanID")
    if parent:
        parent_id = parent["spanID"]
    return {
        "traceId": trace_id,
        "spanId": _id(source["spanID"], 16),
        "parentSpanId": _id(parent_id or "", 16),
        "traceState": tags.get("w3c.tracestate"),
        "name": source.get("operationName"),
        "kind": _KINDS.get(tags.get("span.kind", "internal")),
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + _nanoseconds(source["duration"])),
        "attributes": [
            _attribute(tag)
            for tag in source.get("tags") or ()
            if tag["key"] not in _FIELD_TAGS and not (failed and tag["key"] == "error")
        ],
        "droppedAttributesCount": tags.get("otel.dropped_attributes_count"),
        "events": [_event(log) for log in source.get("logs") or ()],
        "droppedEventsCount": tags.get("otel.dropped_events_count"),
        "links": [
            {"traceId": _id(reference["traceID"], 32), "spanId": _id(reference["spanID"], 16)}
            for reference in references
            if reference is not parent
        ],
        "droppedLinksCount": tags.get("otel.dropped_links_count"),
        "status": {
            "code": _STATUS_CODES.get(status),
            "message": tags.get("otel.status_description"),
        },
    }


def _parent(references: Any, trace_id: str) -> Any:
    """The first CHILD_OF of the same trace, or else the first FOLLOWS_FROM: Jaeger exports a parent
    that is also a link as FOLLOWS_FROM.
    """
    related = (reference for reference in references if _id(reference["traceID"], 32) == trace_id)
    return min(related, key=lambda reference: reference["refType"] != "CHILD_OF", default=None)


def _event(log: Any) -> dict[str, Any]:
    fields = log.get("fields") or ()
    return {
        "timeUnixNano": str(_nanoseconds(log["timestamp"])),
        "name": next((field["value"] for field in fields if field["key"] == "event"), None),
        "attributes": [_attribute(field) for field in fields if field["key"] != "event"],
    }


def _attribute(tag: Any) -> dict[str, Any]:
    value = tag["value"]
    return {
        "key": tag["key"],
        "value": {_VALUE_FIELDS[tag.get("type") or _TYPES[type(value)]]: value},
    }


def _id(identifier: str, digits: int) -> str:
    """Restore the leading zeros that Jaeger omits."""
    return identifier.rjust(digits, "0")


def _nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)
