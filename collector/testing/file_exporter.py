"""Writes the spans of an OpenTelemetry SDK to a file that `pathgauge score`, `record` and
`read_traces` read: JSON lines of OTLP, as the file exporter of the OpenTelemetry Collector writes.

    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter("traces.jsonl")))

Each batch is appended with one system call, so that nothing is buffered in the process: neither a
crash nor a fork loses or repeats spans, and several processes may append to the same file.
"""

from __future__ import annotations

import gzip
import logging
import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import orjson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from pathgauge.collector.core.otlp.encode_json import message_to_json, span_to_json

_logger = logging.getLogger(__name__)


class FileSpanExporter(SpanExporter):
    """Appends spans to a file. If its name ends with `.gz`, each batch is one member of a gzip
    file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Create the file, and its folder, if they do not exist. Raises `OSError`."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file: int | None = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        self._lock = threading.Lock()
        _renew_lock_after_fork(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append the spans, all or none. Spans that OTLP cannot hold are left out. Every span that
        is not written is logged.
        """
        if not spans:
            return SpanExportResult.SUCCESS
        lines, unwritable = _json_lines(spans)
        if unwritable:
            _logger.error("%s: %d spans have no form in OTLP", self.path, unwritable)
        data = gzip.compress(lines) if self.path.suffix == ".gz" else lines
        with self._lock:
            if self._file is None:
                _logger.warning("%s: %d spans came after the shutdown", self.path, len(spans))
                return SpanExportResult.FAILURE
            try:
                _append(self._file, data)
            except OSError as error:
                _logger.error("%s: %d spans could not be written: %s", self.path, len(spans), error)
                return SpanExportResult.FAILURE
        return SpanExportResult.FAILURE if unwritable else SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have the system write the file to the disk."""
        with self._lock:
            if self._file is not None:
                os.fsync(self._file)
        return True

    def shutdown(self) -> None:
        """Close the file. Later spans are refused."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None


def _renew_lock_after_fork(exporter: FileSpanExporter) -> None:
    """Another thread may hold the lock while the process forks, and does not exist in the child."""
    if not hasattr(os, "register_at_fork"):
        return
    known = weakref.ref(exporter)

    def renew() -> None:
        found = known()
        if found is not None:
            found._lock = threading.Lock()

    os.register_at_fork(after_in_child=renew)


def _append(file: int, data: bytes) -> None:
    """Write all data or nothing: readers refuse a file with a broken record in the middle."""
    start = os.fstat(file).st_size
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        os.ftruncate(file, start)
        raise


def _json_lines(spans: Sequence[ReadableSpan]) -> tuple[bytes, int]:
    """The spans as one line; if one of them cannot be encoded, a line for each of the others, and
    the number of those without a line.
    """
    try:
        return _json_line(spans), 0
    except (ValueError, RecursionError):  # such as a lone surrogate in a name
        if len(spans) == 1:
            return b"", 1
    each = [_json_lines([span]) for span in spans]
    return b"".join(line for line, _ in each), sum(unwritable for _, unwritable in each)


def _json_line(spans: Sequence[ReadableSpan]) -> bytes:
    groups = [
        {
            "resource": message_to_json(group.resource),
            "schemaUrl": group.schema_url,
            "scopeSpans": [
                {
                    "scope": message_to_json(scope.scope),
                    "schemaUrl": scope.schema_url,
                    "spans": list(map(span_to_json, scope.spans)),
                }
                for scope in group.scope_spans
            ],
        }
        for group in encode_spans(spans).resource_spans
    ]
    return orjson.dumps({"resourceSpans": groups}, option=orjson.OPT_APPEND_NEWLINE)
