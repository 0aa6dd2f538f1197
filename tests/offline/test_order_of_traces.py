"""The scores of a file do not depend on the order of its traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.replay import replay
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from pathgauge.scorers.types import Reference
from support.by_hand import INPUT, REASONS, invocation, text
from support.examples import examples
from support.turns import json_of

LEFT_OUT: dict[str, Any] = {
    "answer": None,
    "chats": [{INPUT: text("user", "Refund it."), REASONS: ["stop"]}],
}
TRACES = [
    invocation("look", trace="tool", scenario="s", start=0),
    invocation(trace="no tool", scenario="s", start=100),
    invocation(trace="no answer", scenario="s", start=200, **LEFT_OUT),
    invocation(trace="content off", scenario="s", start=300, answer=None),
    invocation(trace="other version", scenario="s", start=400, version="2"),
]
EVALUATOR = Evaluator(
    (
        Criterion("trajectory", ToolTrajectoryAvgScore()),
        Criterion("response", ResponseMatchScore()),
    )
)
REFERENCES = ReferenceSet(
    [Reference("s", (reference_turn(*expected_calls("look"), response="Done."),))]
)


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.permutations(TRACES))
def test_what_one_trace_shows_counts_for_all_others(tmp_path: Path, traces: list[Any]) -> None:
    file = tmp_path / "traces.jsonl"
    requests = (ExportTraceServiceRequest.FromString(encode_request(one)) for one in traces)
    file.write_bytes(b"\n".join(json_of(request) for request in requests))
    [replayed] = replay([file], EVALUATOR, REFERENCES, DEFAULT_KEYS)
    assert [
        [one.score.reason or one.score.value for one in evaluation.results]
        for evaluation in replayed.evaluations
    ] == [
        [1.0, 1.0],
        [0.0, 1.0],
        [0.0, 0.0],
        [0.0, "response_not_recorded"],
        ["tools_not_recorded", 1.0],
    ]
