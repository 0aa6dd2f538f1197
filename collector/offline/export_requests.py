"""Splits the content of a trace file into OTLP export requests, and decodes them.

Formats, detected from the content: OTLP protobuf; a sequence of protobuf messages with 4-byte
big-endian lengths, and JSON lines, which the OpenTelemetry Collector's file exporter writes; OTLP
JSON, and the JSON of Jaeger and Tempo, as one document, a list, or one per line. A file that is
still being written, or was cut off, is read up to its last complete record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from pathgauge.collector.core import otlp
from pathgauge.collector.core.otlp.json_types import json_type
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.offline import jaeger, tempo
from pathgauge.scorers.matching.wording import counted

EXPECTED = (
    "expected OTLP protobuf or JSON, the JSON of Jaeger or Tempo, or a table with the column"
    " predicted_trajectory"
)
"""The end of error messages."""

_LIMITS = otlp.DecodeLimits(max_records=10_000_000)
"""Files come from the operator, so practically only memory limits them."""

_GROUP_TAG = b"\n"
"""The first byte of every request that is not empty: the tag of its only field."""
_SCOPE_GROUP_TAG = b"\x12"
"""In every request with records, and never in JSON, which has no control characters."""
_DELIMITED = re.compile(rb"(\0{4})*[\0-\x08].{3}\n", re.DOTALL)
"""The start of length-delimited messages: a length below 150 MB, which is no text, then a tag."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTLP_KEYS = frozenset({"resourceSpans", "resourceLogs", "resourceMetrics", "resourceProfiles"})
"""Metrics and profiles are OTLP too, and may share a file with traces."""
_MAX_KEYS_NAMED = 5


class CutOffError(otlp.UndecodableError):
    """The first record of the content has no end."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The content of one export request."""

    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    rejected: int = 0
    """Invalid records."""
    incomplete: str | None = None
    """Which record has no end: a file that is still being written, or was cut off."""


def export_requests(data: bytes) -> Iterator[ExportRequest]:
    """The requests in the uncompressed content of a file. Raises `otlp.UndecodableError` when the
    content is something else.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if _is_json(data):
        return _json_requests(data)
    return _binary_requests(data)


def holds_traces(data: bytes) -> bool:
    """Whether content that cannot be read was OTLP JSON, such as a document without its end."""
    return _is_json(data) and any(f'"{key}"'.encode() in data for key in _OTLP_KEYS)


def _is_json(data: bytes) -> bool:
    """Whether the data begins with a bracket. In protobuf a bracket can be a length, after a tag
    that looks like a line feed.
    """
    return re.match(rb"\s*[\[{]", data) is not None and _SCOPE_GROUP_TAG not in data


def _binary_requests(data: bytes) -> Iterator[ExportRequest]:
    """The messages of a length-delimited stream, or the data as one message."""
    if not data:
        raise otlp.UndecodableError(f"found an empty file, {EXPECTED}")
    messages, rest = _delimited(data)
    if rest and not _DELIMITED.match(data):
        messages, rest = [data], b""
    for message in messages:
        if message and not message.startswith(_GROUP_TAG):
            raise otlp.UndecodableError(f"found neither JSON nor OTLP protobuf, {EXPECTED}")
        yield _binary_request(message)
    if rest:
        incomplete = f"the last record is incomplete ({counted(len(rest), 'byte')})"
        if not messages:
            raise CutOffError(f"{incomplete}, expected at least one before it")
        yield ExportRequest(incomplete=incomplete)


def _delimited(data: bytes) -> tuple[list[bytes], bytes]:
    """The length-delimited messages, and the rest when the last message is incomplete or the data
    has no lengths.
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


def _binary_request(message: bytes) -> ExportRequest:
    """Decode a request of traces, logs or metrics. All three have the same envelope, but log
    records and metrics that are decoded as spans have no valid ids.
    """
    try:
        traces = otlp.decode_traces(message, limits=_LIMITS)
    except otlp.UndecodableError as error:
        text = f"found neither JSON nor OTLP protobuf ({error}), {EXPECTED}"
        raise otlp.UndecodableError(text) from error
    if not traces.rejected:
        return ExportRequest(traces.records)
    if _is_metrics(message):
        return ExportRequest()
    logs = otlp.decode_logs(message, limits=_LIMITS)
    rejected_spans, rejected_logs = _rejected(traces), _rejected(logs)
    if not traces.records and rejected_logs < rejected_spans:
        return ExportRequest((), logs.records, rejected_logs)
    return ExportRequest(traces.records, (), rejected_spans)


def _rejected(decoded: otlp.Decoded[Any]) -> int:
    return sum(decoded.rejected.values())


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


def _json_requests(data: bytes) -> Iterator[ExportRequest]:
    """The objects of the file: one, a list, or one per line."""
    try:
        whole = otlp.parsed_json(data)
    except orjson.JSONDecodeError:
        yield from _json_lines(data)
        return
    if not isinstance(whole, list):
        whole = [whole]
    for item in whole:
        yield json_request(item)


def _json_lines(data: bytes) -> Iterator[ExportRequest]:
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    for index, (number, line) in enumerate(lines, 1):
        try:
            document = otlp.parsed_json(line)
        except orjson.JSONDecodeError as error:
            is_last = 1 < index == len(lines)
            if is_last and (data.endswith(line) or error.pos == len(error.doc)):
                text = (
                    f"line {number}: the last record is incomplete ({counted(len(line), 'byte')})"
                )
                yield ExportRequest(incomplete=text)
                return
            text = f"line {number}: found no JSON ({error.msg}), expected one JSON object per line"
            raise otlp.UndecodableError(text) from error
        yield json_request(document)


def json_request(document: Any) -> ExportRequest:
    """The request in a JSON document: OTLP, Jaeger or Tempo. Raises `otlp.UndecodableError`."""
    request = jaeger.export_request(document) or tempo.export_request(document) or document
    if not isinstance(request, dict) or _OTLP_KEYS.isdisjoint(request):
        raise otlp.UndecodableError(f"found {_shape(document)}, {EXPECTED}")
    body = _dumped(request)
    spans: otlp.Decoded[Span] = otlp.Decoded(())
    logs: otlp.Decoded[LogRecord] = otlp.Decoded(())
    if "resourceSpans" in request:
        spans = otlp.decode_traces_json(body, limits=_LIMITS)
    if "resourceLogs" in request:
        logs = otlp.decode_logs_json(body, limits=_LIMITS)
    return ExportRequest(spans.records, logs.records, _rejected(spans) + _rejected(logs))


def _shape(document: Any) -> str:
    if not isinstance(document, dict):
        return f"{json_type(document)} in JSON"
    keys = ", ".join(repr(key) for key in islice(document, _MAX_KEYS_NAMED))
    if len(document) > _MAX_KEYS_NAMED:
        keys = f"{keys} and more"
    return f"a JSON object with {keys or 'no keys'}"


def _dumped(request: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(request)
    except TypeError as error:
        text = f"found JSON that is nested too deep ({error}), {EXPECTED}"
        raise otlp.UndecodableError(text) from error
