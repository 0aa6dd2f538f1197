"""Argument schemas of tools: which ones each instrumentation records, in real captures, and which
spans are read, in handwritten traces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.collector.testing import log, span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read
from support.repository import CAPTURES

ORDER = {"properties": {"order_id": {"type": "string"}}, "required": ["order_id"], "type": "object"}
TITLED = {
    "properties": {"order_id": {"title": "Order Id", "type": "string"}},
    "required": ["order_id"],
    "type": "object",
}
STRANDS = {
    "properties": {"order_id": {"description": "Parameter order_id", "type": "string"}},
    "required": ["order_id"],
    "type": "object",
}
SMOLAGENTS = {
    "properties": {"order_id": {"description": "id", "type": "string"}},
    "required": ["order_id"],
    "type": "object",
}
CLOSED = {"additionalProperties": False}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#", **CLOSED}
REFUND = "check_refund_policy lookup_order process_refund"
BILLING = "delegate_to_billing failing lookup_order raising"
TRANSFER = "failing helper lookup_order process_refund raising transfer_to_agent"


@pytest.mark.parametrize(
    ("capture", "tools", "schema"),
    [
        ("agent-framework-1.23-native/refund", BILLING, TITLED | {"title": "lookup_order_input"}),
        ("autogen-0.7.5-native/refund", "", None),
        ("crewai-openinference/refund", "failing lookup_order", TITLED | {"title": "Lookup_Order"}),
        ("google-adk-1.34-native/refund", TRANSFER, ORDER),
        ("google-adk-2.9-native/refund", TRANSFER, TITLED | {"title": "lookup_orderParams"}),
        ("google-adk-native/S1", REFUND, TITLED | {"title": "lookup_orderParams"}),
        ("google-adk-native/S1-nocontent", "", None),
        (
            "google-adk-openinference-1.0.5/refund",
            TRANSFER,
            TITLED | {"title": "lookup_orderParams"},
        ),
        ("haystack-2-native/refund", "failing lookup_order", ORDER),
        ("haystack-3.4-native/pipeline", "ask_billing get_weather raising", None),
        ("haystack-3.4-native/pipeline-nocontent", "ask_billing get_weather raising", None),
        ("langgraph-langfuse-5/refund", "delegate_to_billing failing lookup_order", ORDER),
        ("langgraph-langsmith/S1", REFUND, ORDER),
        ("langgraph-mlflow-3.17/refund", "delegate_to_billing failing lookup_order", ORDER),
        ("langgraph-openinference/S1", REFUND, ORDER),
        ("langgraph-openllmetry/S1", REFUND, ORDER),
        ("langgraph-openllmetry/S1-attrlimit", "", None),
        ("langgraph-otelgenai/refund", "delegate_to_billing failing lookup_order", ORDER),
        (
            "llama-index-openinference/refund",
            "failing handoff lookup_order raising",
            TITLED | CLOSED,
        ),
        (
            "openai-agents-openinference/S1",
            REFUND,
            TITLED | CLOSED | {"title": "lookup_order_args"},
        ),
        ("openai-agents-openllmetry/S1", REFUND, TITLED | CLOSED | {"title": "lookup_order_args"}),
        (
            "openai-agents-otelgenai/refund",
            "failing lookup_order raising transfer_to_billing",
            TITLED | CLOSED | {"title": "lookup_order_args"},
        ),
        ("pydantic-ai-0.8-native/refund", f"{BILLING} retrying", ORDER | CLOSED),
        ("pydantic-ai-native/S1", REFUND, ORDER | CLOSED),
        ("semantic-kernel-1.45-native/refund", "failing lookup_order raising", ORDER),
        ("smolagents-openinference/refund", "failing final_answer lookup_order", SMOLAGENTS),
        ("strands-1.62-native/refund", BILLING, STRANDS),
        ("vercel-ai-5-native/refund", "lookup_order raising", ORDER | DRAFT_7),
        ("vercel-ai-7-native/refund", "lookup_order raising", ORDER | DRAFT_7),
    ],
)
def test_what_instrumentations_record(
    capture: str, tools: str, schema: Mapping[str, Any] | None
) -> None:
    files = read_path(CAPTURES / capture)
    found = []
    for trace in {one.trace_id for one in files.spans}:
        spans = tuple(one for one in files.spans if one.trace_id == trace)
        logs = tuple(one for one in files.logs if one.trace_id == trace)
        found += [invocation.tool_schemas for invocation in read(Trace("", trace, spans, logs))]
    most = max(found, key=len)
    assert (sorted(most), most.get("lookup_order")) == (tools.split(), schema)


def of(*items: Span | LogRecord) -> Invocation:
    spans = tuple(item for item in items if isinstance(item, Span))
    logs = tuple(item for item in items if isinstance(item, LogRecord))
    [invocation] = read(Trace("", trace_id("trace"), spans, logs))
    return invocation


def schema(note: str) -> dict[str, Any]:
    """A schema that can be told from others."""
    return {"type": "object", "properties": {note: {"type": "string"}}}


def definitions(**notes: str) -> dict[str, Any]:
    tools = [
        {"type": "function", "name": name, "parameters": schema(note)}
        for name, note in notes.items()
    ]
    return {"gen_ai.tool.definitions": json.dumps(tools)}


def agent(
    id: str = "agent",
    parent: str | None = None,
    start: float = 0,
    end: float = 90,
    **attributes: Any,
) -> Span:
    return span(
        id,
        f"invoke_agent {id}",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": id} | attributes,
        parent=parent,
        start=start,
        end=end,
    )


def chat(id: str, start: float, *asked: str, parent: str = "agent", **attributes: Any) -> Span:
    calls = [
        {"type": "tool_call", "id": f"{id}-{name}", "name": name, "arguments": {}} for name in asked
    ]
    output = {
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": calls or [{"type": "text", "content": "Done."}]}]
        )
    }
    return span(
        id,
        "chat",
        {"gen_ai.operation.name": "chat"} | output | attributes,
        parent=parent,
        start=start,
        end=start + 1,
    )


def test_one_model_call_of_an_agent_stands_for_all_and_it_is_one_that_asked_for_tools() -> None:
    planning = chat("planning", 1, **definitions(plan="planning"))
    asking = chat("asking", 2, "look", **definitions(look="asking", see="asking"))
    later = chat("later", 3, "look", **definitions(look="later", smell="later"))
    assert of(agent(), planning, asking, later).tool_schemas == {
        "look": schema("asking"),
        "see": schema("asking"),
    }


def test_without_calls_it_is_the_first_model_call() -> None:
    found = of(
        agent(),
        chat("first", 1, **definitions(look="first")),
        chat("second", 2, **definitions(look="second")),
    )
    assert found.tool_schemas == {"look": schema("first")}


def test_the_model_call_that_asked_for_a_tool_that_was_not_offered_before_is_looked_at() -> None:
    first = chat("first", 1, "look", **definitions(look="first"))
    second = chat("second", 2, "see", **definitions(look="second", see="second"))
    third = chat("third", 3, "see", **definitions(see="third", smell="third"))
    assert of(agent(), first, second, third).tool_schemas == {
        "look": schema("first"),
        "see": schema("second"),
        "smell": schema("third"),
    }


def test_what_the_span_of_an_agent_says_goes_before_its_model_calls() -> None:
    found = of(
        agent(**definitions(look="agent")),
        chat("first", 1, "look", **definitions(look="chat", see="chat")),
    )
    assert found.tool_schemas == {"look": schema("agent")}


def test_each_agent_has_tools_of_its_own_and_the_first_of_a_name_counts() -> None:
    outer = chat("outer", 1, "ask", **definitions(ask="outer", look="outer"))
    asked = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask"}
    tool = span("tool", "execute_tool ask", asked, parent="agent", start=2, end=9)
    inner = chat("inner", 4, "look", parent="helper", **definitions(look="inner", see="inner"))
    found = of(agent(), outer, tool, agent("helper", "tool", 3, 8), inner)
    assert found.tool_schemas == {
        "ask": schema("outer"),
        "look": schema("outer"),
        "see": schema("inner"),
    }


def test_a_place_that_names_tools_alone_does_not_hide_the_next_one() -> None:
    names = {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "look"}])}
    recorded = log(
        "gen_ai.client.inference.operation.details", definitions(look="log"), span="chat"
    )
    assert of(agent(), chat("chat", 1, "look", **names), recorded).tool_schemas == {
        "look": schema("log")
    }


@pytest.mark.parametrize("structured", [True, False])
def test_log_records_and_span_events_hold_definitions_too(structured: bool) -> None:
    written = definitions(look="event")
    recorded = {key: json.loads(value) for key, value in written.items()} if structured else written
    operation = "gen_ai.client.inference.operation.details"
    in_event = span(
        "chat",
        "chat",
        {"gen_ai.operation.name": "chat"},
        parent="agent",
        start=1,
        end=2,
        events=[(operation, recorded)],
    )
    assert of(agent(), chat("chat", 1), log(operation, recorded, span="chat")).tool_schemas == {
        "look": schema("event")
    }
    assert of(agent(), in_event).tool_schemas == {"look": schema("event")}


def test_the_span_of_a_tool_says_its_schema_where_no_model_call_does() -> None:
    def tool(name: str, parameters: Any) -> Span:
        attributes = {
            "openinference.span.kind": "TOOL",
            "tool.name": name,
            "tool.parameters": json.dumps(parameters),
        }
        return span(name, name, attributes, parent="agent", start=3, end=4)

    spans = (
        agent(),
        tool("look", schema("look")),
        tool("see", schema("see")),
        tool("smell", {"type": "object", "nose": "left"}),
    )
    assert of(*spans, chat("chat", 1, "look", **definitions(look="chat"))).tool_schemas == {
        "look": schema("chat"),
        "see": schema("see"),
    }


def test_old_openllmetry_flattens_definitions() -> None:
    attributes = {
        "llm.request.type": "chat",
        "llm.request.functions.0.name": "look",
        "llm.request.functions.0.description": "d",
        "llm.request.functions.0.parameters": json.dumps(schema("flat")),
        "llm.request.functions.1.name": "see",
    }
    assert of(agent(), chat("chat", 1, "look", **attributes)).tool_schemas == {
        "look": schema("flat")
    }


LOOK = {"name": "look", "parameters": schema("x")}


@pytest.mark.parametrize(
    "written",
    [
        {
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "function": LOOK}],
        },
        [
            {"role": "user", "content": 'the "parameters" of it'},
            {"role": "tool", "content": {"type": "function", "function": LOOK}},
            {"role": "tool", "content": '{"name": "result", "parameters": 1}', "tool_call_id": "c"},
        ],
    ],
)
def test_langfuse_has_tools_beside_the_messages_or_among_them(written: Any) -> None:
    attributes = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": json.dumps(written),
    }
    assert of(
        agent(), span("chat", "chat", attributes, parent="agent", start=1, end=2)
    ).tool_schemas == {"look": schema("x")}


def test_agents_of_which_nothing_is_recorded_have_no_schemas() -> None:
    assert of(agent(), chat("chat", 1, "look")).tool_schemas == {}
