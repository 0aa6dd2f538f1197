"""The counters of a whole process after traffic of every kind: all input was processed, or dropped
with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import yaml
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from opentelemetry.sdk.trace import ReadableSpan

from pathgauge.collector import testing
from support.running import Collector, until
from support.turns import otlp, otlp_json, script, turn

REFERENCE = {"scenario": "refund", "expected_tools": ["lookup", "refund"]}
CRITERIA = {"tool_trajectory_avg_score": 1.0}
"""Needs a reference, so that invocations without one are skipped."""

PATIENT = {"settle": "3s", "idle": "6s"}
"""A busy machine may take long from one request of a trace to the next."""

SPANS_OF_A_TURN = 6
"""The agent, two tools, three requests to the model."""

TRACES = 7


def right() -> Sequence[ReadableSpan]:
    return turn(script("refund", "lookup", "refund"))


def spans(*of: Span) -> bytes:
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=of)])]
    ).SerializeToString()


def logs(*of: LogRecord) -> bytes:
    return ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=of)])]
    ).SerializeToString()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """A collector that has received everything and has no open traces."""
    folder = tmp_path_factory.mktemp("collector")
    (folder / "references.yaml").write_text(yaml.safe_dump(REFERENCE))
    with Collector(
        folder, references=["references.yaml"], criteria=CRITERIA, assembly=PATIENT
    ) as running:
        send_everything(running)
        assert until(
            lambda: (
                running.value("pathgauge_traces_completed_total") == TRACES
                and not running.value("pathgauge_traces_open")
            )
        )
        yield running


def send_everything(collector: Collector) -> None:
    twice = otlp(right())
    no_agent = (
        testing.span("a", "GET /", trace="web").proto,
        testing.span("b", "SELECT", trace="web", parent="a").proto,
    )
    of_no_trace, of_a_trace = LogRecord(), testing.log("gen_ai.choice", trace="web", span="a").proto
    requests = [
        (
            "/v1/traces",
            otlp(right(), turn(script("refund", "refund"))),
            "application/x-protobuf",
            200,
        ),
        ("/v1/traces", otlp_json(right()), "application/json", 200),
        ("/v1/traces", twice, "application/x-protobuf", 200),
        ("/v1/traces", twice, "application/x-protobuf", 200),
        (
            "/v1/traces",
            otlp(turn(script("unheard-of")), turn(script(""))),
            "application/x-protobuf",
            200,
        ),
        ("/v1/traces", spans(*no_agent, Span(name="without ids")), "application/x-protobuf", 200),
        ("/v1/logs", logs(of_no_trace, of_a_trace), "application/x-protobuf", 200),
        ("/v1/traces", b"hello", "application/x-protobuf", 400),
    ]
    for path, body, content_type, status in requests:
        assert collector.post(path, body, content_type)[0] == status


@pytest.mark.slow
def test_the_receiver_counts_each_record_once(collector: Collector) -> None:
    accepted = collector.series("pathgauge_receiver_accepted_spans_total", "format")
    assert accepted == {
        ("protobuf",): 2 * SPANS_OF_A_TURN - 2 + 2 * SPANS_OF_A_TURN + 2 * 2 + 2,
        ("json",): SPANS_OF_A_TURN,
    }
    assert collector.series("pathgauge_receiver_refused_spans_total", "reason") == {
        ("invalid_id",): 1
    }
    assert collector.series("pathgauge_receiver_requests_total", "signal", "code") == {
        ("traces", "ok"): 5,
        ("traces", "partial_success"): 1,
        ("logs", "ok"): 1,
        ("traces", "undecodable"): 1,
    }


def test_accepted_spans_were_assembled_or_dropped(collector: Collector) -> None:
    assembled, dropped = (
        collector.value(f"pathgauge_spans_{what}_total") for what in ("assembled", "dropped")
    )
    assert collector.value("pathgauge_receiver_accepted_spans_total") == assembled + dropped
    assert collector.series("pathgauge_spans_dropped_total", "reason") == {
        ("duplicate",): SPANS_OF_A_TURN
    }


def test_accepted_log_records_were_assembled_or_dropped(collector: Collector) -> None:
    assembled, dropped = (
        collector.value(f"pathgauge_log_records_{what}_total") for what in ("assembled", "dropped")
    )
    assert (
        collector.value("pathgauge_receiver_accepted_log_records_total") == assembled + dropped == 2
    )
    assert collector.series("pathgauge_log_records_dropped_total", "reason") == {
        ("no_trace_id",): 1
    }


def test_completed_traces_had_invocations_or_were_skipped(collector: Collector) -> None:
    completed = collector.value("pathgauge_traces_completed_total")
    skipped = collector.series("pathgauge_traces_skipped_total", "reason")
    assert (completed, collector.value("pathgauge_traces_opened_total"), skipped) == (
        TRACES,
        TRACES,
        {("no_agent_spans",): 1},
    )
    assert collector.value("pathgauge_invocations_read_total") == completed - sum(skipped.values())


def test_invocations_were_scored_or_skipped(collector: Collector) -> None:
    read = collector.value("pathgauge_invocations_read_total")
    scored = collector.value("pathgauge_invocations_scored_total")
    skipped = collector.series("pathgauge_invocations_skipped_total", "reason")
    assert (read, scored, skipped) == (6, 4, {("unknown_scenario",): 1, ("no_scenario_id",): 1})
    assert collector.value("pathgauge_invocations_total") == read
    assert collector.series(
        "pathgauge_evaluations_total",
        "outcome",
        scenario="refund",
        metric="tool_trajectory_avg_score",
    ) == {
        ("pass",): 3,
        ("fail",): 1,
        ("not_evaluated",): 0,
        ("error",): 0,
    }


def test_the_last_line_of_the_log_says_the_same(collector: Collector) -> None:
    totals = {
        "spans": collector.value("pathgauge_receiver_accepted_spans_total"),
        "invocations": 6,
        "scored": 4,
        "skipped": 2,
    }
    assert collector.stop() == 0
    [line] = collector.events("stopped")
    assert {name: line[name] for name in totals} == totals
