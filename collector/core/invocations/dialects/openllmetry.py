"""OpenLLMetry (Traceloop): instrumentations of LangChain, OpenAI, OpenAI Agents, CrewAI, and the
decorators of its SDK.

Recognised by `traceloop.*` or `llm.request.type`. Up to 0.54 messages are flattened
(`gen_ai.prompt.0.content`, `gen_ai.completion.0.tool_calls.0.name`), later JSON as in the
conventions. Inputs and outputs of everything are JSON in `traceloop.entity.input` and `.output`;
LangChain's metadata lies under `traceloop.association.properties.`. LangChain's tool arguments are
wrapped together with the run's configuration. Agents called as tools by OpenAI Agents hang beside
their caller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Flattened
from pathgauge.collector.core.invocations.dialects.openai_agents import SCOPE as OPENAI_AGENTS_SCOPE
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.unwrap import (
    Result,
    callable_arguments,
    tool_message,
)
from pathgauge.collector.core.invocations.messages.values import as_id, as_object, decoded
from pathgauge.collector.core.otlp.spans import Span

KIND, ENTITY, METADATA = (
    "traceloop.span.kind",
    "traceloop.entity.name",
    "traceloop.association.properties.",
)

NODES = "gen_ai.workflow.nodes"
"""On the spans around the runs of whole graphs."""

_AGENT_NODES = frozenset({"model", "agent", "tools"})
"""Nodes of the graphs that LangChain makes of an agent; other graphs may have agents for nodes."""

_CONFIGURATION = frozenset({"inputs", "tags", "metadata"})
"""What lies beside the arguments of LangChain's tools."""

_RUN = frozenset({"tool_call_id", "name", "color", "tags"})
"""What LangChain passes to its callbacks when a tool ends."""

_KINDS: dict[str, Kind] = {
    "workflow": "workflow",
    "agent": "agent",
    "tool": "tool",
    "task": "other",
    "handoff": "handoff",
}


def matches(span: Span) -> bool:
    """Spans of its decorators and instrumentations, but most model spans say no more than the
    conventions.
    """
    attributes = span.attributes
    return KIND in attributes or "llm.request.type" in attributes or NODES in attributes


def kind(span: Span) -> Kind | None:
    """The kind as named; runs of LangChain by their metadata."""
    attributes = span.attributes
    named = attributes.get(KIND)
    if NODES in attributes:
        nodes = decoded(attributes[NODES])
        return (
            "agent"
            if isinstance(nodes, list) and any(node in _AGENT_NODES for node in map(str, nodes))
            else "workflow"
        )
    if named is None:
        return "model" if "llm.request.type" in attributes else None
    if named in ("workflow", "task") and "langchain" in span.scope.name:
        metadata = {
            key[len(METADATA) :]: value
            for key, value in attributes.items()
            if key.startswith(METADATA)
        }
        kind = langgraph.kind(str(attributes.get(ENTITY)), metadata)
        return kind if named == "task" else "agent" if kind == "named_step" else "workflow"
    return _KINDS.get(str(named))


def name_of(span: Span) -> str | None:
    """The entity, where no field of the conventions names it."""
    return as_id(span.attributes.get(ENTITY))


def unwrap_arguments(value: Any) -> Any:
    """The arguments as LangChain's callbacks are told them, or those of a decorated function."""
    if isinstance(value, dict) and "input_str" in value and not _CONFIGURATION.isdisjoint(value):
        return as_object(value.get("inputs")) or decoded(value["input_str"])
    return callable_arguments(value)


def unwrap_result(value: Any) -> Result:
    """The result as LangChain's callbacks are told it."""
    if not isinstance(value, dict) or value.keys() != {"output", "kwargs"}:
        return Result(value)
    told = tool_message(value["output"]) is not None or not _RUN.isdisjoint(
        as_object(value["kwargs"]) or ()
    )
    return Result(decoded(value["output"]) if told else value)


OPENLLMETRY = Dialect(
    name="openllmetry",
    byte_marks=(b"traceloop.", b"llm.request.type"),
    matches=matches,
    kind=kind,
    may_be_entry=lambda span: (
        (span.parent_id is None or span.name.endswith((".workflow", ".agent")))
        and b"traceloop.span.kind" in span.raw
    ),
    name_of=name_of,
    unwrap_arguments=unwrap_arguments,
    unwrap_result=unwrap_result,
    beside_run=True,
    fields=Fields(
        agent_name=(METADATA + langgraph.AGENT_NAME,),
        conversation_id=(METADATA + langgraph.THREAD, METADATA + "session_id"),
        user_id=(METADATA + "user_id",),
        tool_name=(ENTITY,),
        arguments=("traceloop.entity.input",),
        result=("traceloop.entity.output",),
        input_messages=(Flattened("gen_ai.prompt"),),
        output_messages=(Flattened("gen_ai.completion"),),
        agent_input=("traceloop.entity.input",),
        agent_output=("traceloop.entity.output",),
        tool_definitions=(Flattened("llm.request.functions"),),
    ),
)


def read_items(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of OpenAI's responses: one an item, each with a finish reason, so that they look
    like choices.
    """
    return tuple(message._replace(finish_reason=None) for message in parse_messages(value, role))


OPENLLMETRY_AGENTS = replace(
    OPENLLMETRY,
    scopes=(OPENAI_AGENTS_SCOPE,),
    matches=lambda span: span.scope.name == OPENAI_AGENTS_SCOPE and bool(span.scope.version),
    messages=read_items,
    loses_parent=True,
)
"""Its instrumentation of OpenAI Agents, to whose model spans nothing is added."""
