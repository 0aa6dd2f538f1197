"""Trace files of the OpenTelemetry Collector's file exporter: detection, truncation and errors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from pathgauge.collector.offline.trace_files import UnreadableFileError, read_path
from support.turns import json_of

TRACE_ID, SPAN_ID = b"\x0a" * 16, b"\x0b" * 8
POINT = NumberDataPoint(
    start_time_unix_nano=1_700_000_000 * 10**9, time_unix_nano=1_700_000_001 * 10**9, as_double=2.5
)

GAUGE = Metric(
    name="queue.length", description="waiting", unit="1", gauge=Gauge(data_points=[POINT])
)
SUM = Metric(name="http.requests", sum=Sum(data_points=[POINT], is_monotonic=True))
HISTOGRAM = Metric(
    name="http.duration",
    histogram=Histogram(data_points=[HistogramDataPoint(count=1, sum=2, bucket_counts=[1])]),
)
LOOKS_LIKE_A_SPAN = Metric(
    name="process.cpu.time", description="CPU time", sum=Sum(data_points=[POINT])
)


def traces(*names: str) -> ExportTraceServiceRequest:
    spans = [Span(trace_id=TRACE_ID, span_id=SPAN_ID, name=name) for name in names]
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])]
    )


def logs(*texts: str) -> ExportLogsServiceRequest:
    records = [LogRecord(trace_id=TRACE_ID, time_unix_nano=1, event_name=text) for text in texts]
    return ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=records)])]
    )


def metrics(*found: Metric) -> ExportMetricsServiceRequest:
    return ExportMetricsServiceRequest(
        resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=found)])]
    )


Request = ExportTraceServiceRequest | ExportLogsServiceRequest | ExportMetricsServiceRequest


def as_proto(*requests: Request) -> bytes:
    """`format: proto`."""
    messages = [request.SerializeToString() for request in requests]
    return b"".join(len(message).to_bytes(4) + message for message in messages)


def as_json(*requests: Request) -> bytes:
    """`format: json`."""
    return b"".join(json_of(request) + b"\n" for request in requests)


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("written", [as_proto, as_json])
def test_all_signals_may_share_a_file(
    written: Callable[..., bytes], compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    requests = [
        metrics(GAUGE),
        traces("a", "b"),
        metrics(SUM, HISTOGRAM),
        logs("l"),
        metrics(LOOKS_LIKE_A_SPAN, GAUGE),
        traces("c"),
    ]
    (tmp_path / "out").write_bytes(compress(written(*requests)))
    files = read_path(tmp_path / "out")
    assert [span.name for span in files.spans] == ["a", "b", "c"]
    assert [log.event_name for log in files.logs] == ["l"]
    assert files.notes == []


@pytest.mark.parametrize(
    "malformed",
    [
        pytest.param(Span(name="without ids"), id="no id"),
        pytest.param(Span(trace_id=b"a.metric.by.name"), id="reads as a metric without data"),
        pytest.param(
            Span(trace_id=b"a.metric.by.name", events=[Span.Event(time_unix_nano=1)]),
            id="reads as a metric",
        ),
    ],
)
def test_malformed_spans_are_not_taken_for_metrics(malformed: Span, tmp_path: Path) -> None:
    request = traces("")
    request.resource_spans[0].scope_spans[0].spans.append(malformed)
    (tmp_path / "out").write_bytes(as_proto(request))
    files = read_path(tmp_path / "out")
    assert [span.span_id for span in files.spans] == [SPAN_ID.hex()]
    assert files.notes == [f"{tmp_path}/out: rejected 1 record as invalid OTLP"]


def test_log_records_are_not_taken_for_metrics(tmp_path: Path) -> None:
    request = logs("l")
    record = request.resource_logs[0].scope_logs[0].log_records[0]
    record.trace_id, record.event_name = b"\x10\x01" * 8, ""
    ExportMetricsServiceRequest.FromString(request.SerializeToString())
    (tmp_path / "out").write_bytes(as_proto(request))
    assert [log.trace_id for log in read_path(tmp_path / "out").logs] == ["1001" * 8]


TWO = [traces("a", "b"), traces("c")]
LONG_LINE = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"\xc3\xa9'
"""Cut off behind a character, or, by one byte less, within it."""


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("data", "note"),
    [
        pytest.param(
            as_json(*TWO) + LONG_LINE,
            "line 3: the last record is incomplete (54 bytes)",
            id="a line",
        ),
        pytest.param(
            as_json(*TWO) + LONG_LINE[:-1],
            "line 3: the last record is incomplete (53 bytes)",
            id="a line within a character",
        ),
        pytest.param(
            as_json(*TWO) + LONG_LINE + b"\n \n",
            "line 3: the last record is incomplete (54 bytes)",
            id="a line with its end",
        ),
        pytest.param(
            as_json(*TWO) + b"nul",
            "line 3: the last record is incomplete (3 bytes)",
            id="a line of something else",
        ),
        pytest.param(
            as_proto(*TWO) + b"\0", "the last record is incomplete (1 byte)", id="a length"
        ),
        pytest.param(
            as_proto(*TWO) + b"\0\0\0\7",
            "the last record is incomplete (4 bytes)",
            id="a length without a message",
        ),
        pytest.param(
            as_proto(*TWO, traces("d"))[:-1],
            "the last record is incomplete (40 bytes)",
            id="a message",
        ),
        pytest.param(
            as_proto(traces(), *TWO) + b"\0\0\0\7\n",
            "the last record is incomplete (5 bytes)",
            id="behind a request without spans",
        ),
        pytest.param(
            b"\0" * 4 + as_proto(*TWO) + b"\0\0\0\7\n",
            "the last record is incomplete (5 bytes)",
            id="behind an empty one",
        ),
    ],
)
def test_a_file_that_is_still_being_written_is_read_up_to_its_last_record(
    data: bytes, note: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "out").write_bytes(compress(data))
    files = read_path(tmp_path / "out")
    assert [span.name for span in files.spans] == ["a", "b", "c"]
    assert files.notes == [f"{tmp_path}/out: {note}"]


@given(st.data(), st.sampled_from([as_proto, as_json]))
def test_a_truncated_file_keeps_its_complete_records(
    data: st.DataObject, written: Callable[..., bytes]
) -> None:
    requests = [traces(name) for name in "abc"]
    first, whole = len(written(requests[0])), written(*requests)
    end = data.draw(st.integers(first, len(whole)))
    complete = [
        name
        for number, name in enumerate("abc", 1)
        if len(written(*requests[:number]).rstrip()) <= end
    ]
    with TemporaryDirectory() as folder:
        (Path(folder) / "out").write_bytes(whole[:end])
        files = read_path(Path(folder) / "out")
    assert [span.name for span in files.spans] == complete
    assert bool(files.notes) == (
        whole[:end].rstrip() != written(*requests[: len(complete)]).rstrip()
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(
            as_json(traces("a")) + LONG_LINE + b"\n" + as_json(traces("b")),
            "line 2: found no JSON (unexpected end of data), expected one JSON object per line",
            id="a line between others",
        ),
        pytest.param(
            as_json(traces("a")) + b"{broken}\n",
            "line 2: found no JSON (unexpected character, expected a string key), expected one JSON"
            " object per line",
            id="a last line that was written to its end",
        ),
        pytest.param(
            LONG_LINE,
            "line 1: found no JSON (unexpected end of data), expected one JSON object per line",
            id="the only line",
        ),
        pytest.param(
            as_proto(traces("a"))[:-1],
            "the last record is incomplete (40 bytes), expected at least one before it",
            id="the only message",
        ),
        pytest.param(
            as_proto(traces("a"))[4:-1],
            "found neither JSON nor OTLP protobuf (not a protobuf message), expected OTLP protobuf"
            " or JSON, the JSON of Jaeger or Tempo, or a table with the column"
            " predicted_trajectory",
            id="a message without length",
        ),
    ],
)
def test_other_damage_is_an_error_with_its_position(
    data: bytes, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "out").write_bytes(data)
    with pytest.raises(UnreadableFileError) as caught:
        read_path(tmp_path / "out")
    assert str(caught.value) == f"{tmp_path}/out: {problem}"


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    "data", [as_json(*TWO), json_of(traces("a", "b", "c"))], ids=["lines", "document"]
)
def test_a_byte_order_mark_is_ignored(
    data: bytes, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "out").write_bytes(compress(b"\xef\xbb\xbf" + data))
    files = read_path(tmp_path / "out")
    assert ([span.name for span in files.spans], files.notes) == (["a", "b", "c"], [])


@pytest.mark.parametrize("cut", [rb"\ud83d", rb"\uDE00"])
@pytest.mark.parametrize(
    "data", [as_json(*TWO), json_of(traces("a", "b", "c"))], ids=["lines", "document"]
)
def test_half_an_emoji_is_replaced_as_in_requests(data: bytes, cut: bytes, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(data.replace(b'"b"', b'"' + cut + b'"'))
    files = read_path(tmp_path / "out")
    assert ([span.name for span in files.spans], files.notes) == (["a", "\ufffd", "c"], [])


ZSTD = bytes.fromhex("28b52ffd2000010000")
"""An empty frame."""


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(ZSTD, id="the file as a whole"),
        pytest.param(len(ZSTD).to_bytes(4) + ZSTD, id="message by message"),
        pytest.param(gzip.compress(ZSTD), id="within gzip"),
    ],
)
def test_zstd_is_an_error_that_names_it(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(data)
    with pytest.raises(UnreadableFileError) as caught:
        read_path(tmp_path / "out")
    assert str(caught.value) == f"{tmp_path}/out: found zstd compression, expected gzip or none"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_text_of_powershell_is_an_error_that_names_it(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(('\ufeff{"resourceSpans": []}').encode(encoding))
    with pytest.raises(UnreadableFileError, match=r"found UTF-16, .* expected UTF-8$"):
        read_path(tmp_path / "out")


@pytest.mark.parametrize("bracket", [b"{", b"["])
def test_protobuf_that_begins_like_json_is_protobuf(bracket: bytes, tmp_path: Path) -> None:
    requests = [traces("x" * length).SerializeToString() for length in range(120)]
    [data] = [request for request in requests if request.startswith(b"\n" + bracket)]
    (tmp_path / "out").write_bytes(data)
    assert len(read_path(tmp_path / "out").spans) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", "a JSON object with no keys"),
        ('{"traces": [], "metrics": {}}', "a JSON object with 'traces', 'metrics'"),
        (
            '{"data": null, "total": 0, "limit": 0, "offset": 0, "errors": []}',
            "a JSON object with 'data', 'total', 'limit', 'offset', 'errors'",
        ),
        (
            '{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}',
            "a JSON object with 'a', 'b', 'c', 'd', 'e' and more",
        ),
        ('{"line\\nfeed": 1}', "a JSON object with 'line\\nfeed'"),
        ('[{"traceId": "1", "id": "2"}]', "a JSON object with 'traceId', 'id'"),
        ("[7]", "a number in JSON"),
        ("[[]]", "an array in JSON"),
        (
            json.dumps({"batches": json.loads("[" * 300 + "]" * 300)}),
            "JSON that is nested too deep (Recursion limit reached)",
        ),
    ],
)
def test_other_json_is_an_error_that_shows_its_keys(text: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text(text)
    with pytest.raises(UnreadableFileError) as caught:
        read_path(tmp_path / "out")
    assert (
        str(caught.value)
        == f"{tmp_path}/out: found {found}, expected OTLP protobuf or JSON, the JSON of Jaeger"
        " or Tempo, or a table with the column predicted_trajectory"
    )
