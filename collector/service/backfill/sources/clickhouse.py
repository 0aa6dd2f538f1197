"""Reads the tables `otel_traces` and `otel_logs`, which the OpenTelemetry Collector's ClickHouse
exporter writes, over the HTTP interface of ClickHouse.

Some instrumentations put the messages of a model into log records, so these belong to the trace. A
collector that exports no logs makes no table for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from pathgauge.collector.core.otlp import UndecodableError
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.offline.export_requests import ExportRequest, json_request
from pathgauge.collector.service.backfill.history import (
    Found,
    SourceError,
    TooManyError,
    whole_traces,
)
from pathgauge.collector.service.backfill.sources.clickhouse_rows import (
    Row,
    resource_logs,
    resource_spans,
)
from pathgauge.collector.service.backfill.sources.http import HttpClient, NotFoundError
from pathgauge.scorers.types import Json

_SECOND = 1_000_000_000
_MARGIN = 86_400 * _SECOND
"""How much longer than its slice a trace is looked for."""

_IDS = (
    "SELECT DISTINCT TraceId FROM {table:Identifier}"
    " WHERE Timestamp >= fromUnixTimestamp64Nano({since:Int64})"
    " AND Timestamp < fromUnixTimestamp64Nano({until:Int64})"
    " LIMIT {limit:UInt64} FORMAT JSONEachRow"
)
_OF_TRACES = (
    " FROM {table:Identifier} WHERE TraceId IN ({ids:Array(String)})"
    " AND Timestamp >= fromUnixTimestamp64Nano({since:Int64})"
    " AND Timestamp < fromUnixTimestamp64Nano({until:Int64})"
    " ORDER BY TraceId, Timestamp, SpanId FORMAT JSONEachRow"
)
_SPANS = (
    "SELECT toString(toUnixTimestamp64Nano(Timestamp)) AS start, toString(Duration) AS duration,"
    " TraceId, SpanId, ParentSpanId, TraceState, SpanName, toString(SpanKind) AS kind,"
    " ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes,"
    " toString(StatusCode) AS status, StatusMessage,"
    " arrayMap(one -> toString(toUnixTimestamp64Nano(one)), `Events.Timestamp`) AS event_times,"
    " `Events.Name` AS event_names, `Events.Attributes` AS event_attributes,"
    " `Links.TraceId` AS link_traces, `Links.SpanId` AS link_spans"
) + _OF_TRACES
# Which columns there are depends on the version of the exporter.
_LOGS = "SELECT *, toString(toUnixTimestamp64Nano(Timestamp)) AS at" + _OF_TRACES
_MAX_IDS = 200
"""In one query: its parameters are in the address."""
_NO_TABLE = "UNKNOWN_TABLE"
"""In the answer of ClickHouse if a table does not exist."""


class Tables(NamedTuple):
    """The names of the tables."""

    spans: str = "otel_traces"
    logs: str = "otel_logs"


class ClickHouseSource:
    """A table of spans and one of log records, which may be missing."""

    def __init__(self, client: HttpClient, database: str, tables: Tables) -> None:
        self.name = f"{client.url} {database}.{tables.spans}"
        self._client = client
        self._database = database
        self._tables = tables
        self._notes: tuple[str, ...] = ()
        """Why log records are not read."""

    def read(self, since: int, until: int, limit: int) -> Found:
        """The traces that began in this time."""
        period: dict[str, str | int] = {"param_since": since, "param_until": until}
        rows = self._rows(self._tables.spans, _IDS, {**period, "param_limit": limit + 1})
        ids = sorted({row["TraceId"] for row in rows} - {""})
        if len(ids) > limit:
            raise TooManyError
        spans: list[Span] = []
        logs: list[LogRecord] = []
        rejected = 0
        longer: dict[str, str | int] = {
            "param_since": since - _MARGIN,
            "param_until": until + _MARGIN,
        }
        for first in range(0, len(ids), _MAX_IDS):
            names = ",".join(f"'{_hexadecimal(one)}'" for one in ids[first : first + _MAX_IDS])
            asked = {**longer, "param_ids": f"[{names}]"}
            found = self._rows(self._tables.spans, _SPANS, asked)
            of_spans = self._decoded("resourceSpans", found, resource_spans)
            of_logs = self._decoded("resourceLogs", self._log_rows(asked), resource_logs)
            spans += of_spans.spans
            logs += of_logs.logs
            rejected += of_spans.rejected + of_logs.rejected
        return Found(whole_traces(spans, logs, since, until), rejected, self._notes)

    def begin(self, since: int, until: int) -> int:
        """Not known."""
        return since

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _log_rows(self, asked: Mapping[str, str | int]) -> list[dict[str, Any]]:
        if self._notes:
            return []
        try:
            return self._rows(self._tables.logs, _LOGS, asked)
        except NotFoundError as error:
            if _NO_TABLE not in str(error):
                raise
            self._notes = (f"there is no table {self._tables.logs}: no log records were read",)
            return []

    def _decoded(
        self, groups: str, rows: Iterable[Row], group_of: Callable[[Row], dict[str, Json]]
    ) -> ExportRequest:
        try:
            return json_request({groups: [group_of(row) for row in rows]})
        except (UndecodableError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise SourceError(f"{self.name}: found other columns ({error!r})") from error

    def _rows(
        self, table: str, query: str, parameters: Mapping[str, str | int]
    ) -> list[dict[str, Any]]:
        given = {"database": self._database, "param_table": table, **parameters, "query": query}
        answer = self._client.request("GET", "/", given)
        try:
            return [orjson.loads(line) for line in answer.splitlines() if line]
        except orjson.JSONDecodeError as error:
            # Also how an error looks that happens after the first rows were sent.
            text = f"found no JSON ({error.msg}), expected the HTTP interface of ClickHouse"
            raise SourceError(f"{self.name}: {text}") from error


def _hexadecimal(trace_id: str) -> str:
    """The id, which becomes part of a parameter."""
    return "".join(digit for digit in trace_id if digit.isalnum())
