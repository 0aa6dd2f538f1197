"""Jaeger's JSON is translated back to OTLP field by field; malformed data is counted and affects
nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.otlp.spans import Resource, Scope, Span
from pathgauge.collector.offline import jaeger
from pathgauge.collector.offline.trace_files import TraceFiles, read_path
from pathgauge.scorers.matching.wording import counted

TRACE_ID, SPAN_ID, PARENT_ID = (
    "0af7651916cd43dd8448eb211c80319c",
    "b7ad6b7169203331",
    "00f067aa0ba902b7",
)
OTHER_TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


def tag(key: str, value: Any, kind: str = "string") -> dict[str, Any]:
    return {"key": key, "type": kind, "value": value}


def reference(kind: str, span_id: str, trace_id: str = TRACE_ID) -> dict[str, str]:
    return {"refType": kind, "traceID": trace_id, "spanID": span_id}


def span(**fields: Any) -> dict[str, Any]:
    return {
        "traceID": TRACE_ID,
        "spanID": SPAN_ID,
        "operationName": "chat",
        "references": [],
        "startTime": 1_700_000_000_000_001,
        "duration": 250,
        "tags": [],
        "logs": [],
        "processID": "p1",
        "warnings": None,
        **fields,
    }


def trace(*spans: Any, **fields: Any) -> dict[str, Any]:
    processes = {"p1": {"serviceName": "shop", "tags": []}}
    return {
        "traceID": TRACE_ID,
        "spans": list(spans),
        "processes": processes,
        "warnings": None,
        **fields,
    }


def answer(*traces: Any) -> dict[str, Any]:
    return {"data": list(traces), "total": 0, "limit": 0, "offset": 0, "errors": None}


def read(folder: Path, document: Any) -> TraceFiles:
    (folder / "traces.json").write_text(json.dumps(document))
    return read_path(folder / "traces.json")


def read_one(folder: Path, **fields: Any) -> Span:
    files = read(folder, answer(trace(span(**fields))))
    assert files.notes == []
    [one] = files.spans
    return one


def test_every_field_is_restored() -> None:
    source = span(
        references=[
            reference("CHILD_OF", PARENT_ID),
            reference("FOLLOWS_FROM", SPAN_ID, OTHER_TRACE_ID),
        ],
        flags=1,
        tags=[
            tag("gen_ai.request.model", "gpt-4o"),
            tag("otel.scope.name", "my.library"),
            tag("otel.scope.version", "1.2"),
            tag("span.kind", "client"),
            tag("otel.status_code", "ERROR"),
            tag("otel.status_description", "no answer"),
            tag("error", True, "bool"),
            tag("w3c.tracestate", "vendor=1"),
            tag("otel.dropped_attributes_count", 3, "int64"),
            tag("otel.dropped_events_count", 4, "int64"),
            tag("otel.dropped_links_count", 5, "int64"),
        ],
        logs=[
            {
                "timestamp": 1_700_000_000_000_100,
                "fields": [tag("exception.type", "ValueError"), tag("event", "exception")],
            }
        ],
    )
    process = {
        "serviceName": "shop",
        "tags": [tag("service.version", "7"), tag("process.pid", 12, "int64")],
    }
    assert jaeger.export_request(answer(trace(source, processes={"p1": process}))) == {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": [
                        {"key": "service.version", "value": {"stringValue": "7"}},
                        {"key": "process.pid", "value": {"intValue": 12}},
                        {"key": "service.name", "value": {"stringValue": "shop"}},
                    ]
                },
                "scopeSpans": [
                    {
                        "scope": {"name": "my.library", "version": "1.2"},
                        "spans": [
                            {
                                "traceId": TRACE_ID,
                                "spanId": SPAN_ID,
                                "parentSpanId": PARENT_ID,
                                "traceState": "vendor=1",
                                "name": "chat",
                                "kind": 3,
                                "startTimeUnixNano": "1700000000000001000",
                                "endTimeUnixNano": "1700000000000251000",
                                "attributes": [
                                    {
                                        "key": "gen_ai.request.model",
                                        "value": {"stringValue": "gpt-4o"},
                                    }
                                ],
                                "droppedAttributesCount": 3,
                                "events": [
                                    {
                                        "timeUnixNano": "1700000000000100000",
                                        "name": "exception",
                                        "attributes": [
                                            {
                                                "key": "exception.type",
                                                "value": {"stringValue": "ValueError"},
                                            }
                                        ],
                                    }
                                ],
                                "droppedEventsCount": 4,
                                "links": [{"traceId": OTHER_TRACE_ID, "spanId": SPAN_ID}],
                                "droppedLinksCount": 5,
                                "status": {"code": 2, "message": "no answer"},
                            }
                        ],
                    }
                ],
            }
        ]
    }


@pytest.mark.parametrize(
    ("fields", "parent", "links"),
    [
        pytest.param({"references": []}, None, [], id="none"),
        pytest.param({"references": None}, None, [], id="null"),
        pytest.param({"references": [reference("CHILD_OF", PARENT_ID)]}, PARENT_ID, [], id="child"),
        pytest.param(
            {"references": [reference("FOLLOWS_FROM", PARENT_ID)]},
            PARENT_ID,
            [],
            id="parent that is also linked to",
        ),
        pytest.param(
            {"references": [reference("FOLLOWS_FROM", SPAN_ID), reference("CHILD_OF", PARENT_ID)]},
            PARENT_ID,
            [SPAN_ID],
            id="child second",
        ),
        pytest.param(
            {"references": [reference("CHILD_OF", PARENT_ID), reference("CHILD_OF", SPAN_ID)]},
            PARENT_ID,
            [SPAN_ID],
            id="two parents",
        ),
        pytest.param(
            {"references": [reference("CHILD_OF", PARENT_ID, OTHER_TRACE_ID)]},
            None,
            [PARENT_ID],
            id="child of another trace",
        ),
        pytest.param(
            {"references": [], "parentSpanID": PARENT_ID}, PARENT_ID, [], id="older export"
        ),
        pytest.param(
            {"references": [reference("CHILD_OF", "f067aa0ba902b7")]},
            PARENT_ID,
            [],
            id="without leading zeros",
        ),
        pytest.param({"parentSpanID": "0"}, None, [], id="zero"),
    ],
)
def test_the_parent_is_that_of_jaeger(
    fields: dict[str, Any], parent: str | None, links: list[str], tmp_path: Path
) -> None:
    one = read_one(tmp_path, **fields)
    assert (one.parent_id, [link.span_id.hex() for link in one.proto.links]) == (parent, links)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (tag("a", "text"), "text"),
        (tag("a", "true"), "true"),
        (tag("a", True, "bool"), True),
        (tag("a", 7, "int64"), 7),
        (tag("a", "9223372036854775222", "int64"), 9223372036854775222),
        (tag("a", 2, "float64"), 2.0),
        (tag("a", "AAAwOQ==", "binary"), b"\0\x0009"),
        ({"key": "a", "value": "text"}, "text"),
        ({"key": "a", "value": False}, False),
        ({"key": "a", "value": 7}, 7),
        ({"key": "a", "value": 7.5}, 7.5),
    ],
    ids=repr,
)
def test_tags_keep_their_types(source: dict[str, Any], expected: object, tmp_path: Path) -> None:
    [value] = read_one(tmp_path, tags=[source]).attributes.values()
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("tags", "status", "attributes"),
    [
        pytest.param([], (0, ""), {}, id="unset"),
        pytest.param([tag("otel.status_code", "OK")], (1, ""), {}, id="ok"),
        pytest.param(
            [tag("otel.status_code", "ERROR"), tag("otel.status_description", "why")],
            (2, "why"),
            {},
            id="error",
        ),
        pytest.param([tag("error", True, "bool")], (2, ""), {}, id="error of other tracers"),
        pytest.param(
            [tag("error", True, "bool"), tag("otel.status_code", "OK")],
            (2, ""),
            {},
            id="the error flag wins",
        ),
        pytest.param([tag("error", False, "bool")], (0, ""), {"error": False}, id="no error"),
        pytest.param(
            [tag("error", "timeout")], (0, ""), {"error": "timeout"}, id="an attribute called error"
        ),
    ],
)
def test_the_status_comes_from_tags(
    tags: list[dict[str, Any]],
    status: tuple[int, str],
    attributes: dict[str, object],
    tmp_path: Path,
) -> None:
    one = read_one(tmp_path, tags=tags)
    assert ((one.status, one.status_message), one.attributes) == (status, attributes)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (None, 1),
        ("internal", 1),
        ("server", 2),
        ("client", 3),
        ("producer", 4),
        ("consumer", 5),
        ("other", 0),
    ],
)
def test_kinds_come_from_a_tag_and_are_internal_without_one(
    kind: str | None, number: int, tmp_path: Path
) -> None:
    assert read_one(tmp_path, tags=[tag("span.kind", kind)] if kind else []).proto.kind == number


def test_older_exporters_call_scopes_libraries(tmp_path: Path) -> None:
    one = read_one(
        tmp_path, tags=[tag("otel.library.name", "old"), tag("otel.library.version", "0.1")]
    )
    assert (one.scope, one.attributes) == (Scope("old", "0.1"), {})


def test_a_span_needs_only_ids_and_times(tmp_path: Path) -> None:
    source = {"traceID": TRACE_ID, "spanID": SPAN_ID, "startTime": 1, "duration": 2}
    files = read(tmp_path, answer(trace(source)))
    assert [
        (one.span_id, one.parent_id, one.name, one.start_ns, one.end_ns) for one in files.spans
    ] == [(SPAN_ID, None, "", 1000, 3000)]
    assert files.notes == []


def test_ids_get_their_leading_zeros_back(tmp_path: Path) -> None:
    one = read_one(tmp_path, traceID="abc0", spanID="123")
    assert (one.trace_id, one.span_id) == ("0" * 28 + "abc0", "0" * 13 + "123")


def test_fractions_of_microseconds_are_read_as_grafana_writes_them(tmp_path: Path) -> None:
    one = read_one(tmp_path, startTime=1_000_000_000_000.5, duration=0.25)
    assert (one.start_ns, one.end_ns) == (1_000_000_000_000_500, 1_000_000_000_000_750)


def test_a_log_without_an_event_field_has_no_name(tmp_path: Path) -> None:
    [event] = read_one(
        tmp_path, logs=[{"timestamp": 1, "fields": [tag("message", "hello")]}]
    ).events
    assert (event.name, event.time_ns, event.attributes) == ("", 1000, {"message": "hello"})


def test_spans_belong_to_their_process(tmp_path: Path) -> None:
    processes = {
        "p1": {"serviceName": "shop", "tags": None},
        "p2": {"serviceName": "OTLPResourceNoServiceName", "tags": [tag("host.name", "h")]},
    }
    spans = [
        span(spanID=f"a{number}", processID=process)
        for number, process in enumerate(["p2", "p1", "p3", "p2"])
    ]
    files = read(tmp_path, answer(trace(*spans, processes=processes)))
    assert files.notes == []
    assert {one.span_id[-1]: one.resource for one in files.spans} == {
        "0": Resource({"host.name": "h"}),
        "1": Resource({"service.name": "shop"}),
        "2": Resource({}),
        "3": Resource({"host.name": "h"}),
    }


TWO = [trace(span(spanID="a1")), trace(span(spanID="a2", traceID=OTHER_TRACE_ID))]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(answer(*TWO)), id="answer of the API"),
        pytest.param("\n\n" + json.dumps(answer(*TWO), indent=2), id="pretty, behind blank lines"),
        pytest.param(json.dumps(TWO), id="list"),
        pytest.param("\n".join(map(json.dumps, TWO)), id="a trace a line"),
        pytest.param("\n".join(json.dumps(answer(one)) for one in TWO), id="an answer a line"),
        pytest.param(
            json.dumps([{key: one[key] for key in ("spans", "processes")} for one in TWO]),
            id="traces without an id",
        ),
        pytest.param(
            json.dumps([{key: one[key] for key in ("spans", "traceID")} for one in TWO]),
            id="traces without processes",
        ),
    ],
)
def test_traces_are_found_inside_every_wrapper(text: str, tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(text)
    files = read_path(tmp_path / "traces.json")
    assert ([(one.trace_id, one.span_id[-2:]) for one in files.spans], files.notes) == (
        [(TRACE_ID, "a1"), (OTHER_TRACE_ID, "a2")],
        [],
    )


MALFORMED_SPANS = {
    "null": None,
    "text": "span",
    "nothing": {},
    "no trace id": {key: value for key, value in span().items() if key != "traceID"},
    "number as id": span(spanID=7),
    "no hex": span(spanID="xyz"),
    "too long": span(traceID="1" * 33),
    "zeros": span(spanID="0"),
    "empty id": span(traceID=""),
    "time as text": span(startTime="now"),
    "no time": span(startTime=None),
    "negative time": span(startTime=-1),
    "endless": span(duration=1e308),
    "tags are text": span(tags="error"),
    "a tag is text": span(tags=["error"]),
    "a tag without key": span(tags=[{"value": 1}]),
    "a tag without value": span(tags=[{"key": "a"}]),
    "a tag of unknown type": span(tags=[tag("a", "x", "decimal")]),
    "a tag of the wrong type": span(tags=[tag("a", "x", "int64")]),
    "a tag that holds an object": span(tags=[{"key": "a", "value": {"b": 1}}]),
    "kind is a list": span(tags=[tag("span.kind", [])]),
    "a log without time": span(logs=[{"fields": []}]),
    "a reference without id": span(references=[{"refType": "CHILD_OF", "traceID": TRACE_ID}]),
}


@pytest.mark.parametrize("name", MALFORMED_SPANS)
def test_a_malformed_span_is_rejected_alone(name: str, tmp_path: Path) -> None:
    files = read(
        tmp_path, answer(trace(span(spanID="a1"), MALFORMED_SPANS[name], span(spanID="a2")))
    )
    assert [one.span_id[-2:] for one in files.spans] == ["a1", "a2"]
    assert files.notes == [f"{tmp_path}/traces.json: rejected 1 record as invalid OTLP"]


@pytest.mark.parametrize(
    ("malformed", "rejected"),
    [
        pytest.param("trace", 1, id="text"),
        pytest.param({}, 1, id="nothing"),
        pytest.param(trace() | {"spans": None}, 1, id="no spans"),
        pytest.param(trace(span(), span(), processes=["p1"]), 2, id="processes are a list"),
        pytest.param(trace(span(), span(), processes={"p1": "shop"}), 2, id="a process is text"),
        pytest.param(
            trace(span(), span(), processes={"p1": {"serviceName": "shop", "tags": ["x"]}}),
            2,
            id="tag of a process",
        ),
    ],
)
def test_a_malformed_trace_is_rejected_alone(malformed: Any, rejected: int, tmp_path: Path) -> None:
    files = read(tmp_path, answer(malformed, trace(span(spanID="a1"))))
    assert [one.span_id[-2:] for one in files.spans] == ["a1"]
    assert files.notes == [
        f"{tmp_path}/traces.json: rejected {counted(rejected, 'record')} as invalid OTLP"
    ]


@pytest.mark.parametrize(
    "document",
    [
        None,
        7,
        [],
        {},
        {"data": None},
        {"data": []},
        {"data": [{"spans": []}]},
        {"spans": []},
        {"data": {}},
    ],
)
def test_other_documents_are_not_jaeger(document: Any) -> None:
    assert jaeger.export_request(document) is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something can be replaced, from the outside in."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


WHOLE = answer(
    trace(
        span(
            references=[reference("CHILD_OF", PARENT_ID)],
            tags=[tag("a", "b")],
            logs=[{"timestamp": 1, "fields": [tag("event", "e")]}],
        ),
        span(spanID="a1"),
    )
)


@settings(deadline=None)
@given(st.sampled_from([place for place in places(WHOLE) if len(place) > len(("data", 0))]), JSON)
def test_every_span_of_a_damaged_trace_is_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: Any
) -> None:
    document = deepcopy(WHOLE)
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    files = read(tmp_path_factory.mktemp("any"), document)
    rejected = [int(note.partition("rejected ")[2].split()[0]) for note in files.notes]
    spans = document["data"][0]["spans"]
    assert len(files.spans) + sum(rejected) == (len(spans) if isinstance(spans, list) else 1)
