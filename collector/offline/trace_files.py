"""Reads trace files: a path comes in, the spans and log records of its OTLP export requests go out.

Formats, told by content: OTLP protobuf; a sequence of it with 4-byte big-endian lengths in between,
and JSON lines, which the OpenTelemetry Collector's file exporter writes; OTLP JSON, and the JSON of
Jaeger and Tempo, one document, a list or one a line. Each may be compressed with gzip. The files of
a directory are read as one stream. A file that is still being written, or was cut off, is read up
to its last complete record.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from pathgauge.collector.core import otlp
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.offline import jaeger, tempo

_LIMITS = otlp.DecodeLimits(max_records=10_000_000)
"""What an operator hands over in files is bounded by memory alone."""

_EXPECTED = "expected OTLP protobuf or JSON, or the JSON of Jaeger or Tempo"
_GROUP_TAG = b"\n"
"""What every request but an empty one begins with: the tag of its only field."""
_SCOPE_GROUP_TAG = b"\x12"
"""What every request with records holds, and JSON does not: it has no control characters."""
_DELIMITED = re.compile(rb"(\0{4})*[\0-\x08].{3}\n", re.DOTALL)
"""How lengths and messages begin: a length below 150 MB, which is no text, in front of the first
tag.
"""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAX_KEYS_NAMED = 5


class UnreadableFileError(ValueError):
    """A file that holds no traces; the message names the file, what was found and what was
    expected.
    """


@dataclass(slots=True)
class TraceFiles:
    """What the files of one path hold."""

    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was passed over and why, a line each."""


def read_path(path: Path) -> TraceFiles:
    """Read a file, or all trace files below a directory in the order of their names.

    Raises `UnreadableFileError` for a file, and for a directory without any trace file; `OSError`
    as the file system gives it.
    """
    found = TraceFiles()
    if not path.is_dir():
        _read_file(path, found)
        return found
    files = sorted(file for file in path.rglob("*") if file.is_file())
    read = 0
    for file in files:
        try:
            _read_file(file, found)
            read += 1
        except UnreadableFileError as error:
            found.notes.append(f"passed over {error}")
    if not read:
        raise UnreadableFileError(
            f"{path}: found {len(files)} files and no traces among them, {_EXPECTED}"
        )
    return found


def _read_file(path: Path, found: TraceFiles) -> None:
    data = path.read_bytes()
    try:
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFileError(
            f"{path}: found broken gzip data ({error}), {_EXPECTED}"
        ) from error
    if (
        data.startswith(_ZSTD) or data[4:8] == _ZSTD
    ):  # the file exporter compresses message by message
        raise UnreadableFileError(f"{path}: found zstd compression, expected gzip or none")
    data = data.removeprefix(_BYTE_ORDER_MARK)
    spans, logs, rejected = len(found.spans), len(found.logs), 0
    try:
        for request in _json_requests(data) if _is_json(data) else _binary_requests(data):
            found.spans.extend(request.spans)
            found.logs.extend(request.logs)
            rejected += request.rejected
            if request.note is not None:
                found.notes.append(f"{path}: {request.note}")
    except otlp.UndecodableError as error:
        del found.spans[spans:], found.logs[logs:]
        raise UnreadableFileError(f"{path}: {error}") from error
    if rejected:
        found.notes.append(
            f"{path}: rejected {rejected} spans or log records that are not valid OTLP"
        )


@dataclass(frozen=True, slots=True)
class _Request:
    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    rejected: int = 0
    note: str | None = None


def _is_json(data: bytes) -> bool:
    """Whether a bracket comes first; in protobuf it can be a length, behind the tag that looks like
    a line feed.
    """
    return re.match(rb"\s*[\[{]", data) is not None and _SCOPE_GROUP_TAG not in data


def _binary_requests(data: bytes) -> Iterator[_Request]:
    """Every message of a length-delimited stream, or the one message that the data is."""
    if not data:
        raise otlp.UndecodableError(f"found an empty file, {_EXPECTED}")
    messages, rest = _delimited(data)
    if rest and not _DELIMITED.match(data):
        messages, rest = [data], b""
    for message in messages:
        if message and not message.startswith(_GROUP_TAG):
            raise otlp.UndecodableError(f"found neither JSON nor OTLP protobuf, {_EXPECTED}")
        yield _binary_request(message)
    if rest:
        incomplete = f"the last record is incomplete ({len(rest)} bytes)"
        if not messages:
            raise otlp.UndecodableError(f"{incomplete}, expected at least one before it")
        yield _Request(note=incomplete)


def _delimited(data: bytes) -> tuple[list[bytes], bytes]:
    """The messages behind their lengths, and what is left when the last one is incomplete or there
    are no lengths.
    """
    messages: list[bytes] = []
    position = 0
    while position < len(data):
        start = position + 4
        end = start + int.from_bytes(data[position:start])
        if end > len(data) or start > len(data):
            break
        messages.append(data[start:end])
        position = end
    return messages, data[position:]


def _binary_request(message: bytes) -> _Request:
    """Traces, logs and metrics share their envelope; log records and metrics read as spans have no
    valid ids.
    """
    try:
        traces = otlp.decode_traces(message, limits=_LIMITS)
    except otlp.UndecodableError as error:
        raise otlp.UndecodableError(
            f"found neither JSON nor OTLP protobuf ({error}), {_EXPECTED}"
        ) from error
    if not traces.rejected:
        return _Request(traces.records)
    if _is_metrics(message):
        return _Request()
    logs = otlp.decode_logs(message, limits=_LIMITS)
    rejected, rejected_logs = sum(traces.rejected.values()), sum(logs.rejected.values())
    if not traces.records and rejected_logs < rejected:
        return _Request((), logs.records, rejected_logs)
    return _Request(traces.records, (), rejected)


def _is_metrics(message: bytes) -> bool:
    try:
        request = ExportMetricsServiceRequest.FromString(message)
    except DecodeError:
        return False
    metrics = (
        metric
        for group in request.resource_metrics
        for scope in group.scope_metrics
        for metric in scope.metrics
    )
    return all(metric.name and metric.WhichOneof("data") for metric in metrics)


def _json_requests(data: bytes) -> Iterator[_Request]:
    """Every object of the file: one, a list, or one a line."""
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError:
        yield from _json_lines(data)
        return
    for item in whole if isinstance(whole, list) else [whole]:
        yield _json_request(item)


def _json_lines(data: bytes) -> Iterator[_Request]:
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    for index, (number, line) in enumerate(lines, 1):
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if 1 < index == len(lines) and (data.endswith(line) or error.pos == len(error.doc)):
                yield _Request(
                    note=f"line {number}: the last record is incomplete ({len(line)} bytes)"
                )
                return
            raise otlp.UndecodableError(
                f"line {number}: found no JSON ({error.msg}), expected a JSON object a line"
            ) from error
        yield _json_request(document)


def _json_request(document: Any) -> _Request:
    request = jaeger.export_request(document) or tempo.export_request(document) or document
    keys = (
        request.keys() & {"resourceSpans", "resourceLogs", "resourceMetrics", "resourceProfiles"}
        if isinstance(request, dict)
        else set()
    )
    if not keys:  # metrics and profiles are OTLP too, and may share a file with traces
        raise otlp.UndecodableError(f"found {_shape(document)}, {_EXPECTED}")
    body = _dumped(request)
    spans: otlp.Decoded[Span] = (
        otlp.decode_traces_json(body, limits=_LIMITS)
        if "resourceSpans" in keys
        else otlp.Decoded(())
    )
    logs: otlp.Decoded[LogRecord] = (
        otlp.decode_logs_json(body, limits=_LIMITS) if "resourceLogs" in keys else otlp.Decoded(())
    )
    return _Request(
        spans.records, logs.records, sum(spans.rejected.values()) + sum(logs.rejected.values())
    )


def _shape(document: Any) -> str:
    if not isinstance(document, dict):
        return f"JSON of type {type(document).__name__}"
    keys = ", ".join(repr(key) for key in islice(document, _MAX_KEYS_NAMED))
    return (
        "a JSON object with"
        f" {keys or 'no keys'}{' and more' if len(document) > _MAX_KEYS_NAMED else ''}"
    )


def _dumped(request: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(request)
    except TypeError as error:
        raise otlp.UndecodableError(
            f"found JSON that is nested too deep ({error}), {_EXPECTED}"
        ) from error
