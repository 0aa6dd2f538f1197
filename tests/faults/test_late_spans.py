"""A flood of late spans costs about two readings of the trace in `late_ttl`, and none is missing in
the end, with and without restarts.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, resolve
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.testing import span
from support.dialects import INSTALLED

from .sizes import times
from .traffic import request_of
from .virtual import VirtualCollector

pytestmark = pytest.mark.slow

BOUNDS = Bounds(settle=6.0, idle=30.0, max_age=600.0, late_ttl=300.0)
LATE = times(150, 1_000)
APART_S = 7.0
"""A little longer than `settle`: the trace is quiet after each late span."""
PERIODS = LATE * APART_S / BOUNDS.late_ttl
MAX_READINGS = 2.5
"""CPU time of a flood in `late_ttl`, in readings of the trace: two, and the spans themselves."""


@pytest.fixture(scope="module")
def scoring() -> ActiveConfig:
    return resolve(Config(criteria={"tool_calls": None, "failure": 0.5}))


def agent(trace: str) -> Span:
    return span(
        "agent", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, trace=trace, end=9
    )


def tool(number: int, trace: str) -> Span:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": f"tool {number % 10}",
        "gen_ai.tool.call.arguments": "{}",
    }
    return span(f"tool {number}", "execute_tool t", attributes, trace=trace, parent="agent")


def whole(trace: str, spans: int) -> list[Span]:
    return [agent(trace), *(tool(number, trace) for number in range(1, spans))]


def flooded(
    pipeline: Pipeline, traces: list[str], spans: int, late: int
) -> tuple[float, float, list[PipelineEvent]]:
    """CPU time of the first readings, and of everything that late spans cause."""
    events: list[PipelineEvent] = []
    for trace in traces:
        pipeline.feed(whole(trace, spans), (), 0)
    began = time.thread_time()
    events += pipeline.expire(6)
    first = time.thread_time() - began
    began = time.thread_time()
    for number in range(late):
        now = 10 + APART_S * number
        events += expired(pipeline, now)
        for trace in traces:
            events += pipeline.feed([tool(spans + number, trace)], (), now)
    events += expired(pipeline, 10 + APART_S * late + 2 * BOUNDS.late_ttl)
    return first, time.thread_time() - began, events


def expired(pipeline: Pipeline, now: float) -> list[PipelineEvent]:
    events: list[PipelineEvent] = []
    while (deadline := pipeline.deadline()) is not None and deadline <= now:
        events += pipeline.expire(deadline)
    return events


def new_pipeline(scoring: ActiveConfig) -> tuple[Pipeline, InternalTelemetry]:
    telemetry = InternalTelemetry()
    return Pipeline(INSTALLED, scoring.evaluator, scoring.references, telemetry, BOUNDS), telemetry


def tool_calls(events: list[PipelineEvent]) -> dict[str, tuple[int, int]]:
    """Newest revision, and its number of tool calls, by trace."""
    return {
        event.invocation.trace_id: (event.revision, len(event.invocation.tool_calls))
        for event in events
        if isinstance(event, Evaluation)
    }


def test_late_spans_on_large_traces_cost_two_readings_in_each_late_ttl(
    scoring: ActiveConfig,
) -> None:
    # More would not fit into the memory for read traces, without a journal.
    traces, spans = [f"trace {number}" for number in range(times(1, 4))], 9_000
    pipeline, telemetry = new_pipeline(scoring)
    first, later, events = flooded(pipeline, traces, spans, LATE)
    print(f"{LATE} late spans: {later / first / PERIODS:.2f} readings in late_ttl")
    assert later / first / PERIODS < MAX_READINGS, (first, later)
    assert {calls for _, calls in tool_calls(events).values()} == {spans - 1 + LATE}
    assert max(revision for revision, _ in tool_calls(events).values()) <= PERIODS + 2
    assert telemetry.spans_assembled.total() == len(traces) * (spans + LATE)
    assert telemetry.spans_dropped.items() == []


def test_late_spans_of_a_small_trace_are_scored_one_after_the_other(scoring: ActiveConfig) -> None:
    pipeline, _ = new_pipeline(scoring)
    _, _, events = flooded(pipeline, ["small"], 20, 40)
    assert list(tool_calls(events).values()) == [(40, 19 + 40)]


def run(folder: Path, scoring: ActiveConfig, restart_every: int) -> VirtualCollector:
    """A collector that was stopped after a flood on one large trace, and after many restarts."""
    collector = VirtualCollector(folder, scoring, BOUNDS)
    collector.start()
    collector.send([request_of(0, whole("large", 2_000))])
    collector.wait(10)
    collector.commit()
    late = times(60, 300)
    for number in range(1, late + 1):
        collector.send([request_of(number, [tool(2_000 + number, "large")])])
        collector.wait(APART_S)
        if number % 3:
            collector.commit()
        if restart_every and number % restart_every == 0:
            collector.crash()
            collector.start()
    collector.wait(2 * BOUNDS.late_ttl)
    collector.commit()
    collector.crash()
    return collector


@pytest.mark.parametrize("restart_every", [1, 4, 0])
def test_restarts_neither_lose_late_spans_nor_read_the_trace_more_often(
    tmp_path: Path, scoring: ActiveConfig, restart_every: int
) -> None:
    collector = run(tmp_path, scoring, restart_every)
    late = times(60, 300)
    [(revision, calls)] = tool_calls([*collector.told]).values()
    assert calls == 1_999 + late
    pause = 2_000 * 750 / 14_000
    assert revision <= 2 + late * APART_S / pause
    assert collector.telemetry.spans_assembled.total() == 2_000 + late
