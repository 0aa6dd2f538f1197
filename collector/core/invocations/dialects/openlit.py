"""OpenLIT: instrumentations of LangChain, LangGraph, OpenAI Agents, CrewAI and others.

Recognised by its scopes. It follows the GenAI conventions, but writes steps as agents, too: nodes
of a graph with the name of the node as that of an agent, and turns and methods of an executor
without the name of an agent. A result of LangChain is the `str` of its tool message. Of several
calls in one reply of OpenAI's Responses only the last is in the messages; the tool spans have all.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Kind
from pathgauge.collector.core.invocations.messages.literals import fields
from pathgauge.collector.core.invocations.messages.message import AskedCall, Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.unwrap import Result
from pathgauge.collector.core.invocations.messages.values import as_text, decoded
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.reading_budget import spend

SCOPE = "openlit.instrumentation."
LANGGRAPH = SCOPE + "langgraph"

_OPERATION, _AGENT_NAME = "gen_ai.operation.name", "gen_ai.agent.name"
_EXECUTOR = "invoke_workflow AgentExecutor"
_ITEM_ID = "fc_"
_CONTENT, _CALL_ID = "content=", " tool_call_id='"


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
    return tuple(
        message._replace(calls=tuple(map(_without_item_id, message.calls)))
        for message in parse_messages(value, role)
    )


def _without_item_id(call: AskedCall) -> AskedCall:
    if call.id is not None and call.id.startswith(_ITEM_ID):
        return call._replace(id=None)
    return call


def unwrap_result(value: Any) -> Result:
    """The content of a tool message of LangChain."""
    if not isinstance(value, str) or not value.startswith(_CONTENT) or _CALL_ID not in value:
        return Result(value)
    spend(len(value))
    try:
        members = fields(value)
    except ValueError:
        return Result(None)  # A text that is an object is no result.
    content = decoded(members.get("content"))
    error = as_text(content) or "error" if members.get("status") == "error" else None
    return Result(content, error)


OPENLIT = Dialect(
    name="openlit",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_OPERATION, _AGENT_NAME),
    messages=read_messages,
    unwrap_result=unwrap_result,
    content_setting="openlit.init(capture_message_content=True)",
)
