"""Reads the table `otel_traces`, which the OpenTelemetry Collector's ClickHouse exporter writes,
over the HTTP interface of ClickHouse.

The exporter stores every attribute as text. Counts and flags are read from text, too; a number that
a criterion compares with another one, inside a list or an object, was JSON before and is so again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from pathgauge.collector.core.otlp import UndecodableError
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.offline.export_requests import json_request
from pathgauge.collector.service.backfill.history import (
    Found,
    SourceError,
    TooManyError,
    whole_traces,
)
from pathgauge.collector.service.backfill.sources.http import HttpClient
from pathgauge.scorers.types import Json

TABLE = "otel_traces"
_SECOND = 1_000_000_000
_MARGIN = 86_400 * _SECOND
"""How much longer than its slice a trace is looked for."""

_IDS = (
    "SELECT DISTINCT TraceId FROM {table:Identifier}"
    " WHERE Timestamp >= fromUnixTimestamp64Nano({since:Int64})"
    " AND Timestamp < fromUnixTimestamp64Nano({until:Int64})"
    " LIMIT {limit:UInt64} FORMAT JSONEachRow"
)
_SPANS = (
    "SELECT toString(toUnixTimestamp64Nano(Timestamp)) AS start, toString(Duration) AS duration,"
    " TraceId, SpanId, ParentSpanId, TraceState, SpanName, toString(SpanKind) AS kind,"
    " ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes,"
    " toString(StatusCode) AS status, StatusMessage,"
    " arrayMap(one -> toString(toUnixTimestamp64Nano(one)), `Events.Timestamp`) AS event_times,"
    " `Events.Name` AS event_names, `Events.Attributes` AS event_attributes,"
    " `Links.TraceId` AS link_traces, `Links.SpanId` AS link_spans"
    " FROM {table:Identifier} WHERE TraceId IN ({ids:Array(String)})"
    " AND Timestamp >= fromUnixTimestamp64Nano({since:Int64})"
    " AND Timestamp < fromUnixTimestamp64Nano({until:Int64})"
    " ORDER BY TraceId, Timestamp, SpanId FORMAT JSONEachRow"
)
_MAX_IDS = 200
"""In one query: its parameters are in the address."""

_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS_CODES = {"ok": 1, "error": 2}


class ClickHouseSource:
    """A table of spans."""

    def __init__(self, client: HttpClient, database: str, table: str = TABLE) -> None:
        self.name = f"{client.url} {database}.{table}"
        self._client = client
        self._common = {"database": database, "param_table": table}

    def read(self, since: int, until: int, limit: int) -> Found:
        """The traces that began in this time."""
        period: dict[str, str | int] = {"param_since": since, "param_until": until}
        rows = self._rows(_IDS, {**period, "param_limit": limit + 1})
        ids = sorted({row["TraceId"] for row in rows} - {""})
        if len(ids) > limit:
            raise TooManyError
        spans: list[Span] = []
        rejected = 0
        longer: dict[str, str | int] = {
            "param_since": since - _MARGIN,
            "param_until": until + _MARGIN,
        }
        for first in range(0, len(ids), _MAX_IDS):
            names = ",".join(f"'{_hexadecimal(one)}'" for one in ids[first : first + _MAX_IDS])
            found = self._rows(_SPANS, {**longer, "param_ids": f"[{names}]"})
            try:
                request = json_request({"resourceSpans": [_resource_group(row) for row in found]})
            except (UndecodableError, LookupError, TypeError, AttributeError) as error:
                raise SourceError(f"{self.name}: found other columns ({error!r})") from error
            spans += request.spans
            rejected += request.rejected
        return Found(whole_traces(spans, (), since, until), rejected)

    def begin(self, since: int, until: int) -> int:
        """Not known."""
        return since

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _rows(self, query: str, parameters: Mapping[str, str | int]) -> list[dict[str, Any]]:
        given = {**self._common, **parameters, "query": query}
        answer = self._client.request("GET", "/", given)
        try:
            return [orjson.loads(line) for line in (answer or b"").splitlines() if line]
        except orjson.JSONDecodeError as error:
            # Also how an error looks that happens after the first rows were sent.
            text = f"found no JSON ({error.msg}), expected the HTTP interface of ClickHouse"
            raise SourceError(f"{self.name}: {text}") from error


def _hexadecimal(trace_id: str) -> str:
    """The id, which becomes part of a parameter."""
    return "".join(digit for digit in trace_id if digit.isalnum())


def _resource_group(row: Mapping[str, Any]) -> dict[str, Json]:
    scope = {"name": row["ScopeName"], "version": row["ScopeVersion"]}
    return {
        "resource": {"attributes": _attributes(row["ResourceAttributes"])},
        "scopeSpans": [{"scope": scope, "spans": [_span(row)]}],
    }


def _span(row: Mapping[str, Any]) -> dict[str, Json]:
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


def _events(row: Mapping[str, Any]) -> Iterator[dict[str, Json]]:
    columns = row["event_times"], row["event_names"], row["event_attributes"]
    for at, name, attributes in zip(*columns, strict=True):
        yield {"timeUnixNano": at, "name": name, "attributes": _attributes(attributes)}


def _attributes(found: Mapping[str, str]) -> list[Json]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in found.items()]


def _word(text: str) -> str:
    """`Server`, or as older exporters wrote it, `SPAN_KIND_SERVER`."""
    return text.lower().removeprefix("span_kind_").removeprefix("status_code_")
