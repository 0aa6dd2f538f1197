"""A trace is exported from the journal as long as it is there, and then from the evidence."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.encode_json import resource_logs, resource_spans
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline_events import Changes, StoredTrace
from pathgauge.collector.core.traces import TraceSnapshot
from pathgauge.collector.offline.export_requests import export_requests
from pathgauge.collector.store import Progress
from pathgauge.collector.store.queries import traces
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.unmatched import unmatched_scenarios
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import log, span, trace_id
from support.evaluated import WALL, commit, evaluation, opened

ORIGIN = Origin("", "grpc", "traces", "protobuf")


def found(folder: Path, name: str, tenant: str | None = None) -> traces.StoredTrace | None:
    with reading(folder) as connection:
        return traces.trace(connection, trace_id(name), tenant)


def send(store: SqliteStore, *spans: Span, tenant: str = "") -> None:
    scopes = [ScopeSpans(spans=[one.proto for one in spans])]
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=scopes)])
    body = request.SerializeToString()
    assert asyncio.run(store.append(Batch(ORIGIN._replace(tenant=tenant), body, spans=spans)))


def send_logs(store: SqliteStore, *logs: LogRecord) -> None:
    scopes = [ScopeLogs(log_records=[one.proto for one in logs])]
    request = ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=scopes)])
    body = request.SerializeToString()
    assert asyncio.run(store.append(Batch(ORIGIN._replace(signal="logs"), body, logs=logs)))


def names(trace: traces.StoredTrace | None) -> list[str]:
    return [] if trace is None else [one.name for one in trace.spans]


def test_a_trace_that_has_just_arrived_is_found_among_others(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        send(store, span("1", "first", trace="a"), span("2", "other", trace="b"))
        send(store, span("3", "second", trace="a"))
        send_logs(store, log("event", trace="a", span="1"), log("event", trace="b"))
        trace = found(tmp_path, "a")
        assert names(trace) == ["first", "second"]
        assert trace is not None
        assert (trace.source, trace.complete, len(trace.logs)) == ("journal", True, 1)
        assert found(tmp_path, "unknown") is None


def know(store: SqliteStore, name: str, row: int) -> None:
    """Store the state of a trace that has this row in the journal."""
    snapshot = TraceSnapshot(("", trace_id(name)), (row,), 5.0, 5.0)
    changes = Changes(traces=(StoredTrace(snapshot, {}),))
    assert store.commit(Progress(2, 5.0, WALL, changes=changes))


def test_the_rows_of_a_known_trace_are_read_without_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as store:
        send(store, span("1", "first", trace="a"))
        send(store, span("2", "later", trace="b"))
        know(store, "a", 1)
        monkeypatch.setattr(traces, "MAX_HEADS", 1)
        assert names(found(tmp_path, "a")) == ["first"]
        assert names(found(tmp_path, "b")) == ["later"]


def test_a_tenant_sees_only_its_own_spans(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        send(store, span("1", "of north", trace="a"), tenant="north")
        send(store, span("2", "of south", trace="a"), tenant="south")
        commit(store, [evaluation("e", tenant="north")])
        assert names(found(tmp_path, "a", "north")) == ["of north"]
        assert names(found(tmp_path, "a", "south")) == ["of south"]
        assert found(tmp_path, "a", "west") is None
        assert found(tmp_path, "e", "south") is None
        assert names(found(tmp_path, "e", "north"))[:1] == ["invoke_agent support"]


def test_a_trace_that_left_the_journal_is_rebuilt_from_its_evidence(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a")])
    trace = found(tmp_path, "a")
    assert trace is not None
    assert (trace.source, trace.complete) == ("evidence", True)
    assert names(trace) == [
        "invoke_agent support",
        "execute_tool find_order",
        "execute_tool track",
    ]


def test_a_damaged_request_is_left_out(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        send(store, span("1", "first", trace="a"))
        send(store, span("2", "second", trace="a"))
    with closing(sqlite3.connect(tmp_path / files.DATABASE)) as connection:
        connection.execute("UPDATE journal SET body = x'00' WHERE id = 1")
        connection.commit()
    assert names(found(tmp_path, "a")) == ["second"]


def test_a_damaged_or_wrong_state_of_a_trace_shows_no_spans_of_others(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        send(store, span("1", "of north", trace="a"), tenant="north")
        know(store, "a", 1)
    assert found(tmp_path, "a", "") is None
    with closing(sqlite3.connect(tmp_path / files.DATABASE)) as connection:
        connection.execute("UPDATE traces SET known = 'no JSON'")
        connection.commit()
    assert names(found(tmp_path, "a")) == ["of north"]


def test_evidence_that_was_cut_gives_a_trace_that_is_not_complete(tmp_path: Path) -> None:
    one = evaluation("a")
    long = replace(one.invocation, user_input="x" * 100_000)
    with opened(tmp_path) as store:
        commit(store, [replace(one, invocation=long)])
    trace = found(tmp_path, "a")
    assert trace is not None
    assert (trace.source, trace.complete) == ("evidence", False)


@pytest.mark.parametrize(
    ("bound", "value"), [("MAX_BYTES", 2_500), ("MAX_RECORDS", 2), ("MAX_REQUESTS", 2)]
)
def test_a_trace_that_is_too_large_is_cut_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    with opened(tmp_path) as store:
        for number in range(4):
            send(store, span(f"{number}", f"{number}", {"k": "x" * 1_000}, trace="a"))
        monkeypatch.setattr(traces, bound, value)
        trace = found(tmp_path, "a")
    assert trace is not None
    assert (names(trace), trace.complete) == (["0", "1"], False)


def test_json_of_a_trace_is_read_as_the_same_records() -> None:
    spans = [
        span("1", "a", {"text": "\x00<b>", "list": [1, 2.5, True, None, b"\xff"]}, parent="0"),
        span("2", "b", resource={"service.name": "s"}, error="failed", events=[("e", {"k": 1})]),
        span("3", "c", scope="lib", resource={"service.name": "s"}, trace_state="pathgauge=c:x"),
    ]
    linked = spans[0].proto
    linked.links.add(trace_id=b"\x01" * 16, span_id=b"\x02" * 8)
    spans.append(Span(linked.SerializeToString(), spans[0].resource, spans[0].scope))
    logs = [log("event", {"k": "v"}, body={"b": [1]}, span="1")]
    document = {"resourceSpans": resource_spans(spans), "resourceLogs": resource_logs(logs)}
    [link] = document["resourceSpans"][-1]["scopeSpans"][0]["spans"][0]["links"]
    assert link == {"traceId": "01" * 16, "spanId": "02" * 8}
    [request] = export_requests(json.dumps(document).encode())
    assert request.rejected == 0
    assert [one.proto for one in request.spans] == [one.proto for one in spans]
    assert [(one.resource, one.scope) for one in request.spans] == [
        (one.resource, one.scope) for one in spans
    ]
    assert [one.proto for one in request.logs] == [one.proto for one in logs]


def test_scenario_ids_without_a_reference_are_counted_by_tenant(tmp_path: Path) -> None:
    def unknown(name: str, scenario: str, tenant: str = "", revision: int = 0) -> Evaluation:
        return evaluation(name, scenario=scenario, tenant=tenant, revision=revision, matched=False)

    runs = [
        unknown("1", "refnd"),
        unknown("1", "refnd", revision=1),
        unknown("2", "refnd"),
        unknown("3", '","unmatched":"unknown_scenario', "north"),
        evaluation("4"),
    ]
    with opened(tmp_path) as store:
        for one in runs:
            commit(store, [one])
    with reading(tmp_path) as connection:
        everything = unmatched_scenarios(connection)
        of_north = unmatched_scenarios(connection, "north")
    assert everything.further_invocations == 0
    assert [tuple(one) for one in everything.scenarios] == [
        ("", "refnd", 2),
        ("north", '","unmatched":"unknown_scenario', 1),
    ]
    assert [tuple(one) for one in of_north.scenarios] == [
        ("north", '","unmatched":"unknown_scenario', 1)
    ]
