"""Every query of every dashboard has an answer: the demo's agents and some odd senders into the
service, scraped by a real Prometheus.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from pathgauge.collector.cli.demo import session
from pathgauge.collector.cli.demo.traffic import run_agents
from support.dashboards import (
    BOARDS,
    LABEL_VALUES,
    Target,
    annotation_queries,
    filled,
    targets,
    variables,
)
from support.judge_server import JudgeServer, answering
from support.monitoring import ONLY_MAKE_E2E, Prometheus
from support.running import Collector, until
from support.turns import otlp, script, trace_id, turn

pytestmark = [pytest.mark.e2e, ONLY_MAKE_E2E]

TOKEN = "a-token-of-the-only-tenant"
CONVERSATION = {
    "scenario": "two-turns",
    "turns": [{"expected_tools": ["lookup"]}, {"expected_tools": ["refund"]}],
}
CONFIGURATION: dict[str, Any] = {
    "references": [
        str(Path(session.__file__).parent / "references" / "*.yaml"),
        "references.yaml",
    ],
    "criteria": {
        "tool_trajectory_avg_score": 1.0,
        "tool_trajectory_f1": {"threshold": 0.9, "objective": 0.95},
        "response_match_score": 0.7,
        "safety_v1": {"threshold": 0.9, "objective": 0.95, "samples": 3},
    },
    "scenario": {"expected_interval": "1h"},
    "assembly": {"settle": "200ms", "idle": "400ms", "max_age": "5s", "late_ttl": "2s"},
    "windows": {"size": 10, "min_samples": 2},
    "conversations": {"idle": "1s"},
    "redaction": {},
    "canary": {"interval": "1s"},
    "store": {"path": "data"},
    "exporters": {
        "prometheus": {"endpoint": "127.0.0.1:0"},
        "otlp": {
            "endpoint": "http://127.0.0.1:1",
            "protocol": "http/protobuf",
            "timeout": "1s",
        },  # where nothing listens
    },
}
JUDGE = {
    "model": "local:judge",
    "sample_rate": 0.7,
    "budget": {"usd_per_day": 1000},
    "prices": {"judge": {"input": 0.4, "output": 1.6}},
}
SAFE = answering(reasoning="There is nothing unsafe.", verdict="safe")
TENANTS = {"team-a": {"token_file": "token"}, "team-b": {"token_file": "other-token"}}
ALERT = {"alert": "PathgaugeScoreBelowThreshold", "labels": {"severity": "warning"}}
RULES = {
    "groups": [
        {
            "name": "alerts",
            "rules": [
                {
                    **ALERT,
                    "expr": "max by (agent, scenario, metric) (pathgauge_threshold_breached) == 1",
                }
            ],
        }
    ]
}
AGES = {"start": "2000-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}
RANGE = "5m"
"""Longer than the tests take."""
OF_SEVERAL_PROCESSES = re.compile(r"pathgauge_(scorer|kafka|partitions?|publications|gauge)_")
"""What one process alone does not export."""
NOTHING_YET = " or vector(0)"
"""What figures show where there is nothing to count. Here there must be something."""


TARGETS = {
    f"{target.board}: {target.panel}: {number}": target
    for number, target in enumerate(targets())
    if not OF_SEVERAL_PROCESSES.search(target.expr)
}


def post(service: Collector, signal: str, body: bytes | dict[str, Any]) -> None:
    kind = "application/x-protobuf" if isinstance(body, bytes) else "application/json"
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert service.post(f"/v1/{signal}", raw, kind, Authorization=f"Bearer {TOKEN}")[0] == 200


def failed(body: bytes) -> bytes:
    """The same turn, with an error on the span of the agent."""
    request = ExportTraceServiceRequest.FromString(body)
    for span in request.resource_spans[0].scope_spans[0].spans:
        if not span.parent_span_id:
            span.status.code = Status.STATUS_CODE_ERROR
    return request.SerializeToString()


def span(trace: str, **attributes: str) -> dict[str, Any]:
    """A span of an agent without messages, as OTLP/JSON."""
    listed = [
        {"key": key.replace("_", "."), "value": {"stringValue": value}}
        for key, value in attributes.items()
    ]
    times = {"startTimeUnixNano": "1767225600000000000", "endTimeUnixNano": "1767225601000000000"}
    found = {
        "traceId": trace,
        "spanId": trace[:16],
        "name": "invoke_agent",
        **times,
        "attributes": listed,
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [found]}]}]}


def log(trace: str, **more: Any) -> dict[str, Any]:
    record = {
        "timeUnixNano": "1767225600000000000",
        "traceId": trace,
        "body": {"stringValue": "said"},
        **more,
    }
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}


def converse(service: Collector, conversation: str) -> None:
    for tool in ("lookup", "refund"):
        post(
            service,
            "traces",
            otlp(turn(script("two-turns", tool), "talker", conversation=conversation)),
        )


def rate(service: Collector, trace: str, score: float) -> None:
    """What a user says of the run of a trace, from -1 to 1."""
    answer = {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": score}}
    said = log(trace, eventName="gen_ai.evaluation.user_feedback", attributes=[answer])
    post(service, "logs", said)


def send_rated_turns(service: Collector) -> None:
    """Users agree with the criteria."""
    for tool, score in (("lookup", 1.0), ("refund", -1.0)):
        spans = turn(script("two-turns", tool), "talker", conversation=f"rated {tool}")
        post(service, "traces", otlp(spans))
        rate(service, trace_id(spans), score)


def send_odd_things(service: Collector, server: Prometheus) -> None:
    """What the example agents never do: conversations, errors, unknown scenarios, bad ids, spans
    that come too late, answers of users.
    """
    operation = {"gen_ai_operation_name": "invoke_agent", "gen_ai_agent_name": "bare"}
    converse(service, "first")
    send_rated_turns(service)
    post(service, "traces", failed(otlp(turn(script("", "lookup"), "failing"))))
    post(service, "traces", otlp(turn(script("no-such-scenario", "lookup"), "lost")))
    post(service, "traces", span("1" * 32, **operation, contact="jo@example.org"))
    post(service, "traces", span("0" * 32, **operation))
    post(service, "logs", log("2" * 32, spanId="2" * 16))
    post(service, "logs", log(""))
    post(service, "logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": ["no record"]}]}]})
    assert until(lambda: server.get("query", query="pathgauge_cases_total"))
    converse(service, "second")  # a rate sees how a series changes, not that it is new
    assert until(lambda: server.get("query", query="pathgauge_case_score_count > 1"))
    canaries = service.value("pathgauge_canary_traces_total")
    assert until(lambda: service.value("pathgauge_canary_traces_total") > canaries + 3), (
        "one a second, until `late_ttl` is over"
    )
    late = span("1" * 32, **operation)
    late["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "3" * 16
    post(service, "traces", late)


def judge_at(model: JudgeServer) -> dict[str, Any]:
    return {**JUDGE, "providers": {"local": {"base_url": model.url, "allow_private": True}}}


@pytest.fixture(
    name="tenants",
    scope="module",
    params=[{}, {"auth": {"tenants": TENANTS}}],
    ids=["one tenant", "tenants"],
)
def _tenants(request: pytest.FixtureRequest) -> dict[str, Any]:
    """With several tenants all that is said of agents has a label more."""
    configuration: dict[str, Any] = request.param
    return configuration


@pytest.fixture(name="server", scope="module")
def _server(
    tenants: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """A Prometheus that has scraped a service with all that the dashboards show."""
    folder = tmp_path_factory.mktemp("dashboards")
    (folder / "rules.json").write_text(json.dumps(RULES))
    (folder / "token").write_text(TOKEN)
    (folder / "other-token").write_text(TOKEN[::-1])
    (folder / "references.yaml").write_text(yaml.safe_dump(CONVERSATION))
    stop = threading.Event()
    with (
        JudgeServer(SAFE) as model,
        Collector(folder, **CONFIGURATION, **tenants, judge=judge_at(model)) as service,
        Prometheus(folder, service.ports["metrics"], folder / "rules.json") as server,
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{TOKEN}")
        ends = f"127.0.0.1:{service.ports['grpc']}", f"http://127.0.0.1:{service.ports['http']}"
        agents = threading.Thread(
            target=run_agents,
            args=(*ends, stop),
            kwargs={"regress_after_s": 20, "repair_after_s": 600},
        )
        agents.start()
        try:
            send_odd_things(service, server)
            assert until(lambda: server.get("query", query="ALERTS"), 60)
            assert until(lambda: server.get("query", query="pathgauge_drift_evidence_days"), 60)
            assert until(
                lambda: server.get("query", query='pathgauge_spans_dropped_total{reason="late"}')
            )
            yield server
        finally:
            stop.set()
            agents.join()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_panel_shows_something(server: Prometheus, target: Target) -> None:
    query = filled(target.expr, RANGE).replace(NOTHING_YET, "")
    assert until(
        lambda: [
            one
            for one in server.get("query", query=query)
            if not math.isnan(float(one["value"][1]))
        ]
    ), query


@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if target.exemplar])
def test_a_panel_with_exemplars_has_traces(server: Prometheus, name: str) -> None:
    found = until(
        lambda: server.get("query_exemplars", query=filled(TARGETS[name].expr, RANGE), **AGES)
    )
    ids = {exemplar["labels"]["trace_id"] for series in found for exemplar in series["exemplars"]}
    assert ids
    assert {len(trace_id) for trace_id in ids} == {32}


@pytest.mark.parametrize(("board", "expr"), list(annotation_queries()))
def test_a_mark_has_something_to_mark(server: Prometheus, board: str, expr: str) -> None:
    assert until(lambda: server.get("query", query=filled(expr))), board


@pytest.mark.parametrize(
    "query",
    sorted(
        {
            variable["query"]
            for board in BOARDS
            for variable in variables(board)
            if variable["type"] == "query"
        }
    ),
)
def test_a_variable_has_values(server: Prometheus, tenants: dict[str, Any], query: str) -> None:
    selector = LABEL_VALUES.fullmatch(query)
    assert selector
    found = server.get(f"label/{selector[2]}/values", **{"match[]": filled(selector[1])})
    assert bool(found) == (selector[2] != "tenant" or bool(tenants))
