"""Invalid log records are rejected; those without a trace id are ignored."""

from __future__ import annotations

import orjson
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import (
    LogRecord as LogRecordProto,
    ResourceLogs,
    ScopeLogs,
)

from pathgauge.collector.core.otlp import decode_logs, decode_logs_json

TRACE, SPAN = b"\x01" * 16, b"\x02" * 8


def body(*logs: LogRecordProto) -> bytes:
    group = ResourceLogs(scope_logs=[ScopeLogs(log_records=logs)])
    return ExportLogsServiceRequest(resource_logs=[group]).SerializeToString()


def test_a_log_record_has_trace_and_span_ids() -> None:
    log = LogRecordProto(
        trace_id=TRACE,
        span_id=SPAN,
        observed_time_unix_nano=5,
        event_name="gen_ai.choice",
        body=AnyValue(int_value=1),
    )
    (record,) = decode_logs(body(log), tenant="acme").records
    assert (record.trace_id, record.span_id, record.time_ns, record.tenant) == (
        TRACE.hex(),
        SPAN.hex(),
        5,
        "acme",
    )
    assert (record.event_name, record.body) == ("gen_ai.choice", 1)


@pytest.mark.parametrize("trace_id", [b"", bytes(16), b"\x01" * 15])
def test_a_log_record_without_a_valid_trace_id_is_ignored_and_not_rejected(
    trace_id: bytes,
) -> None:
    decoded = decode_logs(body(LogRecordProto(trace_id=trace_id), LogRecordProto(trace_id=TRACE)))
    assert (len(decoded.records), decoded.without_trace, decoded.rejected, decoded.message) == (
        1,
        1,
        {},
        "",
    )


@pytest.mark.parametrize("span_id", [b"", bytes(8), b"\x01" * 7])
def test_a_log_record_without_a_valid_span_id_belongs_to_the_whole_trace(span_id: bytes) -> None:
    (record,) = decode_logs(body(LogRecordProto(trace_id=TRACE, span_id=span_id))).records
    assert (record.trace_id, record.span_id) == (TRACE.hex(), None)


@pytest.mark.parametrize("identifier", ["", "zz", "01", None, 5])
def test_missing_json_ids_are_treated_like_protobuf_ones(identifier: object) -> None:
    logs = [{"traceId": identifier}, {"traceId": TRACE.hex(), "spanId": identifier}]
    decoded = decode_logs_json(
        orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]})
    )
    assert (
        [record.span_id for record in decoded.records],
        decoded.without_trace,
        decoded.rejected,
    ) == ([None], 1, {})


def test_an_invalid_log_record_is_rejected_alone() -> None:
    good = LogRecordProto(trace_id=TRACE, event_name="good")
    raw = body(good, LogRecordProto(trace_id=TRACE, event_name="poison"), good).replace(
        b"poison", b"\xff" * 6
    )
    decoded = decode_logs(raw)
    assert [record.raw for record in decoded.records] == [good.SerializeToString()] * 2
    assert (decoded.rejected, decoded.message) == (
        {"undecodable": 1},
        "rejected 1: undecodable 1; first: not a valid LogRecord message",
    )


@pytest.mark.parametrize(
    ("scope", "event", "own"),
    [
        ("pathgauge", "gen_ai.evaluation.result", 1),
        ("another.evaluator", "gen_ai.evaluation.result", 0),
        ("", "gen_ai.evaluation.result", 0),
        ("pathgauge", "gen_ai.choice", 0),
    ],
)
def test_own_evaluation_events_are_ignored_and_those_of_others_are_not(
    scope: str, event: str, own: int
) -> None:
    logs = [
        {"traceId": TRACE.hex(), "eventName": event},
        {"traceId": TRACE.hex(), "attributes": [of_older_sdks(event)]},
    ]
    request = {"resourceLogs": [{"scopeLogs": [{"scope": {"name": scope}, "logRecords": logs}]}]}
    decoded = decode_logs_json(orjson.dumps(request))
    assert (decoded.own_events, len(decoded.records), decoded.without_trace, decoded.rejected) == (
        2 * own,
        2 - 2 * own,
        0,
        {},
    )


def of_older_sdks(event: str) -> dict[str, object]:
    return {"key": "event.name", "value": {"stringValue": event}}
