"""LangWatch: its decorators, its tracking of the OpenAI client and its callbacks for LangChain.

Recognised by `langwatch.span.type`. Inputs and outputs are JSON in `langwatch.input` and `.output`,
wrapped with their type: `{"type": "json", "value": ...}`. The root has the metadata of the user as
JSON; unless a type is given, it may stand for anything. Models are called `<vendor>/<model>`.
LangChain's callback leaves tool calls out of the messages, so that they are known from the spans of
the tools, and writes the result of a tool as a message. That of JavaScript writes it as LangChain
serialises it, wrapped twice, and LangGraph's metadata under `langwatch.langgraph.`.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember, members
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.unwrap import texts_of_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.otlp.spans import Span

_KIND = "langwatch.span.type"
_INPUT, _OUTPUT, _METADATA = "langwatch.input", "langwatch.output", "metadata"
_VALUE = ("value",)
_METRICS = "langwatch.metrics"

_GRAPH_SCOPE, _GRAPH = "langwatch.instrumentation.langchain", "langwatch.langgraph."
"""The scope of the callback in JavaScript, and the prefix of LangGraph's metadata."""
_AGENT_NAME, _NODE = _GRAPH + langgraph.AGENT_NAME, _GRAPH + langgraph.NODE

_KINDS: dict[str, Kind] = {
    "agent": "agent",
    "workflow": "workflow",
    "llm": "model",
    "tool": "tool",
    "chain": "chain",
}
_NO_NAMES = ("LangGraph", "Runnable", "Channel")
"""How the names of runs of LangChain begin that are names of their classes."""


def matches(span: Span) -> bool:
    """Spans with a type."""
    return _KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """By type, the runs of graphs in JavaScript by their metadata."""
    known = _KINDS.get(str(span.attributes[_KIND]), "other")
    if known == "chain" and span.scope.name == _GRAPH_SCOPE:
        return langgraph.kind_in_javascript(span.name, _graph(span))
    return known


def _graph(span: Span) -> dict[str, Any]:
    """What LangGraph's metadata say about a run."""
    return {
        langgraph.AGENT_NAME: span.attributes.get(_AGENT_NAME),
        langgraph.NODE: span.attributes.get(_NODE),
    }


def _agent_in_tool(span: Span) -> str | None:
    """The name of a graph that a tool runs, which has the agent around it in its metadata."""
    if span.attributes.get(_KIND) != "chain" or span.scope.name != _GRAPH_SCOPE:
        return None
    return span.name if langgraph.is_graph_in_tool(span.name, _graph(span)) else None


def name_of(span: Span) -> str | None:
    """The name of the span, unless it is that of a class of LangChain."""
    return None if span.name.startswith(_NO_NAMES) else as_id(span.name)


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of any form, also wrapped with their type."""
    if isinstance(value, dict) and value.keys() == {"type", "value"}:
        value = value["value"]
    return parse_messages(value, role)


def unwrap_result(value: Any) -> Result:
    """The content of the only message, as which the callback of LangChain writes a result."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        [message] = value
        if message.keys() == {"role", "content"} and message["role"] == "unknown":
            return Result(decoded(message["content"]))
    return Result(value)


def _texts_or_messages(span: Span) -> Any:
    typed = members(span.attributes.get(_INPUT))
    if typed.get("type") == "json":
        return texts_of_arguments(typed.get("value"))
    return typed.get("value")


def _result(span: Span) -> Any:
    """The output of a tool. That of the callback in JavaScript has the wrapping twice."""
    value = members(span.attributes.get(_OUTPUT)).get("value")
    if span.scope.name == _GRAPH_SCOPE and isinstance(value, dict) and "value" in value:
        return value["value"]
    return value


def _answered_call(span: Span) -> Any:
    """The id of the call whose result is in LangChain's tool message."""
    return members(members(_result(span)).get("kwargs")).get("tool_call_id")


def _may_be_entry(span: Span) -> bool:
    return span.parent_id is None or b"agent" in span.raw


LANGWATCH = Dialect(
    name="langwatch",
    before=("openllmetry",),
    scopes=("langwatch",),
    key_prefixes=(_KIND,),
    matches=matches,
    kind=kind,
    reads=(_KIND, _AGENT_NAME, _NODE),
    may_be_entry=_may_be_entry,
    name_of=name_of,
    messages=read_messages,
    unwrap_result=unwrap_result,
    fields=Fields(
        agent_name=(Derived(_agent_in_tool, reads=(_KIND, _NODE)), _AGENT_NAME),
        conversation_id=(
            "langwatch.thread.id",
            JsonMember(_METADATA, ("thread_id",)),
            _GRAPH + langgraph.THREAD,
        ),
        user_id=("langwatch.user.id", JsonMember(_METADATA, ("user_id",)), _GRAPH + "user_id"),
        call_id=(Derived(_answered_call),),
        arguments=(JsonMember(_INPUT, _VALUE),),
        result=(Derived(_result),),
        input_tokens=(JsonMember(_METRICS, ("value", "promptTokens")),),
        output_tokens=(JsonMember(_METRICS, ("value", "completionTokens")),),
        input_messages=(_INPUT,),
        output_messages=(_OUTPUT,),
        agent_input=(Derived(_texts_or_messages),),
        agent_output=(JsonMember(_OUTPUT, _VALUE),),
        tool_definitions=(
            JsonMember("langwatch.params", ("tools",)),
            JsonMember("langwatch.langchain.run.extra_params.options", ("tools",)),
        ),
    ),
)
