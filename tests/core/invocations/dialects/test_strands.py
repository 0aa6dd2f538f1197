"""Special cases of Strands: content in older message events on tools and agents, runs of several
agents, the memory of an agent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from support.dialects import INSTALLED, read

SCOPE = "strands.telemetry.tracer"
Events = Sequence[tuple[str, Mapping[str, Any]]]


def operation(
    id: str,
    name: str,
    operation: str,
    *,
    parent: str | None = None,
    start: float = 0.0,
    events: Events = (),
) -> Span:
    attributes = {"gen_ai.operation.name": operation, "gen_ai.system": "strands-agents"}
    return span(
        id,
        name,
        attributes,
        parent=parent,
        start=start,
        end=start + 0.5,
        scope=SCOPE,
        events=events,
    )


def tool(*events: tuple[str, Mapping[str, Any]]) -> Span:
    return operation("t", "execute_tool look", "execute_tool", parent="agent", events=events)


def agent(
    id: str = "agent",
    name: str = "a",
    *,
    parent: str | None = None,
    start: float = 0.0,
    answer: str | None = None,
) -> Span:
    events = [("gen_ai.choice", {"message": answer, "finish_reason": "end_turn"})] if answer else []
    return operation(
        id, f"invoke_agent {name}", "invoke_agent", parent=parent, start=start, events=events
    )


def trace(*spans: Span) -> Trace:
    return Trace("", trace_id("trace"), spans)


@pytest.mark.parametrize(
    ("blocks", "result"),
    [
        ([{"text": '{"found": true}'}], {"found": True}),
        ([{"text": "found"}], "found"),
        ([{"json": {"found": True}}], {"found": True}),
        ([{"text": "a"}, {"text": "b"}], [{"text": "a"}, {"text": "b"}]),
    ],
)
def test_a_tools_events_are_its_arguments_and_its_result(blocks: list[Any], result: Any) -> None:
    called = ("gen_ai.tool.message", {"role": "tool", "content": '{"order": 1}', "id": "c1"})
    [one] = read(
        trace(agent(), tool(called, ("gen_ai.choice", {"message": json.dumps(blocks), "id": "c1"})))
    )
    assert [(call.name, call.arguments, call.result) for call in one.tool_calls] == [
        ("look", {"order": 1}, result)
    ]


def test_the_content_of_a_models_choice_is_a_list_of_blocks() -> None:
    blocks = [
        {"text": "Let me see."},
        {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"order": 1}}},
    ]
    events = [
        ("gen_ai.user.message", {"content": '[{"text": "Where is it?"}]'}),
        ("gen_ai.choice", {"message": json.dumps(blocks)}),
    ]
    [one] = read(trace(agent(), operation("m", "chat", "chat", parent="agent", events=events)))
    assert (one.user_input, one.final_response) == ("Where is it?", None)
    assert [(call.id, call.name, call.arguments) for call in one.tool_calls] == [
        ("c1", "look", {"order": 1})
    ]


@pytest.mark.parametrize(
    ("stated", "answer"),
    [
        ("Done.\n", "Done."),
        ('{"status": "done"}', '{"status": "done"}'),
        ("[REDACTED]", None),
        (None, None),
    ],
)
def test_an_agents_choice_is_its_answer(stated: str | None, answer: str | None) -> None:
    [one] = read(trace(agent(answer=stated)))
    assert one.final_response == answer


@pytest.mark.parametrize("run", ["invoke_swarm", "invoke_graph"])
def test_the_agents_of_a_swarm_or_graph_are_one_invocation(run: str) -> None:
    whole = operation("run", run, run, events=[("gen_ai.user.message", {"content": "Refund it"})])
    handoff = operation(
        "h", "execute_tool handoff_to_agent", "execute_tool", parent="first", start=0.2
    )
    agents = [
        agent("first", "first", parent="run", answer="over"),
        agent("second", "second", parent="run", start=1, answer="Refunded.\n"),
    ]
    [one] = read(trace(whole, *agents, handoff))
    assert (one.dialect, one.agent, one.user_input, one.final_response) == (
        "strands",
        "first",
        "Refund it",
        "Refunded.",
    )
    assert [(sub.agent, sub.via) for sub in one.sub_agents] == [("second", "handoff")]
    assert INSTALLED.may_be_entry(whole)


def test_a_step_of_the_loop_is_a_link_even_if_a_processor_gives_it_a_kind() -> None:
    step = span(
        "step",
        "execute_event_loop_cycle",
        {"gen_ai.operation.name": "execute_event_loop_cycle", "openinference.span.kind": "AGENT"},
        parent="agent",
        scope=SCOPE,
    )
    [one] = read(trace(agent(), step))
    assert (one.agent, one.sub_agents) == ("a", ())


def test_a_model_call_that_fills_the_memory_is_no_invocation() -> None:
    memory = operation("memory", "memory.extract", "memory.extract")
    assert read(trace(memory, operation("m", "chat", "chat", parent="memory"))) == []


def test_spans_of_typescript_are_recognised_whatever_the_service_is_called() -> None:
    time = {"gen_ai.event.start_time": "2026-11-21T10:00:00Z"}
    whole = {"gen_ai.operation.name": "invoke_agent", "system_prompt": '"Be brief."', **time}
    looking = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", **time}
    asked = ("gen_ai.user.message", {"content": '[{"text":"Where is it?"}]'})
    called = ("gen_ai.tool.message", {"content": '{"order":1}'})
    shown = ("gen_ai.choice", {"message": '[{"json":{"found":true}}]'})
    said = ("gen_ai.choice", {"message": "In Paris."})
    [one] = read(
        trace(
            span("a", "invoke_agent a", whole, end=9, scope="shop", events=[asked, said]),
            span("c", "execute_agent_loop_cycle", time, parent="a", end=5, scope="shop"),
            span(
                "t", "execute_tool look", looking, parent="c", scope="shop", events=[called, shown]
            ),
        )
    )
    assert (one.dialect, one.user_input, one.final_response) == (
        "strands",
        "Where is it?",
        "In Paris.",
    )
    assert [(call.name, call.arguments, call.result) for call in one.tool_calls] == [
        ("look", {"order": 1}, {"found": True})
    ]
