"""The first OpenTelemetry instrumentation of the OpenAI Agents SDK,
`opentelemetry-instrumentation-openai-agents-v2`.

Recognised by its scope without a version; OpenLLMetry uses the same scope with a version. The
workflow is an `invoke_agent` span without an agent name; turns are called `unknown`. Output
messages hold the `repr` of SDK objects as text, and tool calls are in there. Every span except
those of agents has the agent name "OpenAI Agent".
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.genai import CONTENT_SETTING
from pathgauge.collector.core.invocations.messages.literals import call
from pathgauge.collector.core.invocations.messages.message import AskedCall, Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "opentelemetry.instrumentation.openai_agents"

_OPERATION, _AGENT_NAME = "gen_ai.operation.name", "gen_ai.agent.name"

_KINDS: dict[str, Kind] = {"unknown": "other", "agent_handoff": "handoff"}
_CALL = "ResponseFunctionToolCall("
_RESPONSE = "{'id': "
"""The start of the `repr` of a whole response; streamed chat completions become one."""


def matches(span: Span) -> bool:
    """Spans of that scope without a version. With a version they are OpenLLMetry's."""
    return span.scope.name == SCOPE and not span.scope.version


def kind(span: Span) -> Kind | None:
    """By operation. A workflow is an agent without a name."""
    operation = str(span.attributes.get(_OPERATION))
    if operation == "invoke_agent" and _AGENT_NAME not in span.attributes:
        return "workflow"
    return _KINDS.get(operation)


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of the conventions, in which a text may be the `repr` of a tool call."""
    return tuple(map(_with_calls, parse_messages(value, role)))


def _with_calls(message: Message) -> Message:
    text = message.text or ""
    if text.startswith(_RESPONSE):
        response = decoded(text)
        if isinstance(response, dict):
            return _with_response(message, response)
    if _CALL not in text:
        return message
    lines = text.split("\n")
    found = (_call(line) for line in lines if line.startswith(_CALL))
    calls = tuple(call for call in found if call is not None)
    if not calls:
        return message
    texts = [line for line in lines if not line.startswith(_CALL)]
    return message._replace(text="\n".join(texts) or None, calls=message.calls + calls)


def _with_response(message: Message, response: dict[Any, Any]) -> Message:
    """The message with the texts and calls of the response that was its text."""
    inner = parse_messages(response.get("output"), message.role)
    texts = [one.text for one in inner if one.text is not None]
    calls = tuple(call for one in inner for call in one.calls)
    return message._replace(text="\n".join(texts) if texts else None, calls=calls)


def _call(text: str) -> AskedCall | None:
    try:
        keywords = call(text).keywords
    except ValueError:
        return None
    name, arguments = as_id(keywords.get("name")), keywords.get("arguments")
    if name is None:
        return None
    arguments = decoded(arguments) if isinstance(arguments, str) else None
    return AskedCall(name, arguments, as_id(keywords.get("call_id")))


OPENAI_AGENTS = Dialect(
    name="openai-agents",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_OPERATION, _AGENT_NAME),
    messages=read_messages,
    content_setting=CONTENT_SETTING,
    fields=Fields(
        input_messages=("gen_ai.input.messages",), output_messages=("gen_ai.output.messages",)
    ),
)
