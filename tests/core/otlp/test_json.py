"""OTLP/JSON gives the same spans and log records as protobuf, and is as lenient as specified."""

from __future__ import annotations

import inspect
import json
import re
import sys
import time
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from hypothesis import given, settings, strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.logs.v1.logs_pb2 import (
    LogRecord as LogRecordProto,
    ResourceLogs,
    ScopeLogs,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceProto
from opentelemetry.proto.trace.v1.trace_pb2 import (
    ResourceSpans,
    ScopeSpans,
    Span as SpanProto,
    Status,
)

from pathgauge.collector.core.otlp import (
    Decoded,
    DecodeLimits,
    UndecodableError,
    decode_logs,
    decode_logs_json,
    decode_traces,
    decode_traces_json,
)
from pathgauge.collector.core.otlp.spans import LogRecord, Resource, Scope, Span
from support.examples import examples

TRACE_ID, SPAN_ID = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"

texts = st.text(max_size=8)
nanoseconds = st.integers(0, 2**64 - 1)
scalars = st.one_of(
    st.builds(AnyValue),
    st.builds(AnyValue, string_value=texts),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AnyValue, double_value=st.floats(allow_nan=False)),
    st.builds(AnyValue, bytes_value=st.binary(max_size=8)),
)


def key_values(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[list[KeyValue]]:
    return st.lists(st.builds(KeyValue, key=texts, value=values), max_size=3)


values = st.recursive(
    scalars,
    lambda inner: (
        st.builds(
            lambda items: AnyValue(array_value=ArrayValue(values=items)),
            st.lists(inner, max_size=3),
        )
        | st.builds(
            lambda pairs: AnyValue(kvlist_value=KeyValueList(values=pairs)), key_values(inner)
        )
    ),
    max_leaves=5,
)
trace_ids, span_ids = st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)
some_spans = st.builds(
    SpanProto,
    trace_id=trace_ids,
    span_id=span_ids,
    parent_span_id=st.just(b"") | span_ids,
    name=texts,
    trace_state=texts,
    flags=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(SpanProto.SpanKind.values()),
    start_time_unix_nano=nanoseconds,
    end_time_unix_nano=nanoseconds,
    attributes=key_values(values),
    events=st.lists(
        st.builds(
            SpanProto.Event, name=texts, time_unix_nano=nanoseconds, attributes=key_values(scalars)
        ),
        max_size=2,
    ),
    links=st.lists(st.builds(SpanProto.Link, trace_id=trace_ids, span_id=span_ids), max_size=2),
    status=st.builds(Status, code=st.sampled_from(Status.StatusCode.values()), message=texts),
)
some_logs = st.builds(
    LogRecordProto,
    trace_id=trace_ids | st.binary(max_size=3),
    span_id=span_ids | st.binary(max_size=3),
    time_unix_nano=nanoseconds,
    event_name=texts,
    body=values,
    attributes=key_values(values),
)
resources = st.builds(ResourceProto, attributes=key_values(values))
scopes = st.builds(InstrumentationScope, name=texts, version=texts)


def to_json(request: Message) -> bytes:
    """Protobuf's JSON with hexadecimal ids, as in OTLP."""
    return orjson.dumps(_hex_ids(MessageToDict(request)))


def _hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_hex_ids(item) for item in value]
    if isinstance(value, dict):
        return {
            key: b64decode(item).hex()
            if key in ("traceId", "spanId", "parentSpanId")
            else _hex_ids(item)
            for key, item in value.items()
        }
    return value


def contents(decoded: Decoded[Span] | Decoded[LogRecord]) -> tuple[object, ...]:
    return (
        decoded.rejected,
        decoded.without_trace,
        [(r.raw, repr(r.resource), r.scope) for r in decoded.records],
    )


@settings(deadline=None)
@given(st.lists(some_spans, max_size=3), resources, scopes)
def test_the_same_spans_in_either_encoding_are_equal(
    spans: list[SpanProto], resource: ResourceProto, scope: InstrumentationScope
) -> None:
    group = ResourceSpans(
        resource=resource,
        scope_spans=[ScopeSpans(scope=scope, spans=spans), ScopeSpans(spans=spans)],
    )
    request = ExportTraceServiceRequest(resource_spans=[group, ResourceSpans()])
    assert contents(decode_traces_json(to_json(request))) == contents(
        decode_traces(request.SerializeToString())
    )


@settings(deadline=None)
@given(st.lists(some_logs, max_size=3), resources, scopes)
def test_the_same_log_records_in_either_encoding_are_equal(
    logs: list[LogRecordProto], resource: ResourceProto, scope: InstrumentationScope
) -> None:
    group = ResourceLogs(resource=resource, scope_logs=[ScopeLogs(scope=scope, log_records=logs)])
    request = ExportLogsServiceRequest(resource_logs=[group])
    assert contents(decode_logs_json(to_json(request))) == contents(
        decode_logs(request.SerializeToString())
    )


def request(*spans: Any, **group: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}], **group}]}).encode()


def span(name: Any = "chat", **fields: Any) -> dict[str, Any]:
    return {"traceId": TRACE_ID, "spanId": SPAN_ID, "name": name} | fields


def attribute(**value: Any) -> dict[str, Any]:
    return {"attributes": [{"key": "k", "value": value}]}


def array(item: dict[str, Any]) -> dict[str, Any]:
    return {"arrayValue": {"values": [item]}}


def map_(value: dict[str, Any]) -> dict[str, Any]:
    return {"kvlistValue": {"values": [{"key": "k", "value": value}]}}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "deep"}
    for _ in range(levels):
        value = array(value)
    return attribute(**value)


def test_the_example_of_the_specification_is_read() -> None:
    body = orjson.dumps(
        {
            "resourceSpans": [
                {
                    "resource": {
                        "attributes": [
                            {"key": "service.name", "value": {"stringValue": "my.service"}}
                        ]
                    },
                    "scopeSpans": [
                        {
                            "scope": {"name": "my.library", "version": "1.0.0", "attributes": []},
                            "spans": [
                                {
                                    "traceId": TRACE_ID.upper(),
                                    "spanId": SPAN_ID.upper(),
                                    "parentSpanId": "EEE19B7EC3C1B173",
                                    "name": "I'm a server span",
                                    "startTimeUnixNano": "1544712660000000000",
                                    "endTimeUnixNano": 1544712661000000000,
                                    "kind": 2,
                                    "attributes": [
                                        {
                                            "key": "my.span.attr",
                                            "value": {"stringValue": "some value"},
                                        }
                                    ],
                                }
                            ],
                        }
                    ],
                }
            ]
        }
    )
    (record,) = decode_traces_json(body, tenant="acme").records
    assert (record.trace_id, record.span_id, record.parent_id, record.tenant) == (
        TRACE_ID,
        SPAN_ID,
        "eee19b7ec3c1b173",
        "acme",
    )
    assert (record.start_ns, record.end_ns) == (1544712660000000000, 1544712661000000000)
    assert (record.resource, record.scope) == (
        Resource({"service.name": "my.service"}),
        Scope("my.library", "1.0.0"),
    )
    assert record.attributes == {"my.span.attr": "some value"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": ""}, ""),
        ({"boolValue": False}, False),
        ({"intValue": "-5"}, -5),
        ({"intValue": -5}, -5),
        ({"intValue": 5.0}, 5),
        ({"doubleValue": "-Infinity"}, float("-inf")),
        ({"doubleValue": 3}, 3.0),
        ({"bytesValue": "AAE="}, b"\x00\x01"),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"intValue": "1"}}]}}, {"a": 1}),
        ({}, None),
        ({"stringValue": None}, None),
        ({"futureValue": 1}, None),
        ({"stringValue": "x", "futureValue": {"deep": [1]}}, "x"),
    ],
)
def test_attribute_values(value: dict[str, Any], expected: Any) -> None:
    (record,) = decode_traces_json(request(span(**attribute(**value)))).records
    assert record.attributes == {"k": expected}


def test_not_a_number_is_an_attribute_value() -> None:
    (record,) = decode_traces_json(request(span(**attribute(doubleValue="NaN")))).records
    assert str(record.attributes["k"]) == "nan"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"futureField": {"a": [1, None]}}, id="unknown field"),
        pytest.param({"kind": 99, "status": {"code": 77}}, id="unknown enum numbers"),
        pytest.param(
            {"parentSpanId": "", "attributes": None, "events": [], "status": None},
            id="empty and null",
        ),
        pytest.param({"parentSpanId": "0" * 16}, id="parent of zeros"),
        pytest.param(
            {"links": [{"traceId": TRACE_ID, "spanId": SPAN_ID, "futureField": 1}]}, id="link"
        ),
    ],
)
def test_alternative_notations_of_a_span(fields: dict[str, Any]) -> None:
    decoded = decode_traces_json(request(span(**fields)))
    assert ([(r.name, r.parent_id) for r in decoded.records], decoded.rejected) == (
        [("chat", None)],
        {},
    )


@pytest.mark.parametrize(
    ("poisoned", "reason"),
    [
        pytest.param(span(traceId=TRACE_ID[:-2]), "invalid_id", id="trace id of 15 bytes"),
        pytest.param(span(traceId=TRACE_ID[:-1]), "invalid_id", id="trace id of half a byte less"),
        pytest.param(
            span(traceId="W47/95gDgQPSabYzgT/GDA=="), "invalid_id", id="trace id as base64"
        ),
        pytest.param(span(traceId="0" * 32), "invalid_id", id="trace id of zeros"),
        pytest.param(
            span(traceId=f"{TRACE_ID[:2]} {TRACE_ID[2:]}"), "invalid_id", id="trace id with a blank"
        ),
        pytest.param(span(traceId=None), "invalid_id", id="trace id null"),
        pytest.param(span(traceId=7), "invalid_id", id="trace id a number"),
        pytest.param({"name": "chat"}, "invalid_id", id="no ids"),
        pytest.param(span(spanId="0" * 16), "invalid_id", id="span id of zeros"),
        pytest.param(span(parentSpanId="zz"), "invalid_id", id="parent id not hex"),
        pytest.param("span", "undecodable", id="a string"),
        pytest.param([], "undecodable", id="an array"),
        pytest.param(span(name=5), "undecodable", id="name a number"),
        pytest.param(span(attributes={}), "undecodable", id="attributes an object"),
        pytest.param(span(attributes=[1]), "undecodable", id="attribute a number"),
        pytest.param(span(startTimeUnixNano=-1), "undecodable", id="time before the epoch"),
        pytest.param(span(**attribute(intValue=2**63)), "undecodable", id="int of 65 bits"),
        pytest.param(span(**attribute(bytesValue="A")), "undecodable", id="bytes not base64"),
        pytest.param(
            span(**attribute(stringValue="a", intValue=1)), "undecodable", id="two values in one"
        ),
        pytest.param(span(**nested(49)), "undecodable", id="nested 49 deep"),
        pytest.param(span(**nested(100)), "undecodable", id="nested 100 deep"),
        pytest.param(span(attributes=[{}] * 8_193), "too_many_attributes", id="8,193 attributes"),
        pytest.param(span("n" * 4_200_000), "too_large", id="4.2 MB"),
    ],
)
def test_an_invalid_span_is_rejected_alone(poisoned: Any, reason: str) -> None:
    decoded = decode_traces_json(request(span("before"), poisoned, span("after")))
    assert ([record.name for record in decoded.records], decoded.rejected) == (
        ["before", "after"],
        {reason: 1},
    )


@pytest.mark.parametrize("nest", [array, map_], ids=["arrays", "maps"])
@pytest.mark.parametrize("levels", range(25, 55))
def test_an_accepted_span_can_be_decoded_again(
    levels: int, nest: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = nest(value)
    decoded = decode_traces_json(request(span(**attribute(**value))))
    assert len(decoded.records) + decoded.rejected.get("undecodable", 0) == 1
    assert [list(record.attributes) for record in decoded.records] == [["k"]] * len(decoded.records)


def test_a_span_that_exhausts_the_stack_is_rejected() -> None:
    body = request(span("before"), span(**nested(45)), span("after"))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        decoded = decode_traces_json(body)
    finally:
        sys.setrecursionlimit(limit)
    assert ([record.name for record in decoded.records], decoded.rejected) == (
        ["before", "after"],
        {"undecodable": 1},
    )


@pytest.mark.parametrize(
    "context", [{"resource": {"attributes": [{"key": 1}]}}, {"resource": "shop"}]
)
def test_an_invalid_resource_rejects_its_spans_only(
    context: dict[str, Any],
) -> None:
    groups = {
        "resourceSpans": [
            {"scopeSpans": [{"spans": [span(name)]}], **more}
            for name, more in (("lost", context), ("kept", {}))
        ]
    }
    decoded = decode_traces_json(orjson.dumps(groups))
    assert ([record.name for record in decoded.records], decoded.rejected) == (
        ["kept"],
        {"undecodable": 1},
    )


def _with_original_names(value: Any) -> Any:
    """The JSON with the names of protobuf: `trace_id` for `traceId`."""
    if isinstance(value, list):
        return [_with_original_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key): _with_original_names(inner)
        for key, inner in value.items()
    }


def test_the_names_of_protobuf_are_understood_as_those_of_json() -> None:
    whole = span(parentSpanId="ab" * 8, links=[{"traceId": TRACE_ID, "spanId": SPAN_ID}])
    log = {"traceId": TRACE_ID, "spanId": SPAN_ID, "body": {"stringValue": "hi"}}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}
    spans = orjson.loads(request(whole))
    assert (
        _raw(decode_traces_json(orjson.dumps(_with_original_names(spans)))),
        _raw(decode_logs_json(orjson.dumps(_with_original_names(logs)))),
    ) == (_raw(decode_traces_json(request(whole))), _raw(decode_logs_json(orjson.dumps(logs))))


def _raw(decoded: Decoded[Any]) -> tuple[str, list[bytes]]:
    return decoded.message, [record.raw for record in decoded.records]


def test_a_wrong_id_under_the_name_of_protobuf_is_told_as_it_was_sent() -> None:
    original = {"trace_id": "xyz", "span_id": SPAN_ID}
    body = {"resource_spans": [{"scope_spans": [{"spans": [original]}]}]}
    decoded = decode_traces_json(orjson.dumps(body))
    assert decoded.message.endswith("trace_id: expected hexadecimal, found 'xyz'")


@pytest.mark.parametrize(
    "body", [b"{}", b'{"resourceSpans": null}', b'{"resourceSpans": [{}], "future": 1}', request()]
)
def test_a_request_may_contain_no_span(body: bytes) -> None:
    assert decode_traces_json(body) == Decoded(())


@pytest.mark.parametrize(
    ("escaped", "name"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\ude00 cut", "\ufffd cut"),
        (r"\uD83D\uD83D\uDE00\uDE00", "\ufffd\U0001f600\ufffd"),
        (r"\ud83d \ude00", "\ufffd \ufffd"),
        (r"\ud83d\u0041", "\ufffdA"),
        (r"\\ud83d \ud83d", "\\ud83d \ufffd"),
        (r"\\\ud83d\\\ude00", "\\\ufffd\\\ufffd"),
        (r"\n\ud83d\n", "\n\ufffd\n"),
    ],
)
def test_a_lone_surrogate_is_replaced(escaped: str, name: str) -> None:
    body = request(span("before"), span("half"), span("after")).replace(b"half", escaped.encode())
    assert [record.name for record in decode_traces_json(body).records] == ["before", name, "after"]


@pytest.mark.slow
@pytest.mark.parametrize("many", [rb"\ud83d", b"\\", rb"\ud83d\ude00", rb"\n"])
def test_many_escapes_are_read_in_linear_time(many: bytes) -> None:
    began = time.process_time()
    with pytest.raises(UndecodableError, match="not JSON"):
        decode_traces_json(b'{"a": "' + many * 1_000_000)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON: "),
        (b"{", "not JSON: "),
        (b'{"resourceSpans": [NaN]}', "not JSON: "),
        (b'{"resourceSpans": "\xff"}', "not JSON: "),
        (b"[" * 3_000 + b"]" * 3_000, "not JSON: "),
        (b"[]", "found an array, expected a JSON object"),
        (b"null", "found null, expected a JSON object"),
        (b'{"resourceSpans": {}}', "resourceSpans: found an object, expected an array"),
        (b'{"resourceSpans": [1]}', "resourceSpans: expected an array of objects"),
        (b'{"resourceSpans": [{"scopeSpans": [[]]}]}', "scopeSpans: expected an array of objects"),
        (
            b'{"resourceSpans": [{"scopeSpans": [{"spans": 3}]}]}',
            "spans: found a number, expected an array",
        ),
        (
            b'{"resourceSpans": [' + b"{}," * 750_000 + b"{}]}",
            "more than 1,500,000 JSON strings, commas and brackets",
        ),
    ],
    ids=range(12),
)
def test_a_request_without_discernible_groups_is_undecodable(body: bytes, message: str) -> None:
    with pytest.raises(UndecodableError) as error:
        decode_traces_json(body)
    assert str(error.value).startswith(message)


def test_spans_beyond_the_limit_are_rejected() -> None:
    decoded = decode_traces_json(
        request(span("a"), span("b"), span("c")), limits=DecodeLimits(max_records=2)
    )
    assert ([record.name for record in decoded.records], decoded.rejected) == (
        ["a", "b"],
        {"too_many_records": 1},
    )


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        ('"ab"', 1),
        ("1", 0),
        ("null", 0),
        ("{}", 1),
        ("[]", 1),
        ('{"a": [0]}', 3),
        (r'"\",[{"', 1),
        (r'"\\"', 1),
        ('"[{,"', 1),
    ],
)
@pytest.mark.parametrize("space", ["", " ", "\n"])
def test_strings_commas_and_brackets_of_a_request_are_limited(
    value: str, tokens: int, space: str
) -> None:
    room = 75 - 3  # for {, "x" and [
    values = [value] * (room // (tokens + 1))
    values += ["1"] * (room + 1 - len(values) * (tokens + 1))
    comma = space + "," + space
    assert decode_traces_json(
        b'{"x": [%s]}' % comma.join(values).encode(), limits=DecodeLimits(max_json_tokens=75)
    ) == Decoded(())
    with pytest.raises(UndecodableError, match="more than 75 JSON strings, commas and brackets"):
        decode_traces_json(
            b'{"x": [%s]}' % comma.join([*values, "1"]).encode(),
            limits=DecodeLimits(max_json_tokens=75),
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [b'"' + b'\\"' * 4_000_000, b'"' * 8_000_001, b'"' + b"\\" * 8_000_000],
    ids=["quotes", "many", "escapes"],
)
def test_an_unterminated_string_takes_linear_time(body: bytes) -> None:
    began = time.process_time()
    with pytest.raises(UndecodableError):
        decode_traces_json(body)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "field",
    [
        pytest.param({"attributes": [{}] * 40}, id="attributes"),
        pytest.param({"attributes": [{"value": {}}] * 20}, id="attributes with values"),
        pytest.param(
            {"attributes": [{"value": {"arrayValue": {"values": [{}]}}}] * 10}, id="arrays"
        ),
        pytest.param(
            {"attributes": [{"value": {"kvlistValue": {"values": [{"value": {}}]}}}] * 8}, id="maps"
        ),
        pytest.param({"events": [{"attributes": [{}]}] * 20}, id="events with attributes"),
    ],
)
def test_nested_values_of_a_span_are_limited(field: dict[str, Any]) -> None:
    decoded = decode_traces_json(
        request(span("kept", **field), span(status={}, **field)), limits=DecodeLimits(max_values=40)
    )
    assert ([record.name for record in decoded.records], decoded.rejected) == (
        ["kept"],
        {"too_many_attributes": 1},
    )


@pytest.mark.parametrize(
    ("size", "kept"), [(96, True), (97, False)], ids=["as large as allowed", "one more byte"]
)
def test_the_bytes_of_a_resource_are_limited(size: int, kept: bool) -> None:
    body = request(span(), resource={"attributes": [{"key": "k" * size}]})
    decoded = decode_traces_json(body, limits=DecodeLimits(max_context_bytes=100))
    assert (len(decoded.records), decoded.rejected) == ((1, {}) if kept else (0, {"too_large": 1}))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["key", "value", "intValue", "x", "values"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
SPAN_FIELDS = [field.json_name for field in SpanProto.DESCRIPTOR.fields]


@settings(deadline=None, max_examples=examples(300))
@given(st.dictionaries(st.sampled_from(SPAN_FIELDS), json_values, max_size=4))
def test_a_span_of_any_json_values_is_accepted_or_rejected_alone(fields: dict[str, Any]) -> None:
    decoded = decode_traces_json(request(span("before"), span() | fields, span("after")))
    assert len(decoded.records) + sum(decoded.rejected.values()) == 3
    assert (decoded.records[0].name, decoded.records[-1].name) == ("before", "after")
    assert [type(record.attributes) for record in decoded.records]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"traceId": "W47/95gDgQPSabYzgT/GDA=="}, "found 'W47/95gDgQPSabYzgT/GDA=='"),
        ({"traceId": "x" * 100}, f"found '{'x' * 39}…'"),
        ({"parentSpanId": "zz"}, "parentSpanId: expected hexadecimal, found 'zz'"),
        ({"traceId": "00"}, "trace id: expected 16 bytes, not all zero, found '00'"),
    ],
)
def test_the_sender_is_told_the_wrong_id_as_it_was_sent(wrong: dict[str, str], told: str) -> None:
    assert told in decode_traces_json(request(span(**wrong))).message
