"""A trace that never ends is cut and flagged, and does not delay other traces."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from pathgauge.collector.testing import span
from support.running import Collector, until
from support.turns import otlp, script, turn

pytestmark = pytest.mark.slow

REQUESTS, SPANS, MAX_SPANS = 30, 1000, 4_500
AGENT = MAX_SPANS // SPANS
"""The request that makes it too large, so that its trace cannot be taken for complete before."""
ORDINARY = 40


def test_a_giant_trace_is_cut_and_the_others_are_scored_in_time(tmp_path: Path) -> None:
    with Collector(
        tmp_path, store={}, assembly={"settle": "1s", "idle": "30s", "max_trace_spans": MAX_SPANS}
    ) as collector:

        def send_giant() -> None:
            for number in range(REQUESTS):
                assert collector.post("/v1/traces", giant(number))[0] == 200

        giant_sender = threading.Thread(target=send_giant)
        giant_sender.start()
        for _ in range(ORDINARY):
            assert collector.post("/v1/traces", otlp(turn(script("", "lookup"))))[0] == 200
        giant_sender.join()
        assert until(lambda: collector.value("pathgauge_invocations_read_total") == ORDINARY + 1)
        assert until(
            lambda: collector.value("pathgauge_invocation_flags_total", flag="dropped_spans") == 1
        )
        assert collector.series("pathgauge_traces_completed_total", "reason") == {
            ("root_ended",): ORDINARY,
            ("too_big",): 1,
        }
        dropped = REQUESTS * SPANS - MAX_SPANS - 1
        until(
            lambda: (
                collector.value("pathgauge_spans_dropped_total", reason="trace_too_big") == dropped
            )
        )
        assert collector.value("pathgauge_spans_dropped_total", reason="trace_too_big") == dropped
        in_time = collector.value("pathgauge_evaluation_lag_seconds_bucket", le="10.0")
        assert in_time == ORDINARY


def giant(number: int) -> bytes:
    """A part of a trace whose agent never stops; its times are long past."""
    spans = [
        span(
            f"{number}-{tool}",
            "execute_tool x",
            {"gen_ai.operation.name": "execute_tool"},
            parent="agent",
        )
        for tool in range(SPANS)
    ]
    if number == AGENT:
        spans[0] = span(
            "agent",
            "invoke_agent giant",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "giant"},
        )
    scope = ScopeSpans(spans=[one.proto for one in spans])
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[scope])]
    ).SerializeToString()
