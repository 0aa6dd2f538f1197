"""Jaeger's JSON, as its UI and `/api/traces` export it: traces come in, one OTLP/JSON export
request goes out.

Every field returns to where the OpenTelemetry to Jaeger transformation took it from. Two things do
not come back: times are whole microseconds, and arrays and maps stay the JSON text that Jaeger has
of them. What is malformed becomes an entry that the OTLP decoder rejects and counts.
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
"""Types of tags that name none, as in what Grafana downloads."""

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
"""Tags that stand for fields of a span; all others are its attributes."""

_MALFORMED = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError)
_UNREADABLE = "malformed"
"""Takes the place of what is malformed: no object, hence rejected."""

_Place = tuple[str, str, str]
"""Process id, name and version of the scope."""


def export_request(document: Any) -> dict[str, Any] | None:
    """Translate the answer of an API call or a single trace; `None` when the document is something
    else.
    """
    traces = _traces(document)
    return (
        {"resourceSpans": [group for trace in traces for group in _resource_groups(trace)]}
        if traces
        else None
    )


def _traces(document: Any) -> list[Any]:
    data = document.get("data") if isinstance(document, dict) else None
    traces = data if isinstance(data, list) else [document]
    return traces if any(map(_is_trace, traces)) else []


def _is_trace(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "spans" in value
        and not value.keys().isdisjoint({"traceID", "processes"})
    )


def _resource_groups(trace: Any) -> list[dict[str, Any]]:
    spans = trace.get("spans") if isinstance(trace, dict) else None
    groups: dict[_Place, list[Any]] = {}
    for source in spans if isinstance(spans, list) else [None]:
        place, span = _span(source)
        groups.setdefault(place, []).append(span)
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


def _span(source: Any) -> tuple[_Place, Any]:
    try:
        tags = {tag["key"]: tag["value"] for tag in source.get("tags") or ()}
        name = tags.get("otel.scope.name") or tags.get("otel.library.name") or ""
        version = tags.get("otel.scope.version") or tags.get("otel.library.version") or ""
        return (str(source.get("processID")), str(name), str(version)), _fields(source, tags)
    except _MALFORMED:
        return ("", "", ""), _UNREADABLE


def _fields(source: Any, tags: dict[str, Any]) -> dict[str, Any]:
    failed = tags.get("error") is True
    start = _nanoseconds(source["startTime"])
    trace_id = _id(source["traceID"], 32)
    references = source.get("references") or ()
    parent = _parent(references, trace_id)
    return {
        "traceId": trace_id,
        "spanId": _id(source["spanID"], 16),
        "parentSpanId": _id((parent["spanID"] if parent else source.get("parentSpanID")) or "", 16),
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
            "code": _STATUS_CODES["ERROR"]
            if failed
            else _STATUS_CODES.get(tags.get("otel.status_code", "")),
            "message": tags.get("otel.status_description"),
        },
    }


def _parent(references: Any, trace_id: str) -> Any:
    """The first CHILD_OF of the same trace, or else the first FOLLOWS_FROM: a parent that is also
    linked to is exported as that.
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
    """Jaeger leaves out leading zeros."""
    return identifier.rjust(digits, "0")


def _nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)
