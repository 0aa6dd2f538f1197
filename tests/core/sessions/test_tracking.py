"""What sessions make of evaluations: what is published, counted and forwarded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import (
    WHOLE,
    Partition,
    partition_of_conversation,
    partition_of_session,
)
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent, Withdrawn
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.store.forwarded_turns import decode, encode
from pathgauge.collector.testing import span, span_id
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.dialects import INSTALLED
from support.session_course import BOUNDS, CRITERIA, SESSION, TRACE_S


def pipeline(
    references: ReferenceSet | None = None,
    overrides: dict[str, Any] | None = None,
    partition: Partition = WHOLE,
) -> tuple[Pipeline, InternalTelemetry]:
    telemetry = InternalTelemetry()
    built = Pipeline(
        INSTALLED,
        Evaluator(CRITERIA, overrides or {}),
        references or ReferenceSet(),
        telemetry,
        BOUNDS,
        session_bounds=SESSION,
        partition=partition,
    )
    return built, telemetry


def agent(name: str, conversation: str | None, scenario: str | None = None, **more: Any) -> Span:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    if conversation is not None:
        attributes["gen_ai.conversation.id"] = conversation
    if scenario is not None:
        attributes["pathgauge.scenario.id"] = scenario
    return span(name, "invoke_agent desk", attributes, **{"end": 5.0, **more})


def model(parent: str) -> Span:
    called = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return span(f"{parent}/late", "chat m", called, parent=parent, start=1.0, end=2.0)


def fed(core: Pipeline, spans: Sequence[Span], now: float) -> list[PipelineEvent]:
    return [*core.feed(spans, (), now), *core.expire(now + TRACE_S)]


def test_late_spans_of_a_run_without_a_conversation_are_not_late_turns() -> None:
    core, telemetry = pipeline()
    fed(core, [agent("a", None)], 0.0)
    again = fed(core, [model("a")], 10.0)
    assert [one.revision for one in again if isinstance(one, Evaluation)] == [1]
    assert dict(telemetry.session_turns_dropped.items()) == {}


def test_a_session_that_nobody_has_seen_is_not_withdrawn() -> None:
    core, _ = pipeline()
    fed(core, [agent("inner", "c", parent="outer", start=1.0, end=2.0)], 0.0)
    events = fed(core, [agent("outer", "c")], 10.0)
    withdrawn = [one.key[2] for one in events if isinstance(one, Withdrawn)]
    assert withdrawn == [span_id("inner")]
    ended = [one for one in core.expire(1_000.0) if isinstance(one, Evaluation)]
    assert [one.session.members for one in ended if one.session is not None] == [
        ((events[-1].key[1], span_id("outer")),) if isinstance(events[-1], Evaluation) else ()
    ]


def test_one_partition_forwards_nothing() -> None:
    core, _ = pipeline()
    fed(core, [agent("inner", "c", parent="outer", start=1.0, end=2.0)], 0.0)
    fed(core, [agent("outer", "c")], 10.0)
    fed(core, [model("outer")], 20.0)
    assert core.changes().forwarded == ()


def conversation_of(partition: int) -> str:
    return next(
        name for name in map(str, range(100)) if partition_of_session("", name, 2) == partition
    )


def test_a_turn_that_moves_to_a_conversation_of_another_partition_leaves_its_session() -> None:
    core, _ = pipeline(partition=Partition(0, 2))
    here, there = conversation_of(0), conversation_of(1)
    [first] = fed(core, [agent("a", here)], 0.0)
    assert core.changes().forwarded == ()
    assert isinstance(first, Evaluation)
    moved = replace(first.invocation, conversation_id=there)
    core._sessions.follow([replace(first, invocation=moved, revision=1)], 10.0)
    forwarded = core.changes().forwarded
    assert [(one.target, one.key) for one in forwarded if one.invocation is not None] == [
        (1, first.key)
    ]
    assert [one for one in core.expire(1_000.0) if isinstance(one, Evaluation)] == []


def test_a_session_whose_scenario_has_no_criteria_for_sessions_has_no_result() -> None:
    reference = Reference("s", (ReferenceTurn(),), criteria={"tool_calls": None})
    core, telemetry = pipeline(ReferenceSet([reference]), {"s": (CRITERIA[2],)})
    for name in ("s", "other"):
        fed(core, [agent(name, name, name, trace=name)], 0.0)
    ended = [one for one in core.expire(1_000.0) if isinstance(one, Evaluation)]
    assert [one.invocation.scenario_id for one in ended] == ["other"]
    assert telemetry.sessions_ended.total() == 2


def test_a_turn_is_forwarded_when_late_spans_bring_its_conversation() -> None:
    core, _ = pipeline(partition=Partition(0, 2))
    other, telemetry = pipeline(partition=Partition(1, 2))
    fed(core, [agent("a", None, parent="root", start=10.0, end=15.0)], 10.0)
    named = {"gen_ai.conversation.id": conversation_of(1)}
    fed(core, [span("root", "POST /chat", named, start=9.0, end=60.0)], 20.0)
    for one in core.changes().forwarded:
        other.feed_turn(one, 20.0)
    [ended] = [one for one in other.expire(1_000.0) if isinstance(one, Evaluation)]
    assert ended.session is not None
    assert [member[1] for member in ended.session.members] == [span_id("a")]
    assert telemetry.session_turns_dropped.total() == 0


def test_a_turn_whose_conversation_arrives_with_late_spans_is_part_of_its_session() -> None:
    core, telemetry = pipeline()
    fed(core, [agent("first", "c", trace="first")], 0.0)
    fed(core, [agent("a", None, parent="root", start=10.0, end=15.0)], 10.0)
    root = span("root", "POST /chat", {"gen_ai.conversation.id": "c"}, start=9.0, end=60.0)
    [revised] = fed(core, [root], 20.0)
    assert isinstance(revised, Evaluation)
    assert (revised.revision, revised.invocation.conversation_id) == (1, "c")
    [ended] = [one for one in core.expire(1_000.0) if isinstance(one, Evaluation)]
    assert ended.session is not None
    assert len(ended.session.members) == 2
    assert telemetry.session_turns_dropped.total() == 0


@pytest.mark.parametrize(("scenario", "sessions_in"), [("talks", 0), ("talk", 1)])
def test_a_turn_that_another_partition_scores_because_of_late_spans_is_part_of_its_session(
    scenario: str, sessions_in: int
) -> None:
    name = next(
        name
        for name in map(str, range(100))
        if partition_of_session("", name, 2) == sessions_in
        and partition_of_conversation(("", name, scenario), 2) == 1
    )
    named = {"gen_ai.conversation.id": name, "pathgauge.scenario.id": scenario}
    references = ReferenceSet([Reference(scenario, (ReferenceTurn(), ReferenceTurn()))])
    here, telemetry = pipeline(references, partition=Partition(0, 2))
    there, telemetry_there = pipeline(references, partition=Partition(1, 2))
    fed(here, [agent("a", None, parent="root", start=10.0, end=15.0)], 10.0)
    fed(here, [span("root", "POST /chat", named, start=9.0, end=60.0)], 20.0)
    for one in here.changes().forwarded:
        there.feed_turn(decode(encode(one)), 20.0)
    there.expire(30.0)
    for one in there.changes().forwarded:
        here.feed_turn(decode(encode(one)), 30.0)
    events = [*here.expire(1_000.0), *there.expire(1_000.0)]
    [ended] = [one for one in events if isinstance(one, Evaluation)]
    assert ended.session is not None
    assert [member[1] for member in ended.session.members] == [span_id("a")]
    dropped = telemetry.session_turns_dropped, telemetry_there.session_turns_dropped
    assert [one.total() for one in dropped] == [0, 0]
