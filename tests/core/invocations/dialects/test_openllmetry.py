"""Special cases of OpenLLMetry's instrumentations of CrewAI, OpenAI Agents and OpenAI, with
handwritten spans.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Scope, Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

CREWAI = "opentelemetry.instrumentation.crewai.instrumentation"
AGENTS = "opentelemetry.instrumentation.openai_agents"


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def crew(*more: Span) -> list[Span]:
    operation = {"gen_ai.operation.name": "invoke_agent"}
    ended = {
        "crewai.crew.name": "refunds",
        "crewai.crew.result": "answer",
        "crewai.crew.token_usage": "prompt_tokens=200",
    }
    return [
        span("crew", "crewai.workflow", {**operation, **ended}, end=10, scope=CREWAI),
        span(
            "task",
            "Refund it.task",
            {**operation, "traceloop.span.kind": "task"},
            parent="crew",
            end=9,
            scope=CREWAI,
        ),
        span(
            "a",
            "clerk.agent",
            {**operation, "traceloop.span.kind": "agent", "gen_ai.agent.name": "clerk"},
            parent="task",
            end=8,
            scope=CREWAI,
        ),
        *more,
    ]


def thought(output: dict[str, Any]) -> Span:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", **output}]),
    }
    return span("m", "gpt.llm", attributes, parent="a", start=1, end=2, scope=CREWAI)


def test_a_crew_shows_its_agents_and_its_answer_but_no_tools() -> None:
    [read_one] = of(*crew())
    assert (
        read_one.agent,
        read_one.final_response,
        read_one.tool_calls,
        read_one.input_tokens,
    ) == ("clerk", "answer", (), None)
    assert (read_one.span_id, [sub.agent for sub in read_one.sub_agents]) == (span_id("crew"), [])
    assert read_one.flags == {"no_tool_spans"}


def test_a_crew_that_reasons_in_text_may_have_called_tools() -> None:
    [read_one] = of(
        *crew(thought({"content": "Action: look\nAction Input: {}", "finish_reason": "stop"}))
    )
    assert (read_one.tool_calls, sorted(read_one.flags)) == (
        (),
        ["content_missing", "no_tool_spans"],
    )


def test_calls_that_a_crews_model_asks_for_are_known() -> None:
    call = {"type": "tool_call", "name": "look", "arguments": {"n": 1}}
    [read_one] = of(*crew(thought({"parts": [call], "finish_reason": "tool_call"})))
    assert [call.name for call in read_one.tool_calls] == ["look"]
    assert "no_tool_spans" not in read_one.flags


def items(*messages: dict[str, Any], version: str) -> list[Span]:
    """A model call of an OpenAI agent, with one message an item of the response."""
    output = json.dumps([{"role": "assistant", **message} for message in messages])
    agent = {
        "traceloop.span.kind": "agent",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "a",
    }
    spans = [
        span("a", "a.agent", agent, end=10, scope=AGENTS),
        span(
            "m",
            "openai.response",
            {"gen_ai.operation.name": "chat", "gen_ai.output.messages": output},
            parent="a",
            scope=AGENTS,
        ),
    ]
    return [Span(one.raw, one.resource, Scope(AGENTS, version)) for one in spans]


TEXT = {"parts": [{"type": "text", "content": "Looking."}], "finish_reason": "stop"}
CALLS = [
    {
        "parts": [{"type": "tool_call", "id": id, "name": "look", "arguments": {}}],
        "finish_reason": "tool_call",
    }
    for id in ("c1", "c2")
]


def test_each_item_of_a_response_is_part_of_one_answer() -> None:
    [read_one] = of(*items(TEXT, *CALLS, version="0.62.4"))
    assert ([(call.id, call.group) for call in read_one.tool_calls], read_one.final_response) == (
        [("c1", 0), ("c2", 0)],
        None,
    )


def test_reasoning_before_the_text_of_a_response_is_no_answer() -> None:
    reasoning = {"parts": [{"type": "reasoning", "content": "hm"}], "finish_reason": "stop"}
    assert of(*items(reasoning, TEXT, version="0.62.4"))[0].final_response == "Looking."


def test_flattened_messages_of_the_openai_client_are_read() -> None:
    call = "gen_ai.{}.tool_calls.0."
    asked = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "question",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.finish_reason": "tool_calls",
        call.format("completion.0") + "id": "c1",
        call.format("completion.0") + "name": "look",
        call.format("completion.0") + "arguments": '{"n": 1}',
        "gen_ai.usage.prompt_tokens": 10,
        "gen_ai.usage.completion_tokens": 2,
    }
    shown = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "tool",
        "gen_ai.prompt.0.content": '{"found": true}',
        "gen_ai.prompt.0.tool_call_id": "c1",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "answer",
        "gen_ai.usage.prompt_tokens": 20,
        "gen_ai.usage.completion_tokens": 3,
    }
    [read_one] = of(
        span("http", "POST /chat", end=9),
        span("m1", "openai.chat", asked, parent="http", start=1, end=2),
        span("m2", "openai.chat", shown, parent="http", start=3, end=4),
    )
    assert [(call.id, call.name, call.arguments, call.result) for call in read_one.tool_calls] == [
        ("c1", "look", {"n": 1}, {"found": True})
    ]
    assert (read_one.user_input, read_one.final_response) == ("question", "answer")
    assert (read_one.input_tokens, read_one.output_tokens) == (30, 5)


def test_a_task_called_by_another_process_is_an_agent() -> None:
    task = span(
        "task",
        "answer.task",
        {"traceloop.span.kind": "task"},
        parent="far away",
        remote_parent=True,
        end=9,
    )
    [read_one] = of(
        task, span("m", "openai.chat", {"llm.request.type": "chat"}, parent="task", start=1, end=2)
    )
    assert (read_one.span_id, "missing_root" in read_one.flags) == (span_id("task"), False)


def test_concurrent_agents_are_not_attached_to_calls_of_each_other() -> None:
    spans = [
        span("root", "team.workflow", {"traceloop.span.kind": "workflow"}, end=1, scope=AGENTS)
    ]
    for name, kind, parent in (
        ("x", "agent", "root"),
        ("call x", "tool", "x"),
        ("y", "agent", "root"),
        ("call y", "tool", "y"),
    ):
        attributes = {"traceloop.span.kind": kind, "traceloop.entity.name": name}
        spans.append(span(name, f"{name}.{kind}", attributes, parent=parent, end=1, scope=AGENTS))
    [read_one] = of(*(Span(one.raw, one.resource, Scope(AGENTS, "0.62.3")) for one in spans))
    assert sorted(call.name for call in read_one.tool_calls) == ["call x", "call y"]


def test_the_turns_before_that_a_function_gets_are_not_what_it_was_asked() -> None:
    past = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]
    called = {
        "traceloop.span.kind": "agent",
        "traceloop.entity.input": json.dumps({"args": ["Refund it", past], "kwargs": {}}),
    }
    prompt = [*past, {"role": "user", "content": "Refund it"}]
    asked = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(prompt)}
    [found] = of(
        span("a", "desk.agent", called, end=9, scope="traceloop.tracer"),
        span("m", "openai.chat", asked, parent="a", start=1, end=2),
    )
    assert found.user_input == "Refund it"


@pytest.mark.parametrize(
    ("name", "answers"), [("CompiledStateGraph", ["Hi."]), ("RunnableLambda", [])]
)
def test_steps_of_langchain_for_javascript_are_no_runs(name: str, answers: list[str]) -> None:
    """Each is called a workflow, and begins a trace of its own."""
    said = [{"type": "ai", "data": {"content": "Hi."}}]
    attributes = {
        "gen_ai.operation.name": "workflow",
        "traceloop.span.kind": "workflow",
        "traceloop.workflow.name": name,
        "traceloop.entity.output": json.dumps({"messages": said}),
    }
    scope = "@traceloop/instrumentation-langchain"
    found = of(span("w", f"workflow {name}", attributes, end=9, scope=scope))
    assert [one.final_response for one in found] == answers
