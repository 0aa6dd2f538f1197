"""Servers on loopback that keep traces and speak the documented HTTP APIs of Jaeger's query
service, Grafana Tempo and ClickHouse, as far as `pathgauge backfill` asks them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pathgauge.collector.core.otlp.spans import LogRecord, decode_value, encode_attributes
from support.exports import jaeger_traces, tempo_json
from support.past import Archive

Query = Mapping[str, str]
Answer = tuple[int, bytes]
Respond = Callable[[str, Query], Answer]
KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")


class Server:
    """What was asked, and what must be in each request."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[tuple[str, Query]] = []
        self.headers: list[Mapping[str, str]] = []
        self.failures: list[int] = []
        """Statuses with which the next requests are refused."""


@contextmanager
def trace_server(respond: Respond, port: int = 0) -> Iterator[Server]:
    """A server whose answers come from `respond`, which gets path and query. Port 0: a free one."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that was killed ends its connections."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and body in one packet, or each answer waits for an acknowledgment

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            server.asked.append((parts.path, query))
            server.headers.append({key.lower(): value for key, value in self.headers.items()})
            status, body = 0, b""
            if server.failures:
                status, body = server.failures.pop(0), b"not now"
            else:
                status, body = respond(parts.path, query)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    listening = Quiet(("127.0.0.1", port), Handler)
    server = Server(listening.server_port)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def jaeger(archive: Archive) -> Respond:
    """Jaeger's query service: a search per service, newest first, cut at its limit."""

    def respond(path: str, query: Query) -> Answer:
        if path == "/api/services":
            names = sorted({one.service for one in archive.traces})
            return 200, _json({"data": names, "total": len(names), "errors": None})
        if path != "/api/traces" or "service" not in query:
            return 400, _json({"errors": [{"code": 400, "msg": "parameter 'service' is required"}]})
        found = archive.between(int(query["start"]) * 1000, int(query["end"]) * 1000)
        of_service = [one for one in found if one.service == query["service"]]
        newest = of_service[::-1][: int(query.get("limit", "100"))]
        data = jaeger_traces(*(one.body for one in newest))
        return 200, _json({"data": data or None, "total": 0, "errors": None})

    return respond


def tempo(archive: Archive) -> Respond:
    """Tempo: a search by whole seconds that answers with ids, without leading zeros, and traces."""
    by_id = {one.trace_id: one for one in archive.traces}

    def respond(path: str, query: Query) -> Answer:
        if path == "/api/search":
            second = 1_000_000_000
            found = archive.between(int(query["start"]) * second, int(query["end"]) * second)
            some = found[: int(query.get("limit", "20"))]
            traces = [
                {
                    "traceID": one.trace_id.lstrip("0"),
                    "rootServiceName": one.service,
                    "startTimeUnixNano": str(one.start),
                    "durationMs": 400,
                }
                for one in some
            ]
            return 200, _json({"traces": traces, "metrics": {"inspectedTraces": len(some)}})
        wanted = by_id.get(path.removeprefix("/api/traces/"))
        if wanted is None:
            return 404, b"trace not found"
        return 200, tempo_json(wanted.body)

    return respond


def clickhouse(archive: Archive, logs: Iterable[LogRecord] | None = None) -> Respond:
    """ClickHouse with `otel_traces`, and `otel_logs` if there are `logs`: it knows the queries by
    their first words, and fills in their parameters.
    """
    by_id = {one.trace_id: one for one in archive.traces}
    tables = {"otel_traces"} if logs is None else {"otel_traces", "otel_logs"}
    of_logs = [_log_row(one) for one in logs or ()]

    def respond(path: str, query: Query) -> Answer:
        since, until = int(query["param_since"]), int(query["param_until"])
        if path != "/" or query["database"] != "otel" or query["param_table"] not in tables:
            name = f"{query['database']}.{query['param_table']}"
            return (
                404,
                f"Code: 60. DB::Exception: Table {name} does not exist. (UNKNOWN_TABLE)".encode(),
            )
        if query["query"].startswith("SELECT DISTINCT TraceId"):
            found = archive.between(since, until - 1)[: int(query["param_limit"])]
            return 200, _lines({"TraceId": one.trace_id} for one in found)
        ids = json.loads(query["param_ids"].replace("'", '"'))
        if query["param_table"] == "otel_logs":
            return 200, _lines(row for row in of_logs if row["TraceId"] in ids)
        return 200, _lines(row for one in ids for row in _rows(by_id[one].body))

    return respond


def _log_row(log: LogRecord) -> dict[str, Any]:
    """All columns of the table of an exporter that knows event names."""
    attributes = _texts(log.proto.attributes)
    return {
        "at": str(log.time_ns),
        "Timestamp": "2025-10-09 09:00:00.000000000",
        "TraceId": log.trace_id,
        "SpanId": log.span_id or "",
        "TraceFlags": 1,
        "SeverityText": log.proto.severity_text,
        "SeverityNumber": log.proto.severity_number,
        "ServiceName": log.resource.attributes.get("service.name", ""),
        "Body": _text(log.body) if log.body is not None else "",
        "ResourceAttributes": _texts(encode_attributes(log.resource.attributes)),
        "ScopeName": log.scope.name,
        "ScopeVersion": log.scope.version,
        "LogAttributes": attributes,
        "EventName": log.event_name,
    }


def _rows(body: bytes) -> Iterator[dict[str, Any]]:
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                yield {
                    "start": str(span.start_time_unix_nano),
                    "duration": str(span.end_time_unix_nano - span.start_time_unix_nano),
                    "TraceId": span.trace_id.hex(),
                    "SpanId": span.span_id.hex(),
                    "ParentSpanId": span.parent_span_id.hex(),
                    "TraceState": span.trace_state,
                    "SpanName": span.name,
                    "kind": KINDS[span.kind],
                    "ResourceAttributes": _texts(group.resource.attributes),
                    "ScopeName": scope.scope.name,
                    "ScopeVersion": scope.scope.version,
                    "SpanAttributes": _texts(span.attributes),
                    "status": ("Unset", "Ok", "Error")[span.status.code],
                    "StatusMessage": span.status.message,
                    **_nested(span),
                }


def _nested(span: Span) -> dict[str, Any]:
    return {
        "event_times": [str(event.time_unix_nano) for event in span.events],
        "event_names": [event.name for event in span.events],
        "event_attributes": [_texts(event.attributes) for event in span.events],
        "link_traces": [link.trace_id.hex() for link in span.links],
        "link_spans": [link.span_id.hex() for link in span.links],
    }


def _texts(attributes: Any) -> dict[str, str]:
    """Every value as text, as the exporter writes it."""
    return {pair.key: _text(decode_value(pair.value)) for pair in attributes}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _json(document: Any) -> bytes:
    return json.dumps(document).encode()


def _lines(rows: Any) -> bytes:
    return b"".join(_json(row) + b"\n" for row in rows)
