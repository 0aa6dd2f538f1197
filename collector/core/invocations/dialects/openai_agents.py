"""The first OpenTelemetry instrumentation of the OpenAI Agents SDK,
`opentelemetry-instrumentation-openai-agents-v2`.

Recognised by its scope without a version; OpenLLMetry uses the same scope with one. The workflow is
an `invoke_agent` span without an agent's name; turns are called `unknown`. Output messages hold the
`repr` of the SDK's objects as text, which is where tool calls are, and every span but the agents'
bears the agent name "OpenAI Agent".
"""

from __future__ import annotations

import ast
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.messages.literals import expression
from pathgauge.collector.core.invocations.messages.message import AskedCall, Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "opentelemetry.instrumentation.openai_agents"

_KINDS: dict[str, Kind] = {"unknown": "other", "agent_handoff": "handoff"}
_CALL = "ResponseFunctionToolCall("
_RESPONSE = "{'id': "
"""How the `repr` of a whole response begins, which streaming chat completions are turned into."""


def matches(span: Span) -> bool:
    """Spans of that scope, unless a version tells that they are OpenLLMetry's."""
    return span.scope.name == SCOPE and not span.scope.version


def kind(span: Span) -> Kind | None:
    """The workflow has no agent's name."""
    operation = str(span.attributes.get("gen_ai.operation.name"))
    if operation == "invoke_agent" and "gen_ai.agent.name" not in span.attributes:
        return "workflow"
    return _KINDS.get(operation)


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of the conventions, in which a text may be the `repr` of a tool call."""
    return tuple(map(_with_calls, parse_messages(value, role)))


def _with_calls(message: Message) -> Message:
    text = message.text or ""
    if text.startswith(_RESPONSE) and isinstance(response := decoded(text), dict):
        inner = parse_messages(response.get("output"), message.role)
        return message._replace(
            text="\n".join(m.text for m in inner if m.text) or None,
            calls=tuple(c for m in inner for c in m.calls),
        )
    lines = text.split("\n")
    calls = tuple(
        call for line in lines if line.startswith(_CALL) and (call := _call(line)) is not None
    )
    if not calls:
        return message
    texts = [line for line in lines if not line.startswith(_CALL)]
    return message._replace(text="\n".join(texts) or None, calls=message.calls + calls)


def _call(text: str) -> AskedCall | None:
    try:
        call = expression(text)
        keywords = call.keywords if isinstance(call, ast.Call) else []
        members = {
            word.arg: ast.literal_eval(word.value)
            for word in keywords
            if isinstance(word.value, ast.Constant)
        }
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    name = as_id(members.get("name"))
    return (
        None
        if name is None
        else AskedCall(name, decoded(members.get("arguments")), as_id(members.get("call_id")))
    )


OPENAI_AGENTS = Dialect(
    name="openai-agents",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    messages=read_messages,
    fields=Fields(
        input_messages=("gen_ai.input.messages",), output_messages=("gen_ai.output.messages",)
    ),
)
