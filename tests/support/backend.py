"""A backend for log records over OTLP/HTTP on loopback. Decodes with the official messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult

from pathgauge.collector.core.otlp.spans import decode_attributes


class RecordingExporter(LogRecordExporter):
    """An exporter that keeps all records."""

    def __init__(self) -> None:
        self.records: list[ReadableLogRecord] = []

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self.records += batch
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing to do."""

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


class Backend:
    """Listens once it is created. Requests are answered with `status`, which tests may change."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[ExportLogsServiceRequest] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if backend.status == 200 and self.path == "/v1/logs":
                    backend.bodies.append(body)
                    backend.requests.append(ExportLogsServiceRequest.FromString(body))
                    backend.headers.append(
                        {key.lower(): value for key, value in self.headers.items()}
                    )
                self.send_response(backend.status if self.path == "/v1/logs" else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def records(self) -> list[LogRecord]:
        """All log records that were received."""
        return [
            record
            for one in self.requests
            for group in one.resource_logs
            for scope in group.scope_logs
            for record in scope.log_records
        ]

    @property
    def attributes(self) -> list[dict[str, Any]]:
        """The attributes of each log record."""
        return [decode_attributes(record.attributes) for record in self.records]
