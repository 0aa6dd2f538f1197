"""OpenLIT: instrumentations of LangChain, LangGraph, OpenAI Agents, CrewAI and others.

Recognised by its scopes. It follows the GenAI conventions, but writes steps as agents, too: nodes
of a graph with the name of the node as that of an agent, and turns and methods of an executor
without the name of an agent. Of several calls in one reply of OpenAI's Responses only the last is
in the messages; the tool spans have all.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Kind
from pathgauge.collector.core.invocations.messages.message import Message, without_item_ids
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "openlit.instrumentation."
LANGGRAPH = SCOPE + "langgraph"

_OPERATION, _AGENT_NAME = "gen_ai.operation.name", "gen_ai.agent.name"
_EXECUTOR = "invoke_workflow AgentExecutor"


def matches(span: Span) -> bool:
    """Spans of its scopes."""
    return span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """Steps that are written as agents or workflows; other spans follow the conventions."""
    if span.name == _EXECUTOR:
        return "other"
    if str(span.attributes.get(_OPERATION)) != "invoke_agent":
        return None
    if span.scope.name == LANGGRAPH or not span.attributes.get(_AGENT_NAME):
        return "other"
    return None


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of the conventions without the ids of items, which no result has."""
    return without_item_ids(parse_messages(value, role))


OPENLIT = Dialect(
    name="openlit",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_OPERATION, _AGENT_NAME),
    messages=read_messages,
    content_setting="openlit.init(capture_message_content=True)",
)
