"""Turns rows of the OpenTelemetry Collector's ClickHouse exporter back into OTLP JSON.

The exporter stores every attribute as text. Counts and flags are read from text, too; a number that
a criterion compares with another one, inside a list or an object, was JSON before and is so again.
Tables of log records have more columns in each later version of the exporter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pathgauge.scorers.types import Json

Row = Mapping[str, Any]

_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS_CODES = {"ok": 1, "error": 2}


def resource_spans(row: Row) -> dict[str, Json]:
    """The span of a row, in a group of its own."""
    scope = {"name": row["ScopeName"], "version": row["ScopeVersion"]}
    return {
        "resource": {"attributes": _attributes(row["ResourceAttributes"])},
        "scopeSpans": [{"scope": scope, "spans": [_span(row)]}],
    }


def resource_logs(row: Row) -> dict[str, Json]:
    """The log record of a row, in a group of its own."""
    scope = {"name": row.get("ScopeName", ""), "version": row.get("ScopeVersion", "")}
    record: dict[str, Json] = {
        "timeUnixNano": row["at"],
        "traceId": row["TraceId"],
        "spanId": row["SpanId"],
        "severityNumber": int(row["SeverityNumber"]),
        "severityText": row["SeverityText"],
        "eventName": row.get("EventName", ""),
        "body": {"stringValue": row["Body"]},
        "attributes": _attributes(row["LogAttributes"]),
    }
    return {
        "resource": {"attributes": _attributes(row["ResourceAttributes"])},
        "scopeLogs": [{"scope": scope, "logRecords": [record]}],
    }


def _span(row: Row) -> dict[str, Json]:
    start = int(row["start"])
    return {
        "traceId": row["TraceId"],
        "spanId": row["SpanId"],
        "parentSpanId": row["ParentSpanId"],
        "traceState": row["TraceState"],
        "name": row["SpanName"],
        "kind": _KINDS.get(_word(row["kind"]), 0),
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + int(row["duration"])),
        "attributes": _attributes(row["SpanAttributes"]),
        "events": list(_events(row)),
        "links": [
            {"traceId": trace, "spanId": span}
            for trace, span in zip(row["link_traces"], row["link_spans"], strict=True)
        ],
        "status": {
            "code": _STATUS_CODES.get(_word(row["status"]), 0),
            "message": row["StatusMessage"],
        },
    }


def _events(row: Row) -> Iterator[dict[str, Json]]:
    columns = row["event_times"], row["event_names"], row["event_attributes"]
    for at, name, attributes in zip(*columns, strict=True):
        yield {"timeUnixNano": at, "name": name, "attributes": _attributes(attributes)}


def _attributes(found: Mapping[str, str]) -> list[Json]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in found.items()]


def _word(text: str) -> str:
    """`Server`, or as older exporters wrote it, `SPAN_KIND_SERVER`."""
    return text.lower().removeprefix("span_kind_").removeprefix("status_code_")
