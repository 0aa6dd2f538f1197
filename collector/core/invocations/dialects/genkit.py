"""Genkit, own telemetry of its JavaScript, Go and Python libraries.

Recognised by the scope `genkit-tracer`; there is no attribute of the GenAI conventions. Every
action is a span: flows, models, tools. A round of model and tools is a span `generate`, which lies
inside the round before it. A flow begins a trace of its own, even inside of a request.

Every value is JSON, including texts; Go writes `null` where there is none. A model is known as
`<plugin>/<model>`, and a tool of an MCP server as `<server>/<tool>`, of which models see the last
part only. Texts are spread over several parts when they were streamed. The metadata of users has
the same prefix as Genkit's own. Chats have a session, and flows have no conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember, members
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "genkit-tracer"

_SUBTYPE, _NAME = "genkit:metadata:subtype", "genkit:name"
_INPUT, _OUTPUT = "genkit:input", "genkit:output"

_TOOL_WITH_MEDIA = "tool.v2"
_KINDS: dict[str, Kind] = {
    "flow": "workflow",
    "model": "model",
    "tool": "tool",
    _TOOL_WITH_MEDIA: "tool",
}
_ENCODED_FLOW = b"\n\x04flow"
"""The attribute value `flow` in the encoded span."""


def matches(span: Span) -> bool:
    """Spans of Genkit's own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By the type of the action. Rounds, prompts and steps of flows only connect other spans."""
    return _KINDS.get(str(span.attributes.get(_SUBTYPE)), "other")


def function_name(name: str) -> str:
    """The tool without its server, as models know it."""
    return name.rpartition("/")[2] or name


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages in which adjacent parts of text are one text: Genkit joins them without a break."""
    if isinstance(value, list):
        return parse_messages(list(map(_with_joined_texts, value)), role)
    return parse_messages(_with_joined_texts(value), role)


def _with_joined_texts(message: Any) -> Any:
    parts = message.get("content") if isinstance(message, dict) else None
    if not isinstance(parts, list):
        return message
    joined: list[Any] = []
    for is_text, some in groupby(parts, _is_text):
        adjacent = list(some)
        if is_text:
            adjacent = [{"text": "".join(part["text"] for part in adjacent)}]
        joined += adjacent
    return {**message, "content": joined}


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)


def _written(span: Span, key: str) -> Any:
    """The JSON text of an input or output, unless it is that of nothing."""
    written = span.attributes.get(key) if matches(span) else None
    return None if written == "null" else written


def _input(span: Span) -> Any:
    return _written(span, _INPUT)


def _output(span: Span) -> Any:
    return _written(span, _OUTPUT)


def _result(span: Span) -> Any:
    """The result of a tool. One that may return media has it beside these."""
    output = _output(span)
    if span.attributes.get(_SUBTYPE) != _TOOL_WITH_MEDIA:
        return output
    parts: Mapping[str, Any] = members(output)
    return parts.get("output", parts.get("content"))


def _requested_model(span: Span) -> str | None:
    """The model without its plugin."""
    name = as_id(span.attributes.get(_NAME)) or ""
    return name.partition("/")[2] or name or None


GENKIT = Dialect(
    name="genkit",
    before=("langsmith",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_SUBTYPE,),
    may_be_entry=lambda span: _ENCODED_FLOW in span.raw,
    function_name=function_name,
    messages=read_messages,
    fields=Fields(
        workflow_name=(_NAME,),
        conversation_id=("genkit:sessionId",),
        tool_name=(_NAME,),
        arguments=(Derived(_input),),
        result=(Derived(_result),),
        request_model=(Derived(_requested_model, reads=(_NAME,)),),
        response_model=(
            JsonMember(_OUTPUT, ("raw", "model")),
            JsonMember(_OUTPUT, ("raw", "modelVersion")),
        ),
        input_tokens=(JsonMember(_OUTPUT, ("usage", "inputTokens")),),
        output_tokens=(JsonMember(_OUTPUT, ("usage", "outputTokens")),),
        cached_tokens=(JsonMember(_OUTPUT, ("usage", "cachedContentTokens")),),
        input_messages=(JsonMember(_INPUT, ("messages",)),),
        output_messages=(
            JsonMember(_OUTPUT, ("message",)),
            JsonMember(_OUTPUT, ("candidates", 0, "message")),
        ),
        agent_input=(Derived(_input),),
        agent_output=(Derived(_output),),
        finish_reasons=(JsonMember(_OUTPUT, ("finishReason",)),),
        tool_definitions=(JsonMember(_INPUT, ("tools",)),),
    ),
)
