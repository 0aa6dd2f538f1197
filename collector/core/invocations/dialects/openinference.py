"""OpenInference (Arize Phoenix): instrumentations of LangChain, OpenAI Agents, CrewAI, LlamaIndex,
smolagents and others.

Recognised by `openinference.span.kind`, which other tracers' processors add too. Messages are
flattened over numbered keys (`llm.input_messages.0.message.content`), so that a limit of 128
attributes drops the oldest; raw input and output are in `input.value` and `output.value`;
LangChain's metadata is JSON in `metadata`. The kind AGENT is given to whatever has "agent" in its
name, tools included: `tool.name` tells a tool. `tool.parameters` is the tool's schema in some
instrumentations, in others the arguments of a call. Empty arguments of a call are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    Flattened,
    Member,
    members,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "openinference.instrumentation."
LANGCHAIN, OPENAI_AGENTS = SCOPE + "langchain", SCOPE + "openai_agents"
KIND = "openinference.span.kind"

_TOOLS_NODE = "tools"

_RUNS = (".run", ".kickoff", "._execute_core")
"""What LlamaIndex, smolagents and CrewAI append to the name of a workflow, an agent or a tool."""

_EVENTS = ("StopEvent(", "AgentOutput(")
"""How events begin that LlamaIndex writes as `repr`, cut after 200 characters."""

_KINDS: dict[str, Kind] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent", "CHAIN": "chain"}


def matches(span: Span) -> bool:
    """Any span that has been given a kind."""
    return KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """The kind as named, but for what is known of the instrumentation."""
    attributes = span.attributes
    named = _KINDS.get(str(attributes[KIND]).upper(), "other")
    if "tool.name" in attributes and named != "model":
        return "tool"
    if named not in ("agent", "chain"):
        return "handoff" if span.name.startswith("handoff to ") else named
    if span.scope.name == LANGCHAIN:
        return _graph_kind(span)
    if span.scope.name == OPENAI_AGENTS:
        return (
            "other" if named == "chain" else "agent" if "agent.name" in attributes else "workflow"
        )
    return named


def _graph_kind(span: Span) -> Kind:
    if _only_call(span):
        return "tool"
    return langgraph.kind(span.name, members(span.attributes.get("metadata")))


def _only_call(span: Span) -> Mapping[str, Any]:
    """The call that a `tools` node of LangGraph carries out, when it is one; no other input tells
    of a call.
    """
    if span.name != _TOOLS_NODE or span.scope.name != LANGCHAIN:
        return {}
    return langgraph.only_call(decoded(span.attributes.get("input.value"))) or {}


def _of_only_call(key: str) -> Derived:
    return Derived(lambda span: _only_call(span).get(key))


def _answered_call(span: Span) -> Any:
    """The call whose result LangChain's message shows."""
    output = members(span.attributes.get("output.value"))
    return members(output.get("data")).get("tool_call_id") if output.get("type") == "tool" else None


def may_be_entry(span: Span) -> bool:
    """Agents, and what has no parent."""
    raw = span.raw
    if b"langgraph_node" in raw or b"tool.name" in raw:
        return False
    if b"AGENT" in raw or langgraph.may_be_entry(span):
        return True
    return b"CHAIN" in raw and (span.parent_id is None or span.name.endswith(_RUNS))


def enclosing_graph(span: Span) -> str | None:
    """The agent under a supervisor that LangGraph does not name."""
    return langgraph.enclosing_graph(members(span.attributes.get("metadata")).get(langgraph.PATH))


def name_of(span: Span) -> str | None:
    """The name of the span, of which some instrumentations make the agent's or the tool's."""
    return as_id(reduce(str.removesuffix, _RUNS, span.name))


def output_of(span: Span) -> Any:
    """What an agent or workflow gave back, unless it is what LlamaIndex left of an event."""
    value = span.attributes.get("output.value")
    return None if isinstance(value, str) and value.startswith(_EVENTS) else value


def tools_of(span: Span) -> Any:
    """The definitions of the tools that a model was offered, which are JSON under keys of their
    own.
    """
    return [value for key, value in span.attributes.items() if key.startswith("llm.tools.")] or None


def schema_of(span: Span) -> Any:
    """The schema of a tool, unless it is what some instrumentations write in its place: the
    arguments of a call.
    """
    schema = members(span.attributes.get("tool.parameters"))
    return (
        schema
        if schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
        else None
    )


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages in which a call that leaves its arguments out was made with none."""
    for message in map(_object, _list(value)):
        for call in map(_object, _list(_object(message.get("message")).get("tool_calls"))):
            _object(_object(call.get("tool_call")).get("function")).setdefault("arguments", {})
    return parse_messages(value, role)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


OPENINFERENCE = Dialect(
    name="openinference",
    scopes=(SCOPE,),
    byte_marks=(KIND.encode(),),
    matches=matches,
    kind=kind,
    may_be_entry=may_be_entry,
    name_of=name_of,
    messages=read_messages,
    fields=Fields(
        agent_name=(
            "agent.name",
            Member("metadata", (langgraph.AGENT_NAME,)),
            "graph.node.id",
            Derived(enclosing_graph),
        ),
        conversation_id=("session.id", Member("metadata", (langgraph.THREAD,))),
        user_id=("user.id", Member("metadata", ("user_id",))),
        tool_name=(
            "tool.name",
            _of_only_call("name"),
        ),
        call_id=(
            "tool.id",
            "tool.call_id",
            "tool_call.id",
            _of_only_call("id"),
            Derived(_answered_call),
        ),
        arguments=(
            _of_only_call("args"),
            "input.value",
        ),
        result=("output.value",),
        response_model=("llm.model_name",),
        input_tokens=("llm.token_count.prompt",),
        output_tokens=("llm.token_count.completion",),
        total_input_tokens=("llm.token_count.prompt",),
        total_output_tokens=("llm.token_count.completion",),
        input_messages=(Flattened("llm.input_messages"), "input.value"),
        output_messages=(Flattened("llm.output_messages"), Derived(output_of)),
        agent_input=(
            Member("input.value", ("messages",)),
            Member("input.value", ("task",)),
            Member("input.value", ("user_msg",)),
            "input.value",
        ),
        agent_output=(Derived(output_of),),
        tool_definitions=(Derived(tools_of), Member("llm.invocation_parameters", ("tools",))),
        tool_schema=(Derived(schema_of),),
    ),
)
