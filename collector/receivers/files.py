"""Reads trace files: a path comes in, the spans and log records of its OTLP export requests go out.

Formats, told by content: OTLP protobuf, a sequence of it with 4-byte big-endian lengths in between, OTLP JSON, and JSON lines (what the
OpenTelemetry Collector's file exporter writes); each may be compressed with gzip. The files of a directory are read as one stream.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from collector import otlp
from collector.spans import LogRecord, Span

_LIMITS = otlp.Limits(max_records=10_000_000)
"""What an operator hands over in files is bounded by memory alone."""


_EXPECTED = "expected OTLP protobuf or JSON"
_GROUP_TAG = b"\n"
"""What every request but an empty one begins with: the tag of its only field."""


class UnreadableFileError(ValueError):
    """A file that holds no OTLP data; the message names the file, what was found and what was expected."""


@dataclass(slots=True)
class TraceFiles:
    """What the files of one path hold."""

    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was passed over and why, a line each."""


def read_path(path: Path) -> TraceFiles:
    """Read a file, or all OTLP files below a directory in the order of their names.

    Raises `UnreadableFileError` for a file, and for a directory without any OTLP file; `OSError` as the file system gives it.
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
        raise UnreadableFileError(f"{path}: found {len(files)} files and no OTLP data among them, {_EXPECTED}")
    return found


def _read_file(path: Path, found: TraceFiles) -> None:
    data = path.read_bytes()
    try:
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFileError(f"{path}: found broken gzip data ({error}), {_EXPECTED}") from error
    spans, logs, rejected = len(found.spans), len(found.logs), 0
    try:
        for request in _json_requests(data) if data.lstrip()[:1] in (b"{", b"[") else _binary_requests(data):
            found.spans.extend(request.spans)
            found.logs.extend(request.logs)
            rejected += request.rejected
    except otlp.UndecodableError as error:
        del found.spans[spans:], found.logs[logs:]
        raise UnreadableFileError(f"{path}: {error}") from error
    if rejected:
        found.notes.append(f"{path}: rejected {rejected} spans or log records that are not valid OTLP")


@dataclass(frozen=True, slots=True)
class _Request:
    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    rejected: int = 0


def _binary_requests(data: bytes) -> Iterator[_Request]:
    """Every message of a length-delimited stream, or the one message that the data is."""
    if not data:
        raise otlp.UndecodableError(f"found an empty file, {_EXPECTED}")
    for message in _delimited(data) or [data]:
        if message and not message.startswith(_GROUP_TAG):
            raise otlp.UndecodableError(f"found neither JSON nor OTLP protobuf, {_EXPECTED}")
        yield _binary_request(message)


def _delimited(data: bytes) -> list[bytes] | None:
    """The messages, when lengths and messages use the data up exactly."""
    messages = []
    position = 0
    while position < len(data):
        start = position + 4
        end = start + int.from_bytes(data[position:start])
        if end > len(data) or start > len(data):
            return None
        messages.append(data[start:end])
        position = end
    return messages


def _binary_request(message: bytes) -> _Request:
    """Traces and logs share their envelope; log records read as spans have no valid ids."""
    try:
        traces = otlp.decode_traces(message, limits=_LIMITS)
    except otlp.UndecodableError as error:
        raise otlp.UndecodableError(f"found neither JSON nor OTLP protobuf ({error}), {_EXPECTED}") from error
    if not traces.rejected:
        return _Request(traces.records)
    logs = otlp.decode_logs(message, limits=_LIMITS)
    rejected, rejected_logs = sum(traces.rejected.values()), sum(logs.rejected.values())
    if not traces.records and rejected_logs < rejected:
        return _Request((), logs.records, rejected_logs)
    return _Request(traces.records, (), rejected)


def _json_requests(data: bytes) -> Iterator[_Request]:
    """Every object of the file: one, a list, or one a line."""
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError:
        for number, line in enumerate(data.splitlines(), 1):
            if line.strip():
                yield _json_request(_json_line(line, number))
        return
    for item in whole if isinstance(whole, list) else [whole]:
        yield _json_request(item)


def _json_line(line: bytes, number: int) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise otlp.UndecodableError(f"line {number}: found no JSON ({error}), expected an OTLP JSON object a line") from error


def _json_request(item: Any) -> _Request:
    keys = item.keys() & {"resourceSpans", "resourceLogs", "resourceMetrics", "resourceProfiles"} if isinstance(item, dict) else set()
    if not keys:  # metrics and profiles are OTLP too, and may share a file with traces
        raise otlp.UndecodableError("found JSON without resourceSpans or resourceLogs, expected an OTLP export request")
    body = orjson.dumps(item)
    spans: otlp.Decoded[Span] = otlp.decode_traces_json(body, limits=_LIMITS) if "resourceSpans" in keys else otlp.Decoded(())
    logs: otlp.Decoded[LogRecord] = otlp.decode_logs_json(body, limits=_LIMITS) if "resourceLogs" in keys else otlp.Decoded(())
    return _Request(spans.records, logs.records, sum(spans.rejected.values()) + sum(logs.rejected.values()))
