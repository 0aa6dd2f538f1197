"""OpenLLMetry (Traceloop): instrumentations of LangChain, OpenAI, OpenAI Agents, CrewAI, and the
decorators of its SDK.

Recognised by `traceloop.*` or `llm.request.type`. Up to 0.54 messages are flattened
(`gen_ai.prompt.0.content`, `gen_ai.completion.0.tool_calls.0.name`), later they are JSON as in the
conventions. Inputs and outputs of all spans are JSON in `traceloop.entity.input` and `.output`;
LangChain's metadata is under `traceloop.association.properties.`. The arguments of LangChain tools
are wrapped together with the configuration of the run. Agents called as tools by OpenAI Agents are
siblings of their caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Flattened
from pathgauge.collector.core.invocations.dialects.openai_agents import SCOPE as OPENAI_AGENTS_SCOPE
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments, tool_message
from pathgauge.collector.core.invocations.messages.values import as_id, as_object, decoded
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.otlp.spans import Span

LLAMA_INDEX_SCOPE = "opentelemetry.instrumentation.llamaindex"

KIND, ENTITY = "traceloop.span.kind", "traceloop.entity.name"
_ENCODED_KIND = KIND.encode()
METADATA = "traceloop.association.properties."

_LANGCHAIN_JS = "@traceloop/instrumentation-langchain"
_WORKFLOW = "traceloop.workflow.name"

NODES = "gen_ai.workflow.nodes"
"""An attribute of the spans around the runs of whole graphs."""

_REQUEST_TYPE = "llm.request.type"
_AGENT_NAME, _NODE = METADATA + langgraph.AGENT_NAME, METADATA + langgraph.NODE

_AGENT_NODES = frozenset({"model", "agent", "tools"})
"""Nodes of the graph that LangChain builds for an agent. The nodes of other graphs may be agents.
"""

_CONFIGURATION_KEYS = frozenset({"inputs", "tags", "metadata"})
"""Keys beside the arguments of LangChain tools."""

_CALLBACK_KEYS = frozenset({"tool_call_id", "name", "color", "tags"})
"""Keys that LangChain passes to its callbacks when a tool ends."""

_KINDS: dict[str, Kind] = {
    "workflow": "workflow",
    "agent": "agent",
    "tool": "tool",
    "task": "other",
    "handoff": "handoff",
}


def matches(span: Span) -> bool:
    """Spans of its decorators and instrumentations. Most of its model spans have no more than the
    conventions and do not match. Those of LlamaIndex have a dialect of their own.
    """
    if span.scope.name == LLAMA_INDEX_SCOPE:
        return False
    attributes = span.attributes
    return KIND in attributes or _REQUEST_TYPE in attributes or NODES in attributes


def kind(span: Span) -> Kind | None:
    """The stated kind, LangChain runs by their metadata."""
    attributes = span.attributes
    stated = attributes.get(KIND)
    if NODES in attributes:
        return _kind_of_nodes(decoded(attributes[NODES]))
    if stated is None:
        if _REQUEST_TYPE in attributes:
            return "model"
        return None
    if span.scope.name == _LANGCHAIN_JS:
        # Every step of a graph is called a workflow, by the name of its class.
        is_step = stated != "workflow" or str(attributes.get(_WORKFLOW)).startswith("Runnable")
        return "other" if is_step else "chain"
    if stated in ("workflow", "task") and "langchain" in span.scope.name:
        return _kind_of_run(attributes, is_task=stated == "task")
    return _KINDS.get(str(stated))


def _kind_of_nodes(nodes: Any) -> Kind:
    is_agent = isinstance(nodes, list) and any(str(node) in _AGENT_NODES for node in nodes)
    if is_agent:
        return "agent"
    return "workflow"


def _kind_of_run(attributes: Mapping[str, Any], *, is_task: bool) -> Kind:
    metadata = {
        langgraph.AGENT_NAME: attributes.get(_AGENT_NAME),
        langgraph.NODE: attributes.get(_NODE),
    }
    kind = langgraph.kind(str(attributes.get(ENTITY)), metadata)
    if is_task:
        return kind
    if kind == "named_step":
        return "agent"
    return "workflow"


def name_of(span: Span) -> str | None:
    """The entity, if no field of the conventions has the name."""
    return as_id(span.attributes.get(ENTITY))


def unwrap_arguments(value: Any) -> Any:
    """The arguments as passed to LangChain's callbacks, or those of a decorated function."""
    if not isinstance(value, dict) or "input_str" not in value:
        return callable_arguments(value)
    if _CONFIGURATION_KEYS.isdisjoint(value):
        return callable_arguments(value)
    return as_object(value.get("inputs")) or decoded(value["input_str"])


def unwrap_result(value: Any) -> Result:
    """The result as passed to LangChain's callbacks."""
    if not isinstance(value, dict) or value.keys() != {"output", "kwargs"}:
        return Result(value)
    is_callback = tool_message(value["output"]) is not None or not _CALLBACK_KEYS.isdisjoint(
        as_object(value["kwargs"]) or ()
    )
    return Result(decoded(value["output"]) if is_callback else value)


def _may_be_entry(span: Span) -> bool:
    if span.parent_id is not None and not span.name.endswith((".workflow", ".agent")):
        return False
    return _ENCODED_KIND in span.raw


OPENLLMETRY = Dialect(
    name="openllmetry",
    before=("openai_agents",),
    key_prefixes=("traceloop.", _REQUEST_TYPE),
    matches=matches,
    kind=kind,
    reads=(KIND, ENTITY, NODES, _REQUEST_TYPE, _NODE, _WORKFLOW, METADATA + langgraph.PATH),
    may_be_entry=_may_be_entry,
    name_of=name_of,
    unwrap_arguments=unwrap_arguments,
    unwrap_result=unwrap_result,
    content_setting="TRACELOOP_TRACE_CONTENT=true",
    beside_run=True,
    fields=Fields(
        agent_name=(_AGENT_NAME,),
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
    """Messages of OpenAI's responses. Each item becomes a message with a finish reason, which is
    removed so that it does not look like a choice.
    """
    return tuple(message._replace(finish_reason=None) for message in parse_messages(value, role))


OPENLLMETRY_AGENTS = replace(
    OPENLLMETRY,
    before=("openllmetry",),
    scopes=(OPENAI_AGENTS_SCOPE,),
    matches=lambda span: span.scope.name == OPENAI_AGENTS_SCOPE and bool(span.scope.version),
    messages=read_items,
    loses_parent=True,
)
"""Its instrumentation of OpenAI Agents. Its model spans have no attributes of OpenLLMetry."""
