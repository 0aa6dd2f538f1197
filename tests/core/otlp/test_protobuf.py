"""Protobuf requests: valid records, rejected records, and requests refused as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from google.protobuf.message import Message
from hypothesis import given, settings, strategies as st
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    InstrumentationScope as ScopeProto,
    KeyValue,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceProto
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto, Status

from pathgauge.collector.core.otlp import (
    Decoded,
    DecodeLimits,
    UndecodableError,
    decode_logs,
    decode_traces,
)
from pathgauge.collector.core.otlp.spans import (
    STATUS_ERROR,
    Resource,
    Scope,
    Span,
)
from support.examples import examples
from support.official import read_like_protobuf
from support.wire import SPAN_ID, TRACE_ID, field, group, nested, span


def names(decoded: Decoded[Span]) -> list[str]:
    return [record.name for record in decoded.records]


def test_spans_of_a_group_share_resource_and_scope() -> None:
    resource = ResourceProto(
        attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))]
    ).SerializeToString()
    scope = ScopeProto(name="openinference", version="1.2").SerializeToString()
    decoded = decode_traces(
        group(span("a"), span("b"), resource=resource, scope=scope) + group(span("c")),
        tenant="acme",
    )
    a, b, c = decoded.records
    assert (a.resource, a.scope, a.tenant) == (
        Resource({"service.name": "shop"}),
        Scope("openinference", "1.2"),
        "acme",
    )
    assert (a.resource is b.resource, a.scope is b.scope) == (True, True)
    assert (c.resource, c.scope) == (Resource(), Scope())


def test_a_span_keeps_its_encoded_bytes() -> None:
    raw = span("a", more=field(1000, b"of a future version"))
    assert decode_traces(group(raw)).records == (Span(raw, Resource(), Scope()),)


def test_ids_names_and_times_of_a_span() -> None:
    status = Status(code=Status.STATUS_CODE_ERROR, message="tool failed")
    proto = SpanProto(
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        name="chat",
        start_time_unix_nano=5,
        end_time_unix_nano=7,
        status=status,
        flags=0x301,
        trace_state="a=b",
    )
    (failed,) = decode_traces(group(proto.SerializeToString())).records
    assert (failed.trace_id, failed.span_id, failed.parent_id, failed.name) == (
        TRACE_ID.hex(),
        SPAN_ID.hex(),
        None,
        "chat",
    )
    assert (failed.start_ns, failed.end_ns, failed.status, failed.status_message) == (
        5,
        7,
        STATUS_ERROR,
        "tool failed",
    )
    assert (failed.remote_parent, failed.trace_state) == (True, "a=b")
    (bare,) = decode_traces(group(span())).records
    assert (bare.start_ns, bare.end_ns, bare.status, bare.status_message, bare.remote_parent) == (
        0,
        0,
        0,
        "",
        False,
    )


@pytest.mark.parametrize("body", [b"", field(1, b""), group(), field(7, b"unknown"), b"\x08\x01"])
def test_a_request_may_contain_no_span(body: bytes) -> None:
    assert decode_traces(body) == Decoded(())


def test_a_resource_may_follow_its_spans() -> None:
    resource = ResourceProto(
        attributes=[KeyValue(key="k", value=AnyValue(int_value=1))]
    ).SerializeToString()
    body = field(1, field(2, field(2, span("a"))) + field(1, resource))
    assert decode_traces(body).records[0].resource == Resource({"k": 1})


@pytest.mark.parametrize(
    ("poisoned", "reason"),
    [
        pytest.param(span(more=field(5, b"\xff\xfe")), "undecodable", id="name is not UTF-8"),
        pytest.param(
            span(more=field(9, field(1, b"\xff"))), "undecodable", id="attribute key is not UTF-8"
        ),
        pytest.param(span(more=b"\x0f"), "undecodable", id="wire type 7"),
        pytest.param(span(more=b"\x4a\x7f"), "undecodable", id="attribute longer than its span"),
        pytest.param(b"\x08\x01" + field(2, SPAN_ID), "invalid_id", id="trace id is a number"),
        pytest.param(b"\xff" * 40, "undecodable", id="noise"),
        pytest.param(b"", "invalid_id", id="empty"),
        pytest.param(span(trace_id=b"\x01" * 15), "invalid_id", id="trace id of 15 bytes"),
        pytest.param(span(trace_id=b"\x01" * 24), "invalid_id", id="trace id read as base64"),
        pytest.param(span(trace_id=bytes(16)), "invalid_id", id="trace id of zeros"),
        pytest.param(span(span_id=b""), "invalid_id", id="no span id"),
        pytest.param(span(span_id=b"\x01" * 16), "invalid_id", id="span id of 16 bytes"),
        pytest.param(span(span_id=bytes(8)), "invalid_id", id="span id of zeros"),
        pytest.param(span(parent=b"\x01" * 7), "invalid_id", id="parent id of 7 bytes"),
        pytest.param(span(more=nested(100)), "undecodable", id="nested 100 deep"),
        pytest.param(span(more=nested(1000)), "undecodable", id="nested 1000 deep"),
        pytest.param(
            span(more=b"\x4a\x00" * 100_000), "too_many_attributes", id="100,000 attributes"
        ),
        pytest.param(span(more=b"\x5a\x00" * 100_000), "too_many_attributes", id="100,000 events"),
        pytest.param(span(more=b"\x6a\x00" * 100_000), "too_many_attributes", id="100,000 links"),
        pytest.param(
            span(more=field(9, field(1, b"k" * 20_000)) + b"\x0f"),
            "undecodable",
            id="large, and wire type 7",
        ),
        pytest.param(span("n" * 5_000_000), "too_large", id="5 MB"),
    ],
)
def test_an_invalid_span_is_rejected_alone(poisoned: bytes, reason: str) -> None:
    decoded = decode_traces(group(span("before"), poisoned, span("after")))
    assert (names(decoded), decoded.rejected) == (["before", "after"], {reason: 1})
    assert decoded.message.startswith(f"rejected 1: {reason} 1; first: ")


def test_attributes_nested_45_deep_are_read() -> None:
    (record,) = decode_traces(group(span(more=nested(45)))).records
    value = record.attributes["key"]
    for _ in range(45):
        (value,) = value
    assert value == "deep"


@pytest.mark.parametrize(
    "context",
    [
        pytest.param({"resource": field(1, field(1, b"\xff"))}, id="resource"),
        pytest.param({"scope": field(1, b"\xff")}, id="scope"),
    ],
)
def test_an_invalid_resource_or_scope_rejects_its_spans_only(
    context: dict[str, bytes],
) -> None:
    decoded = decode_traces(group(span("lost"), span("lost"), **context) + group(span("kept")))
    assert (names(decoded), decoded.rejected) == (["kept"], {"undecodable": 2})


def test_an_invalid_resource_without_spans_rejects_nothing() -> None:
    assert decode_traces(group(resource=b"\xff") + group(span("kept"))).rejected == {}


def test_a_parent_of_zeros_is_no_parent() -> None:
    assert [
        record.parent_id
        for record in decode_traces(group(span(parent=bytes(8)), span(parent=SPAN_ID))).records
    ] == [
        None,
        SPAN_ID.hex(),
    ]


def test_spans_beyond_the_limit_are_rejected_across_groups() -> None:
    body = group(span("a"), span("b")) + group(span("c"), span("d")) + group(span("e"))
    decoded = decode_traces(body, limits=DecodeLimits(max_records=3))
    assert (names(decoded), decoded.rejected) == (["a", "b", "c"], {"too_many_records": 2})
    assert decoded.message == "rejected 2: too_many_records 2; first: more than 3 in one request"


def test_a_rejected_span_counts_towards_the_limit() -> None:
    decoded = decode_traces(group(b"", span("b"), span("c")), limits=DecodeLimits(max_records=2))
    assert (names(decoded), decoded.rejected) == (["b"], {"invalid_id": 1, "too_many_records": 1})


@pytest.mark.parametrize(
    ("fields", "rejected"),
    [(100, {}), (101, {"too_many_attributes": 1})],
    ids=["as many as allowed", "one more"],
)
def test_the_fields_of_a_span_are_limited(fields: int, rejected: dict[str, int]) -> None:
    raw = field(1, TRACE_ID) + field(2, SPAN_ID) + b"\x4a\x00" * (fields - 2)
    assert decode_traces(group(raw), limits=DecodeLimits(max_attributes=100)).rejected == rejected


def test_the_shortest_span_beyond_the_limit_is_found() -> None:
    decoded = decode_traces(group(b"\x4a\x00" * 101), limits=DecodeLimits(max_attributes=100))
    assert decoded.rejected == {"too_many_attributes": 1}


@pytest.mark.parametrize("size", [127, 128, 129, 16_383, 16_384, 16_385, 2_097_151, 2_097_152])
def test_spans_are_found_whatever_number_of_bytes_their_size_takes(size: int) -> None:
    padding = b"\x00" * (size - len(span()) - len(field(1000, b"")))
    raws = [span(more=field(1000, padding[cut:])) for cut in range(5)]
    assert size in map(len, raws)
    body = group(*raws, span("last"))
    assert [record.raw for record in decode_traces(body).records] == [*raws, span("last")]


@pytest.mark.parametrize(
    ("limit", "rejected"),
    [(34, {}), (33, {"too_large": 1})],
    ids=["as large as allowed", "one more byte"],
)
def test_the_bytes_of_a_span_are_limited(limit: int, rejected: dict[str, int]) -> None:
    assert (
        decode_traces(group(span("chat")), limits=DecodeLimits(max_record_bytes=limit)).rejected
        == rejected
    )


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([b"\x4a\x00"], id="attributes"),
        pytest.param([b"\x5a\x00"], id="events"),
        pytest.param([b"\x6a\x00"], id="links"),
        pytest.param([b"\xca\x00\x00"], id="attributes, their tag padded"),
        pytest.param([field(9, field(2, b""))] * 2, id="attributes with values"),
        pytest.param([field(9, field(2, field(5, b"\x0a\x00")))] * 4, id="arrays"),
        pytest.param([field(9, field(2, field(6, field(1, field(2, b"")))))] * 5, id="maps"),
        pytest.param([field(11, b"\x1a\x00")] * 2, id="events with attributes"),
        pytest.param([field(13, b"\x22\x00")] * 2, id="links with attributes"),
    ],
)
def test_nested_values_of_a_span_are_limited(parts: list[bytes]) -> None:
    """Each of the `parts` is a field that holds as many messages as the list is long, itself
    included.
    """
    part, size = parts[0], len(parts)
    allowed, one_more = span(more=part * (40 // size)), span(more=part * (40 // size) + b"\x4a\x00")
    decoded = decode_traces(group(allowed, one_more), limits=DecodeLimits(max_values=40))
    assert ([record.raw for record in decoded.records], decoded.rejected) == (
        [allowed],
        {"too_many_attributes": 1},
    )


@pytest.mark.parametrize("number", [5, 6], ids=["body", "attributes"])
def test_nested_values_of_a_log_record_are_limited(number: int) -> None:
    def record(values: int) -> bytes:
        value = field(5, b"\x0a\x00" * values)
        return field(9, TRACE_ID) + field(number, value if number == 5 else field(2, value))

    shell = 2 if number == 5 else 3
    decoded = decode_logs(
        group(record(40 - shell), record(41 - shell)), limits=DecodeLimits(max_values=40)
    )
    assert (len(decoded.records), decoded.rejected) == (1, {"too_many_attributes": 1})


@pytest.mark.parametrize(
    ("limit", "kept"), [(100, True), (99, False)], ids=["as large as allowed", "one more byte"]
)
@pytest.mark.parametrize(
    "context",
    [
        pytest.param({"resource": field(1, field(1, b"k" * 96))}, id="resource"),
        pytest.param({"scope": field(1, b"n" * 98)}, id="scope"),
    ],
)
def test_the_bytes_of_a_resource_and_a_scope_are_limited(
    context: dict[str, bytes], limit: int, kept: bool
) -> None:
    decoded = decode_traces(
        group(span("held"), **context) + group(span("other")),
        limits=DecodeLimits(max_context_bytes=limit),
    )
    assert (names(decoded), decoded.rejected) == (
        (["held", "other"], {}) if kept else (["other"], {"too_large": 1})
    )


@pytest.mark.parametrize("tag", [b"\x0a", b"\x8a\x00"], ids=["plain", "padded"])
def test_the_values_of_all_resources_of_a_request_are_limited_together(tag: bytes) -> None:
    body = b"".join(
        group(span(str(number)), resource=(tag + b"\x00") * 40) for number in range(11)
    ) + group(span("bare"))
    decoded = decode_traces(body, limits=DecodeLimits(max_records=20))
    assert (names(decoded), decoded.rejected) == (
        [*map(str, range(10)), "bare"],
        {"too_many_attributes": 1},
    )
    assert decoded.message.endswith("first: more than 400 keys and values of resources")


@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(field(1, field(2, b"\x12\x00" * 2_000_000)), id="spans"),
        pytest.param(field(1, b"\x12\x00" * 2_000_000), id="scope groups"),
        pytest.param(b"\x0a\x00" * 2_000_000, id="resource groups"),
        pytest.param(b"\x08\x00" * 2_000_000, id="unknown numbers"),
    ],
)
def test_a_request_of_millions_of_tiny_entries_is_refused_as_a_whole(bomb: bytes) -> None:
    with pytest.raises(UndecodableError, match="more than 200,000 groups and records"):
        decode_traces(bomb)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\xff" * 30, id="noise"),
        pytest.param(b'{"resourceSpans": []}', id="JSON"),
        pytest.param(group(span())[:-1], id="cut off"),
        pytest.param(b"\x0a", id="tag alone"),
        pytest.param(b"\x0a\x05\x12", id="group longer than the request"),
        pytest.param(field(1, b"\x12\x7f" + bytes(3)), id="scope group longer than its group"),
        pytest.param(b"\x02\x00", id="field number 0"),
        pytest.param(b"\x0b\x0c", id="group wire type"),
        pytest.param(b"\x0a" + b"\x80" * 10 + b"\x00", id="length of 11 bytes"),
    ],
)
@pytest.mark.parametrize("decode", [decode_traces, decode_logs])
def test_a_request_without_discernible_groups_is_undecodable(
    body: bytes, decode: Callable[[bytes], object]
) -> None:
    with pytest.raises(UndecodableError):
        decode(body)


def resource_of(**attributes: str) -> bytes:
    return ResourceProto(
        attributes=[
            KeyValue(key=key, value=AnyValue(string_value=value))
            for key, value in attributes.items()
        ]
    ).SerializeToString()


def test_a_repeated_resource_and_a_repeated_scope_are_merged() -> None:
    scopes = ScopeProto(name="first"), ScopeProto(version="2"), ScopeProto(name="last")
    body = field(
        1,
        field(1, resource_of(a="1", b="1"))
        + field(
            2,
            field(1, scopes[0].SerializeToString())
            + field(2, span("a"))
            + b"".join(field(1, scope.SerializeToString()) for scope in scopes[1:]),
        )
        + field(1, resource_of(b="2", c="2")),
    )
    (record,) = decode_traces(body).records
    assert (record.resource, record.scope) == (
        Resource({"a": "1", "b": "2", "c": "2"}),
        Scope("last", "2"),
    )


@pytest.mark.parametrize(
    ("limit", "kept"), [(100, True), (99, False)], ids=["as large as allowed", "one more byte"]
)
def test_the_parts_of_a_repeated_resource_or_scope_are_limited_together(
    limit: int, kept: bool
) -> None:
    resource = field(1, field(1, field(1, b"k" * 46))) * 2 + field(2, field(2, span("a")))
    scope = field(2, field(1, field(1, b"n" * 48)) * 2 + field(2, span("b")))
    decoded = decode_traces(
        field(1, resource) + field(1, scope), limits=DecodeLimits(max_context_bytes=limit)
    )
    assert (names(decoded), decoded.rejected) == (
        (["a", "b"], {}) if kept else ([], {"too_large": 2})
    )


def test_the_attributes_of_a_repeated_resource_are_limited_together() -> None:
    part = field(1, b"\x0a\x00" * 60)
    body = field(1, part * 2 + field(2, field(2, span("a"))))
    decoded = decode_traces(body, limits=DecodeLimits(max_attributes=100))
    assert (names(decoded), decoded.rejected) == ([], {"too_many_attributes": 1})


NAMES = st.sampled_from(["", "a", "b"])
VALUES = st.builds(AnyValue, string_value=NAMES) | st.builds(AnyValue, int_value=st.integers(0, 2))
ATTRIBUTES = st.lists(st.builds(KeyValue, key=NAMES, value=VALUES), max_size=2)


def encoded(number: int, messages: st.SearchStrategy[Message]) -> st.SearchStrategy[bytes]:
    return messages.map(lambda message: field(number, message.SerializeToString()))


def concatenated(number: int, *parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A field whose message consists of any of these fields, in any order and any number."""
    return st.lists(st.one_of(*parts), max_size=5).map(lambda drawn: field(number, b"".join(drawn)))


SPANS = st.builds(
    span,
    NAMES,
    more=st.lists(
        encoded(15, st.builds(Status, message=NAMES, code=st.integers(0, 2)))
        | encoded(9, st.builds(KeyValue, key=NAMES, value=VALUES)),
        max_size=3,
    ).map(b"".join),
).map(partial(field, 2))
SCOPE_GROUPS = concatenated(
    2, encoded(1, st.builds(ScopeProto, name=NAMES, version=NAMES, attributes=ATTRIBUTES)), SPANS
)
RESOURCE_GROUPS = concatenated(
    1, encoded(1, st.builds(ResourceProto, attributes=ATTRIBUTES)), SCOPE_GROUPS
)
REQUESTS = st.lists(RESOURCE_GROUPS, max_size=4).map(b"".join)


@settings(deadline=None, max_examples=examples(200))
@given(REQUESTS, REQUESTS)
def test_fields_in_any_order_and_number_mean_the_same_as_to_protobuf(
    first: bytes, second: bytes
) -> None:
    read_like_protobuf(first + second)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_decoded_or_undecodable(body: bytes) -> None:
    try:
        decode_traces(body)
    except UndecodableError:
        return


@settings(deadline=None, max_examples=examples(300))
@given(st.data())
def test_a_damaged_request_that_protobuf_still_accepts_gives_the_same_valid_spans(
    data: st.DataObject,
) -> None:
    whole = bytearray(
        group(span("a"), span("b"), scope=field(1, b"s"))
        + group(span("c", more=b"\x4a\x04\x0a\x02kk"))
    )
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read_like_protobuf(bytes(whole))
