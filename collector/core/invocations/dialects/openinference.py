"""OpenInference (Arize Phoenix): instrumentations of LangChain, OpenAI Agents, CrewAI, LlamaIndex,
smolagents and others.

Recognised by `openinference.span.kind`, which processors of other tracers add as well. Messages are
flattened over numbered keys (`llm.input_messages.0.message.content`), so a limit of 128 attributes
drops the oldest messages. Raw input and output are in `input.value` and `output.value`, LangChain's
metadata is JSON in `metadata`. Every span with "agent" in its name gets the kind AGENT, including
tools: `tool.name` identifies a tool. `tool.parameters` is the schema of the tool in some
instrumentations and the arguments of a call in others. Empty arguments of a call are omitted. Only
a reply has `llm.model_name`: a failed call names its model in its parameters.

The instrumentation of OpenAI Agents for JavaScript writes the whole run as AGENT, with the name of
the workflow, and again as CHAIN below it. If a run fails, it never exports the first. The span
processor for Vercel's AI SDK gives the first error of a trace to spans that end later.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph, vercel
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    Flattened,
    JsonMember,
    members,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.invocations.messages.written_results import is_object
from pathgauge.collector.core.otlp.spans import STATUS_ERROR, Span

SCOPE = "openinference.instrumentation."
LANGCHAIN, OPENAI_AGENTS = SCOPE + "langchain", SCOPE + "openai_agents"
SMOLAGENTS, HAYSTACK = SCOPE + "smolagents", SCOPE + "haystack"
BEEAI = SCOPE + "beeai"
INSTRUCTOR = SCOPE + "instructor"
CLAUDE_AGENT_SDK = SCOPE + "claude_agent_sdk"
LANGCHAIN_JS = "@arizeai/openinference-instrumentation-langchain"
AI_SDK = ("ai", vercel.SCOPE)
OPENAI_AGENTS_JS = "@arizeai/openinference-instrumentation-openai-agents"
KIND = "openinference.span.kind"

_INPUT, _OUTPUT, _METADATA = "input.value", "output.value", "metadata"
_AGENT_NAME, _TOOL_NAME = "agent.name", "tool.name"
_NODE = "graph.node.id"
_PARAMETERS = "llm.invocation_parameters"
_SENDER = "ag2.sender.name"
_HANDOFF = "handoff to "

_TOOLS_NODE = "tools"

_RUNS = (".run", ".kickoff", "._execute_core")
"""Suffixes that LlamaIndex, smolagents and CrewAI add to the name of a workflow, agent or tool."""

_EVENTS = ("StopEvent(", "AgentOutput(")
"""Prefixes of the events that LlamaIndex writes as `repr`, truncated after 200 characters."""

_STREAMED = (
    *("ChatMessageStreamDelta(", "ToolCall(", "ToolOutput(", "ActionOutput("),
    *("PlanningStep(", "ActionStep(", "FinalAnswerStep("),
)
"""Prefixes of the events of a streamed run, which smolagents writes one behind the other."""

_KINDS: dict[str, Kind] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent", "CHAIN": "chain"}


def matches(span: Span) -> bool:
    """Any span with a kind, except those of which much is to be read otherwise or not at all."""
    return KIND in span.attributes and span.scope.name != CLAUDE_AGENT_SDK


def kind(span: Span) -> Kind | None:
    """The stated kind, corrected by what is known of the instrumentation."""
    attributes = span.attributes
    stated = _KINDS.get(str(attributes[KIND]).upper(), "other")
    if span.name.startswith(_HANDOFF) and _is_handoff(span, stated):
        return "handoff"
    if _TOOL_NAME in attributes and stated != "model":
        return "tool"
    if stated not in ("agent", "chain"):
        return stated
    if span.scope.name == LANGCHAIN:
        return _graph_kind(span)
    if span.scope.name == LANGCHAIN_JS:
        return langgraph.kind_in_javascript(span.name, members(attributes.get(_METADATA)))
    if span.scope.name in (OPENAI_AGENTS, OPENAI_AGENTS_JS):
        return _kind_of_run(span, stated)
    return stated


def _is_handoff(span: Span, stated: Kind) -> bool:
    """For JavaScript it also has the name of a tool, which does not exist."""
    if span.scope.name == OPENAI_AGENTS_JS:
        return True
    return _TOOL_NAME not in span.attributes and stated not in ("agent", "chain")


def _kind_of_run(span: Span, stated: Kind) -> Kind:
    """An agent, or the run of a whole workflow."""
    if stated == "chain":
        return "chain" if span.scope.name == OPENAI_AGENTS_JS else "other"
    if _AGENT_NAME in span.attributes or _NODE in span.attributes:
        return "agent"
    return "workflow"


def _graph_kind(span: Span) -> Kind:
    if _only_call(span):
        return "tool"
    return langgraph.kind(span.name, members(span.attributes.get(_METADATA)))


def _only_call(span: Span) -> Mapping[str, Any]:
    """The call that a `tools` node of LangGraph executes, if it is a single one. No other input
    holds a call.
    """
    if span.name != _TOOLS_NODE or span.scope.name != LANGCHAIN:
        return {}
    return langgraph.only_call(decoded(span.attributes.get(_INPUT))) or {}


def _of_only_call(key: str) -> Derived:
    return Derived(lambda span: _only_call(span).get(key))


def _answered_call(span: Span) -> Any:
    """The id of the call whose result is in LangChain's tool message."""
    output = members(span.attributes.get(_OUTPUT))
    if output.get("type") == "tool":
        return members(output.get("data")).get("tool_call_id")
    if span.scope.name == LANGCHAIN_JS:
        return members(members(output.get("output")).get("kwargs")).get("tool_call_id")
    return None


def _agent_in_tool(span: Span) -> str | None:
    """The name of a graph that a tool runs, which has the name of the agent around it in its
    metadata.
    """
    if span.scope.name != LANGCHAIN_JS or span.attributes.get(KIND) != "CHAIN":
        return None
    metadata = members(span.attributes.get(_METADATA))
    return span.name if langgraph.is_graph_in_tool(span.name, metadata) else None


def may_be_entry(span: Span) -> bool:
    """Agents, and chains without a parent or named after a run."""
    raw = span.raw
    if b"langgraph_node" in raw or b"tool.name" in raw:
        return False
    if b"AGENT" in raw or langgraph.may_be_entry(span):
        return True
    return b"CHAIN" in raw and (span.parent_id is None or span.name.endswith(_RUNS))


def enclosing_graph(span: Span) -> str | None:
    """The agent under a supervisor that LangGraph does not name."""
    return langgraph.enclosing_graph(members(span.attributes.get(_METADATA)).get(langgraph.PATH))


def name_of(span: Span) -> str | None:
    """The name of the span, which some instrumentations derive from the agent or tool. That of
    Haystack derives it from classes, those of Instructor and the AI SDK from the operation.
    """
    if span.scope.name in (HAYSTACK, INSTRUCTOR, *AI_SDK):
        return None
    return as_id(reduce(str.removesuffix, _RUNS, span.name))


def _object_of_instructor(span: Span) -> Any:
    """What Instructor made of the reply of a model: the object that it was asked for."""
    return span.attributes.get(_OUTPUT) if span.scope.name == INSTRUCTOR else None


def copied_error(span: Span) -> bool:
    """Whether the processor for the AI SDK copied the error. It does not copy the exception."""
    if span.scope.name not in AI_SDK:
        return False
    return all(event.name != "exception" for event in span.events)


def output_of(span: Span) -> Any:
    """The output of an agent, workflow or model, unless it is a truncated LlamaIndex event, the
    events of a run of smolagents, the stream from which the program reads it, the error that BeeAI
    writes there, or a reply in a chat of AG2, which has an output itself.
    """
    if span.scope.name == BEEAI and span.status == STATUS_ERROR:
        return None
    if _SENDER in span.attributes:
        return None
    value = span.attributes.get(_OUTPUT)
    events = _STREAMED if span.scope.name == SMOLAGENTS else _EVENTS
    if isinstance(value, str) and (value.startswith(events) or is_object(value)):
        return None
    return value


def tools_of(span: Span) -> Any:
    """The tool definitions of a model call: JSON, one key per tool."""
    return [value for key, value in span.attributes.items() if key.startswith("llm.tools.")] or None


def schema_of(span: Span) -> Any:
    """The schema of a tool. Some instrumentations write the arguments of a call instead."""
    schema = members(span.attributes.get("tool.parameters"))
    is_schema = schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
    if is_schema:
        return schema
    return None


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages in which a call without arguments was called with none."""
    for message in map(_object, _list(value)):
        for call in map(_object, _list(_object(message.get("message")).get("tool_calls"))):
            _object(_object(call.get("tool_call")).get("function")).setdefault("arguments", {})
    return parse_messages(value, role)


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {}


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return []


OPENINFERENCE = Dialect(
    name="openinference",
    before=("crewai", "openllmetry", "openllmetry_agents"),
    scopes=(SCOPE,),
    key_prefixes=(KIND,),
    matches=matches,
    kind=kind,
    reads=(KIND, _NODE, _SENDER, JsonMember(_METADATA, (langgraph.NODE,))),
    may_be_entry=may_be_entry,
    name_of=name_of,
    copied_error=copied_error,
    content_setting="OPENINFERENCE_HIDE_INPUTS=false OPENINFERENCE_HIDE_OUTPUTS=false",
    messages=read_messages,
    fields=Fields(
        agent_name=(
            _AGENT_NAME,
            Derived(_agent_in_tool, reads=(JsonMember(_METADATA, (langgraph.NODE,)),)),
            JsonMember(_METADATA, (langgraph.AGENT_NAME,)),
            _NODE,
            Derived(enclosing_graph, reads=(JsonMember(_METADATA, (langgraph.PATH,)),)),
        ),
        conversation_id=("session.id", JsonMember(_METADATA, (langgraph.THREAD,))),
        user_id=("user.id", JsonMember(_METADATA, ("user_id",))),
        tool_name=(_TOOL_NAME, _of_only_call("name")),
        call_id=(
            "tool.id",
            "tool.call_id",
            "tool_call.id",
            _of_only_call("id"),
            Derived(_answered_call),
        ),
        arguments=(_of_only_call("args"), _INPUT),
        result=(_OUTPUT,),
        request_model=(JsonMember(_PARAMETERS, ("model",)),),
        response_model=("llm.model_name",),
        input_tokens=("llm.token_count.prompt",),
        output_tokens=("llm.token_count.completion",),
        cached_tokens=("llm.token_count.prompt_details.cache_read",),
        cache_write_tokens=("llm.token_count.prompt_details.cache_write",),
        total_input_tokens=("llm.token_count.prompt",),
        total_output_tokens=("llm.token_count.completion",),
        input_messages=(Flattened("llm.input_messages"), _INPUT),
        output_messages=(Flattened("llm.output_messages"), Derived(output_of)),
        final_tool=("instructor.response_model",),
        final_response=(Derived(_object_of_instructor),),
        agent_input=(
            JsonMember(_INPUT, ("messages",)),
            JsonMember(_INPUT, ("task",)),
            JsonMember(_INPUT, ("user_msg",)),
            _INPUT,
        ),
        agent_output=(Derived(output_of),),
        tool_definitions=(Derived(tools_of), JsonMember(_PARAMETERS, ("tools",))),
        tool_schema=(Derived(schema_of),),
    ),
)
