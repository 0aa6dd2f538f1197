"""Forwarded turns that arrive when the number of partitions is another one."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from pathgauge import ToolCalls
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import (
    Partition,
    partition_of_conversation,
    partition_of_trace,
)
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds, Recalled
from pathgauge.collector.testing import span
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.dialects import INSTALLED

REFERENCES = ReferenceSet([Reference("talk", (ReferenceTurn(), ReferenceTurn()))])
BOUNDS = Bounds(settle=1.0, late_ttl=1_000.0)
BEFORE, AFTER = 3, 4
"""Numbers of partitions. 4 of them leave the states of traces as they were."""


def pipeline(number: int, total: int, stored: list[Span]) -> Pipeline:
    return Pipeline(
        INSTALLED,
        Evaluator((Criterion("tool_calls", ToolCalls()),)),
        REFERENCES,
        InternalTelemetry(),
        BOUNDS,
        recall=lambda key, rows: [Recalled(0.0, stored, ())],
        partition=Partition(number, total),
    )


def tool_calls(events: list[PipelineEvent]) -> dict[int, float | None]:
    """The value of each revision."""
    return {
        event.revision: event.results[0].score.value
        for event in events
        if isinstance(event, Evaluation)
    }


def run_of(trace: str) -> list[Span]:
    agent: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": "one",
        "pathgauge.scenario.id": "talk",
        "pathgauge.turn": 0,
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"}
    return [
        span("agent", "invoke_agent support", agent, trace=trace, end=9.0),
        span("call1", "execute_tool look_up", tool, trace=trace, parent="agent", start=1.0),
        span("call2", "execute_tool look_up", tool, trace=trace, parent="agent", start=2.0),
    ]


def foreign_then_own() -> tuple[list[Span], int, int]:
    """The spans of a turn, and the partition of its trace before and after the change. Only before
    it, the conversation is in another one.
    """
    key = ("", "one", "talk")
    for number in count():
        spans = run_of(f"trace {number}")
        trace_id = spans[0].trace_id
        first, then = (partition_of_trace(trace_id, total) for total in (BEFORE, AFTER))
        if first != partition_of_conversation(key, BEFORE) and then == partition_of_conversation(
            key, AFTER
        ):
            return spans, first, then
    raise AssertionError


@pytest.mark.parametrize("arrives_first", ["the turn", "the late span"])
def test_a_turn_that_was_forwarded_before_late_spans_does_not_replace_what_they_say(
    arrives_first: str,
) -> None:
    (agent, call, late_call), first, then = foreign_then_own()
    earlier = pipeline(first, BEFORE, [])
    earlier.feed([agent, call], (), 0.0, row=1)
    assert tool_calls(earlier.expire(2.0)) == {}
    left = earlier.changes()
    [forwarded] = left.forwarded

    later = pipeline(then, AFTER, [agent, call])
    later.restore(left.traces, 3.0)
    events: list[PipelineEvent] = []
    if arrives_first == "the turn":
        events += later.feed_turn(forwarded, 3.0)
        assert tool_calls(events) == {1: 1.0}
    events += later.feed([late_call], (), 4.0, row=2)
    events += later.expire(10.0)
    if arrives_first == "the late span":
        events += later.feed_turn(forwarded, 10.0)
    scores = tool_calls(events)
    assert scores[max(scores)] == 2.0
