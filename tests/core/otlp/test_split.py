"""Splitting a request: the parts together are the whole, and count as the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import DecodeLimits
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.decode_batch import decode_batch
from pathgauge.collector.core.otlp.own_events import EVALUATION_RESULT, SCOPE
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.otlp.split import NO_TRACE, as_protobuf, pieces, split
from pathgauge.collector.core.partitioning import partition_of_trace

LIMITS = DecodeLimits()
TRACES = [bytes([number]) * 16 for number in range(1, 7)]


def text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def traces_request(groups: Sequence[tuple[str, Sequence[tuple[str, Sequence[int]]]]]) -> bytes:
    """Groups of (service, [(scope, [trace])])."""
    request, number = ExportTraceServiceRequest(), 0
    for service, scopes in groups:
        group = request.resource_spans.add()
        group.resource.attributes.append(text("service.name", service))
        for name, traces in scopes:
            scope = group.scope_spans.add()
            scope.scope.name, scope.scope.version = name, "1"
            for trace in traces:
                number += 1
                one = scope.spans.add(trace_id=TRACES[trace], span_id=number.to_bytes(8, "big"))
                one.attributes.append(text("content", service * number))
    return request.SerializeToString()


def logs_request(records: Sequence[int | str]) -> bytes:
    """Each record is the number of a trace, `none` without a trace, or `own`."""
    request = ExportLogsServiceRequest()
    for record in records:
        scope = request.resource_logs.add().scope_logs.add()
        log = scope.log_records.add()
        if isinstance(record, int):
            log.trace_id, log.span_id = TRACES[record], b"\x01" * 8
            log.body.string_value = "text"
        elif record == "own":
            scope.scope.name, log.event_name, log.trace_id = SCOPE, EVALUATION_RESULT, TRACES[0]
    return request.SerializeToString()


def decoded(body: bytes, signal: Any = "traces", encoding: Any = "protobuf") -> Batch:
    return decode_batch(Origin("acme", "http", signal, encoding), body, LIMITS).batch


TRACE_BATCHES = st.builds(
    lambda groups: decoded(traces_request(groups)),
    st.lists(
        st.tuples(
            st.sampled_from(["a", "bb"]),
            st.lists(
                st.tuples(st.sampled_from("xy"), st.lists(st.integers(0, 5), max_size=5)),
                max_size=3,
            ),
        ),
        max_size=4,
    ),
)
LOG_BATCHES = st.builds(
    lambda records: decoded(logs_request(records), "logs"),
    st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["none", "own"])), max_size=12),
)
BATCHES = st.one_of(TRACE_BATCHES, LOG_BATCHES)


def contents(records: Iterable[Span | LogRecord]) -> list[Any]:
    return [(one.tenant, one.raw, one.resource, one.scope) for one in records]


def counted(batches: Iterable[Batch]) -> dict[str, Any]:
    telemetry = InternalTelemetry()
    for batch in batches:
        batch.count(telemetry)
    return {one.name: {key: n for key, n in one.items() if n} for one in telemetry}


def read_again(part: Batch) -> Batch:
    return decode_batch(part.origin, part.body, LIMITS).batch


@given(BATCHES, st.integers(1, 4))
def test_parts_are_the_whole_in_its_order_and_count_as_the_whole(
    batch: Batch, partitions: int
) -> None:
    parts = split(batch, lambda trace: partition_of_trace(trace, partitions))
    records = batch.spans or batch.logs
    for key, part in parts.items():
        expected = [one for one in records if partition_of_trace(one.trace_id, partitions) == key]
        assert contents(part.spans or part.logs) == contents(expected)
    assert Counter(one.raw for part in parts.values() for one in part.spans or part.logs) == (
        Counter(one.raw for one in records)
    )
    assert counted(parts.values()) == counted([batch])


@given(BATCHES)
def test_the_body_of_a_part_decodes_to_its_records_and_counts(batch: Batch) -> None:
    for part in split(batch, lambda trace: trace).values():
        again = read_again(part)
        assert contents(again.spans) == contents(part.spans)
        assert contents(again.logs) == contents(part.logs)
        assert (again.without_trace, again.own_events) == (part.without_trace, part.own_events)


@given(BATCHES)
def test_a_batch_of_one_part_is_not_encoded_again(batch: Batch) -> None:
    assert list(split(batch, lambda _: "all").items()) == [("all", batch)]
    assert split(batch, lambda _: "all")["all"] is batch


def test_records_without_a_trace_go_with_one_part_or_alone() -> None:
    mixed = decoded(logs_request([0, "none", "own", 1, "none"]), "logs")
    parts = split(mixed, lambda trace: trace)
    assert [(part.without_trace, part.own_events) for part in parts.values()] == [(2, 1), (0, 0)]
    alone = decoded(logs_request(["none", "own"]), "logs")
    assert list(split(alone, lambda trace: trace)) == [NO_TRACE]


def test_the_part_of_each_trace_is_asked_once() -> None:
    asked: list[str] = []
    batch = decoded(traces_request([("a", [("x", [0, 1, 0, 2, 1])])]))
    split(batch, lambda trace: asked.append(trace) or trace)  # type: ignore[func-returns-value]
    assert asked == [TRACES[0].hex(), TRACES[1].hex(), TRACES[2].hex()]


def test_a_json_request_is_counted_as_json_when_its_parts_are_protobuf() -> None:
    spans = [{"traceId": trace.hex(), "spanId": "01" * 8, "name": "chat"} for trace in TRACES[:2]]
    body = repr({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).replace("'", '"')
    batch = decoded(body.encode(), encoding="json")
    parts = list(split(batch, lambda trace: trace).values())
    assert [(part.origin.encoding, part.sent_as) for part in parts] == [("protobuf", "json")] * 2
    assert counted(parts) == counted([batch]) == counted([as_protobuf(batch)])
    assert contents(read_again(as_protobuf(batch)).spans) == contents(batch.spans)
    assert as_protobuf(parts[0]) is parts[0]


@given(BATCHES, st.integers(1024, 4096))
def test_pieces_fit_and_are_the_whole(batch: Batch, max_bytes: int) -> None:
    fitting, too_large = pieces(batch, max_bytes)
    assert all(len(piece.body) <= max_bytes for piece in fitting)
    again = [read_again(piece) for piece in fitting]
    assert [one for piece in again for one in contents(piece.spans or piece.logs)] == (
        contents(batch.spans or batch.logs)
    )
    assert too_large == 0
    assert counted(fitting) == counted([batch])


@pytest.mark.parametrize("records", [["none"] * 500, ["own"] * 500, ["none", 1, "own"] * 200])
def test_counted_records_are_cut_too(records: list[Any]) -> None:
    batch = decoded(logs_request(records), "logs")
    fitting, _ = pieces(batch, 1024)
    assert max(len(piece.body) for piece in fitting) <= 1024
    assert counted(read_again(piece) for piece in fitting) == counted([batch])


def test_only_the_record_that_is_too_large_is_left_out() -> None:
    groups = [("a", [("x", [0] * 3)]), ("b" * 700, [("x", [0])]), ("c", [("y", [0] * 2)])]
    batch = decoded(traces_request(groups))
    fitting, too_large = pieces(batch, 1024)
    kept = [one.span_id for piece in fitting for one in piece.spans]
    assert (kept, too_large) == ([f"{n:016x}" for n in (1, 2, 3, 5, 6)], 1)


def test_neighbours_share_the_room_that_their_resource_takes() -> None:
    batch = decoded(traces_request([("service" * 50, [("x", [0] * 2)])]))
    assert len(pieces(batch, 2048).fitting) == 1
