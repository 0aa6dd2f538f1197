"""Spans of the real SDK through the real exporters into a running collector: the gauges that
Prometheus will read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import pytest
import yaml
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcSpanExporter,
)
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpSpanExporter,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import LogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from support.running import Collector, until
from support.turns import otlp_json, script, trace_id, turn

REFERENCES: list[dict[str, Any]] = [
    {
        "scenario": "refund",
        "expected_tools": ["lookup", "refund"],
        "expected_response": "Your money is on its way.",
    },
    {"scenario": "parcel", "expected_tools": ["track"]},
]
CRITERIA = {
    "tool_trajectory_avg_score": 1.0,
    "tool_trajectory_f1": 0.5,
    "response_match_score": 0.7,
    "failure": 0.5,
    "latency": None,
}
PATIENT = {"settle": "1s", "idle": "6s"}
"""A busy machine may take long from one span of a trace to the next."""
RIGHT = script("refund", "lookup", "refund", answer="Your money is on its way.")
HALF_RIGHT = script("refund", "refund", answer="No.")


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """One collector for all tests here; each sends as an agent of its own."""
    folder = tmp_path_factory.mktemp("collector")
    (folder / "references.yaml").write_text(yaml.safe_dump(REFERENCES))
    with Collector(
        folder,
        references=["references.yaml"],
        criteria=CRITERIA,
        windows={"size": 10, "min_samples": 2},
        assembly=PATIENT,
    ) as running:
        yield running


def exporter(collector: Collector, protocol: str) -> SpanExporter:
    if protocol == "grpc":
        return GrpcSpanExporter(
            endpoint=f"http://127.0.0.1:{collector.ports['grpc']}", insecure=True
        )
    return HttpSpanExporter(endpoint=f"http://127.0.0.1:{collector.ports['http']}/v1/traces")


def export(collector: Collector, protocol: str, *turns: Sequence[ReadableSpan]) -> None:
    sender = exporter(collector, protocol)
    try:
        for spans in turns:
            assert sender.export(spans) is SpanExportResult.SUCCESS
    finally:
        sender.shutdown()


def log_exporter(collector: Collector, protocol: str) -> LogRecordExporter:
    if protocol == "grpc":
        return GrpcLogExporter(
            endpoint=f"http://127.0.0.1:{collector.ports['grpc']}", insecure=True
        )
    return HttpLogExporter(endpoint=f"http://127.0.0.1:{collector.ports['http']}/v1/logs")


def scored(collector: Collector, agent: str, invocations: int) -> bool:
    return collector.value("pathgauge_invocations_total", agent=agent) == invocations


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_what_the_sdk_exports_becomes_gauges(collector: Collector, protocol: str) -> None:
    agent = f"{protocol} agent"
    export(
        collector,
        protocol,
        turn(RIGHT, agent, "2.0"),
        turn(HALF_RIGHT, agent, "2.0"),
        turn(script("parcel", "track"), agent, "2.0"),
    )
    assert until(lambda: scored(collector, agent, 3))

    def gauge(name: str) -> dict[tuple[str, ...], float]:
        return collector.series(f"pathgauge_{name}", "scenario", "metric", agent=agent)

    means = gauge("score_window_mean")
    assert {key: value for key, value in means.items() if key[1] != "latency"} == {
        ("refund", "tool_trajectory_avg_score"): 0.5,
        ("refund", "tool_trajectory_f1"): pytest.approx((1 + 2 / 3) / 2),
        ("refund", "response_match_score"): 0.5,
        ("refund", "failure"): 0.0,
        ("parcel", "tool_trajectory_avg_score"): 1.0,
        ("parcel", "tool_trajectory_f1"): 1.0,
        ("parcel", "failure"): 0.0,
    }
    assert 0 < means["refund", "latency"] < 5
    assert gauge("score_window_samples") == {
        key: 2.0 if key[0] == "refund" else 1.0 for key in means
    }
    assert gauge("threshold") == {
        (scenario, metric): threshold
        for scenario in ("refund", "parcel")
        for metric, threshold in CRITERIA.items()
        if threshold is not None
    }
    assert {key for key, value in gauge("threshold_breached").items() if value == 1} == {
        ("refund", "tool_trajectory_avg_score"),
        ("refund", "response_match_score"),
    }


def test_verdicts_are_counted_by_outcome_and_lead_to_their_trace(collector: Collector) -> None:
    agent = "counted agent"
    good, bad = turn(RIGHT, agent, "7"), turn(HALF_RIGHT, agent, "7")
    export(collector, "grpc", good, bad, turn(script("", "lookup"), agent, "7"))
    assert until(lambda: scored(collector, agent, 3))
    counts = collector.series(
        "pathgauge_evaluations_total", "scenario", "metric", "agent_version", "outcome", agent=agent
    )
    assert {key: count for key, count in counts.items() if count} == {
        ("refund", "tool_trajectory_avg_score", "7", "pass"): 1,
        ("refund", "tool_trajectory_avg_score", "7", "fail"): 1,
        ("refund", "tool_trajectory_f1", "7", "pass"): 2,
        ("refund", "response_match_score", "7", "pass"): 1,
        ("refund", "response_match_score", "7", "fail"): 1,
        ("refund", "failure", "7", "pass"): 2,
        ("refund", "latency", "7", "informational"): 2,
        ("", "failure", "7", "pass"): 1,
        ("", "latency", "7", "informational"): 1,
    }
    exemplars = {
        sample.labels["outcome"]: sample.exemplar.labels["trace_id"]
        for family in collector.openmetrics()
        for sample in family.samples
        if sample.name == "pathgauge_evaluations_total"
        and sample.exemplar
        and (sample.labels["agent"], sample.labels["metric"])
        == (agent, "tool_trajectory_avg_score")
    }
    assert exemplars == {"pass": trace_id(good), "fail": trace_id(bad)}


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_messages_that_come_as_log_records_join_their_span(
    collector: Collector, protocol: str
) -> None:
    agent = f"{protocol} agent with logs"
    traces, logs = TracerProvider(), LoggerProvider()
    traces.add_span_processor(SimpleSpanProcessor(exporter(collector, protocol)))
    logs.add_log_record_processor(SimpleLogRecordProcessor(log_exporter(collector, protocol)))
    tracer, logger = traces.get_tracer("tests"), logs.get_logger("tests")
    run = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "test.case.id": "refund",
    }
    said = {"role": "assistant", "content": "Your money is on its way."}
    with tracer.start_as_current_span(f"invoke_agent {agent}", attributes=run):
        for tool in ("lookup", "refund"):
            with tracer.start_as_current_span(
                f"execute_tool {tool}",
                attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool},
            ):
                pass
        with tracer.start_as_current_span(
            "chat m", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        ):
            logger.emit(
                LogRecord(event_name="gen_ai.user.message", body={"content": "Money back!"})
            )
            logger.emit(
                LogRecord(
                    event_name="gen_ai.choice",
                    body={"index": 0, "finish_reason": "stop", "message": said},
                )
            )
    traces.shutdown()
    logs.shutdown()
    assert until(lambda: scored(collector, agent, 1))
    means = collector.series("pathgauge_score_window_mean", "metric", agent=agent)
    assert (means["response_match_score",], means["tool_trajectory_avg_score",]) == (1.0, 1.0)


def test_json_that_any_program_can_post_is_scored(collector: Collector) -> None:
    body = otlp_json(turn(RIGHT, "json agent"))
    assert collector.post("/v1/traces", body, "application/json") == (200, "{}")
    assert until(lambda: scored(collector, "json agent", 1))
    assert (
        collector.series("pathgauge_score_window_mean", "metric", agent="json agent")[
            "tool_trajectory_avg_score",
        ]
        == 1.0
    )


def test_a_request_that_is_no_otlp_is_refused_with_a_reason(collector: Collector) -> None:
    assert collector.post("/v1/traces", b"hello", "application/json")[0] == 400
    assert collector.post("/v1/traces", b"hello", "text/plain")[0] == 415
    refused = collector.series(
        "pathgauge_receiver_requests_total", "signal", "code", transport="http"
    )
    assert (refused["traces", "undecodable"], refused["traces", "unsupported"]) == (1, 1)


def test_probes_answer(collector: Collector) -> None:
    assert collector.get("/healthz") == (200, "ok\n")
    assert collector.get("/readyz") == (200, "ready\n")
    with grpc.insecure_channel(f"127.0.0.1:{collector.ports['grpc']}") as channel:
        check: grpc.UnaryUnaryMultiCallable[HealthCheckRequest, HealthCheckResponse] = (
            channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                HealthCheckRequest.SerializeToString,
                HealthCheckResponse.FromString,
            )
        )
        assert check(HealthCheckRequest(), timeout=10) == HealthCheckResponse(
            status=HealthCheckResponse.SERVING
        )
