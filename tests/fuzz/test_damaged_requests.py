"""Damaged export requests: spans and log records are decoded, or rejected, or the whole request is;
nothing else happens.
"""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs

from pathgauge.collector.core.otlp import (
    Decoded,
    UndecodableError,
    decode_logs,
    decode_logs_json,
    decode_traces,
    decode_traces_json,
)
from pathgauge.collector.core.otlp.spans import LogRecord as CoreLogRecord, Span
from support.fuzzing import Target, hold
from support.official import read_like_protobuf
from support.turns import otlp, otlp_json, script, turn
from support.wire import TRACE_ID, attribute, field, group, nested, span

BATCHES = 10

_TURN = turn(script("refund", "lookup"))
_VALUES = attribute(field(5, field(1, b"\x18\x05") * 3)) + attribute(
    field(6, field(1, field(1, b"k") + field(2, b"\x10\x01")))
)
_EVENT = field(11, field(2, b"event") + field(3, field(1, b"k") + field(2, b"\x21" + b"\xff" * 8)))
_LOG = LogRecord(trace_id=TRACE_ID, event_name="gen_ai.choice")
_LOGS = ExportLogsServiceRequest(
    resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[_LOG, _LOG])])]
).SerializeToString()

PROTOBUF = (
    otlp(_TURN),
    group(span("a"), span("b", more=_VALUES + _EVENT), resource=field(1, field(1, b"k"))),
    group(span(more=nested(40))),
)
_RESOURCE = field(1, field(1, field(1, b"k") + field(2, field(1, b"v"))))
_SCOPE = field(1, field(1, b"scope") + field(2, b"2"))
_SPLIT = field(1, _RESOURCE + field(2, _SCOPE + field(2, span("a")) + _SCOPE) + _RESOURCE)
"""A request whose resource and scope come in parts."""
JSON = (
    otlp_json(_TURN),
    b'{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"scope":{"name":"s"},"spans":[{"traceId":"%s","spanId":"%s",'
    b'"kind":2,"startTimeUnixNano":"1","flags":257,"attributes":[{"key":"k","value":{"arrayValue":{"values":[{"doubleValue":"NaN"},'
    b'{"intValue":"7"},{"bytesValue":"AA=="}]}}}],"events":[{"name":"e"}],"status":{"code":2}}]}]}]}'
    % (b"01" * 16, b"02" * 8),
)
LOGS_JSON = (
    b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"%s","body":{"stringValue":"x"},"eventName":"e"},'
    b'{"observedTimeUnixNano":3}]}]}]}' % (b"01" * 16),
)


def whole(decoded: Decoded[Span] | Decoded[CoreLogRecord]) -> None:
    """What is decoded later can be decoded, too, and nothing is lost without being counted."""
    for record in decoded.records:
        assert isinstance(record.attributes, dict)
        assert record.trace_id
        assert isinstance(
            record.events if isinstance(record, Span) else record.event_name, tuple | str
        )
    assert bool(decoded.message) == bool(decoded.rejected)
    assert all(count > 0 for count in decoded.rejected.values())


_WIRE = (
    b"\x0a",
    b"\x12\x00",
    b"\x4a\x00",
    b"\x8a\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\x0b\x0c",
    b"\x80" * 10,
)
_TEXT = (
    b"null",
    b"{}",
    b"[",
    b"]",
    b'"',
    b"\\u0000",
    b"\\ud800",
    b"1e999",
    b"-1",
    b"NaN",
    b"9" * 400,
    b"\xc3\x28",
    b'"traceId":',
    b'"values":',
)

TARGETS = (
    Target(
        "protobuf traces",
        PROTOBUF,
        lambda data: whole(decode_traces(data)),
        (UndecodableError,),
        _WIRE,
    ),
    Target(
        "protobuf traces, compared",
        (*PROTOBUF, _SPLIT),
        read_like_protobuf,
        words=(*_WIRE, _RESOURCE, _SCOPE),
        share=0.5,
    ),
    Target(
        "protobuf logs",
        (_LOGS,),
        lambda data: whole(decode_logs(data)),
        (UndecodableError,),
        _WIRE,
        share=0.25,
    ),
    Target(
        "JSON traces",
        JSON,
        lambda data: whole(decode_traces_json(data)),
        (UndecodableError,),
        _TEXT,
    ),
    Target(
        "JSON logs",
        LOGS_JSON,
        lambda data: whole(decode_logs_json(data)),
        (UndecodableError,),
        _TEXT,
        share=0.25,
    ),
)


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_damaged_request_is_decoded_or_refused(target: Target, batch: int) -> None:
    hold(target, batch, BATCHES)
