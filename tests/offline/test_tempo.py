"""The JSON of Tempo and of Grafana downloads is detected and translated back to OTLP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.core.otlp.spans import Resource, Scope
from pathgauge.collector.offline import tempo
from pathgauge.collector.offline.trace_files import TraceFiles, UnreadableFileError, read_path
from support.exports import grafana_json, tempo_json, tempo_v2_json
from support.turns import otlp, otlp_json, script, turn

TRACE_ID, SPAN_ID, PARENT_ID = (
    "0af7651916cd43dd8448eb211c80319c",
    "b7ad6b7169203331",
    "00f067aa0ba902b7",
)
TRACE_ID_64, SPAN_ID_64, PARENT_ID_64 = "CvdlGRbNQ92ESOshHIAxnA==", "t61rcWkgMzE=", "APBnqgupArc="


def span(**fields: Any) -> dict[str, Any]:
    return {"traceId": TRACE_ID_64, "spanId": SPAN_ID_64, "name": "chat", **fields}


def batch(*spans: Any, **fields: Any) -> dict[str, Any]:
    return {
        "resource": {"attributes": []},
        "scopeSpans": [{"scope": {"name": "my.library"}, "spans": list(spans)}],
        **fields,
    }


def read(folder: Path, text: bytes) -> TraceFiles:
    (folder / "traces.json").write_bytes(text)
    return read_path(folder / "traces.json")


def test_every_field_of_a_trace_is_restored(tmp_path: Path) -> None:
    attributes = [
        {"key": "shots", "value": {"intValue": "7"}},
        {"key": "reasons", "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}},
    ]
    source = span(
        parentSpanId=PARENT_ID_64,
        traceState="vendor=1",
        kind="SPAN_KIND_CLIENT",
        startTimeUnixNano="1608239395286533000",
        endTimeUnixNano="1608239395386533001",
        attributes=attributes,
        events=[{"timeUnixNano": "1608239395286533002", "name": "exception"}],
        links=[{"traceId": TRACE_ID_64, "spanId": PARENT_ID_64}],
        status={"code": "STATUS_CODE_ERROR", "message": "no answer"},
        flags=257,
    )
    document = {
        "batches": [
            {
                "resource": {
                    "attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]
                },
                "scopeSpans": [
                    {"scope": {"name": "my.library", "version": "1.2"}, "spans": [source]}
                ],
            }
        ]
    }
    assert tempo.export_request(document) == {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]
                },
                "scopeSpans": [
                    {
                        "scope": {"name": "my.library", "version": "1.2"},
                        "spans": [
                            source
                            | {"traceId": TRACE_ID, "spanId": SPAN_ID, "parentSpanId": PARENT_ID}
                            | {"links": [{"traceId": TRACE_ID, "spanId": PARENT_ID}]}
                        ],
                    }
                ],
            }
        ]
    }
    [one] = read(tmp_path, json.dumps(document).encode()).spans
    assert (one.trace_id, one.span_id, one.parent_id, one.trace_state, one.name) == (
        TRACE_ID,
        SPAN_ID,
        PARENT_ID,
        "vendor=1",
        "chat",
    )
    assert (one.start_ns, one.end_ns) == (1608239395286533000, 1608239395386533001)
    assert (one.resource, one.scope) == (
        Resource({"service.name": "shop"}),
        Scope("my.library", "1.2"),
    )
    assert (one.attributes, [event.name for event in one.events]) == (
        {"shots": 7, "reasons": ["stop"]},
        ["exception"],
    )
    assert (one.status, one.status_message, one.proto.kind, one.proto.flags) == (
        2,
        "no answer",
        3,
        257,
    )
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in one.proto.links] == [
        (TRACE_ID, PARENT_ID)
    ]


REQUEST = otlp(turn(script("refund", "lookup")))
SPANS = ExportTraceServiceRequest.FromString(REQUEST)

SHAPES = {
    "batches": tempo_json(REQUEST),
    "trace": tempo_v2_json(REQUEST),
    "result of Jaeger's newer API": tempo_v2_json(REQUEST).replace(b'{"trace":', b'{"result":', 1),
    "download of Grafana": grafana_json(REQUEST),
    "what is inside of trace": json.dumps(json.loads(tempo_v2_json(REQUEST))["trace"]).encode(),
    "one trace a line": tempo_json(REQUEST) + b"\n",
    "list": b"[" + tempo_json(REQUEST) + b"]",
}


@pytest.mark.parametrize("name", SHAPES)
def test_traces_are_found_inside_every_wrapper(name: str, tmp_path: Path) -> None:
    files = read(tmp_path, SHAPES[name])
    sent = [
        span
        for group in SPANS.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]
    assert ([one.proto for one in files.spans], files.notes) == (sent, [])


def test_older_versions_call_scopes_instrumentation_libraries(tmp_path: Path) -> None:
    library = {
        "instrumentationLibrary": {"name": "my.library", "version": "0.1"},
        "spans": [span()],
    }
    files = read(
        tmp_path,
        json.dumps(
            {"batches": [{"resource": {}, "instrumentationLibrarySpans": [library]}]}
        ).encode(),
    )
    assert [(one.trace_id, one.span_id, one.scope) for one in files.spans] == [
        (TRACE_ID, SPAN_ID, Scope("my.library", "0.1"))
    ]


def test_otlp_json_and_its_log_records_pass_unchanged() -> None:
    request = json.loads(otlp_json(turn(script("refund", "lookup"))))
    for group in request["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for one in scope["spans"]:
                one["links"] = [{"traceId": TRACE_ID, "spanId": SPAN_ID}]
    request["resourceLogs"] = [{"resource": {}}]
    assert tempo.export_request(request) == request


@pytest.mark.parametrize(
    "malformed",
    [
        None,
        "span",
        {},
        span(traceId=None),
        span(traceId=7),
        span(traceId="no base64, 24 letters..."),
        span(traceId="CvdlGRbNQ92ESOshHIAxnAAA"),
        span(spanId=TRACE_ID_64),
        span(spanId="AAAAAAAAAAA="),
        span(spanId="é" * 12),
        span(startTimeUnixNano="now"),
        span(attributes="none"),
        span(links=7),
        span(links=[7]),
    ],
    ids=repr,
)
def test_a_malformed_span_is_rejected_alone(malformed: Any, tmp_path: Path) -> None:
    files = read(
        tmp_path,
        json.dumps(
            {"batches": [batch(span(name="before"), malformed, span(name="after"))]}
        ).encode(),
    )
    assert [one.name for one in files.spans] == ["before", "after"]
    assert files.notes == [f"{tmp_path}/traces.json: rejected 1 record as invalid OTLP"]


def test_spans_of_a_malformed_resource_are_rejected(tmp_path: Path) -> None:
    files = read(
        tmp_path,
        json.dumps(
            {"batches": [batch(span(), span(), resource="shop"), batch(span(name="after"))]}
        ).encode(),
    )
    assert [one.name for one in files.spans] == ["after"]
    assert files.notes == [f"{tmp_path}/traces.json: rejected 2 records as invalid OTLP"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"batches": 7}, "resourceSpans: found a number, expected an array"),
        ({"batches": ["x"]}, "resourceSpans: expected an array of objects"),
        ({"batches": [{"scopeSpans": {}}]}, "scopeSpans: found an object, expected an array"),
        (
            {"trace": {"resourceSpans": [{"scopeSpans": [{"spans": "x"}]}]}},
            "spans: found a string, expected an array",
        ),
    ],
)
def test_groups_of_the_wrong_shape_are_errors(document: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError) as caught:
        read(tmp_path, json.dumps(document).encode())
    assert str(caught.value) == f"{tmp_path}/traces.json: {problem}"


@pytest.mark.parametrize(
    "document", [None, 7, [], {}, {"trace": {}}, {"trace": [{"batches": []}]}, {"resourceLogs": []}]
)
def test_other_documents_are_not_tempo(document: Any) -> None:
    assert tempo.export_request(document) is None
