"""any-agent of Mozilla: its own tracing of TinyAgent, LangChain and the other frameworks below it.

Recognised by its scope. It follows the GenAI conventions with names of its own: `call_llm` for
model calls, `gen_ai.tool.args`, and `gen_ai.output` for what a model or a tool returned. A reply is
its text, or a list of calls without ids (`[{"tool.name": ..., "tool.args": ...}]`). Only the first
model call of a run has a prompt. The spans of tools are never current, so that the run of an agent
inside a tool is beside it, and spans of what raised an exception are not ended.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.messages.message import AskedCall, Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "any_agent"

_OPERATION, _OUTPUT = "gen_ai.operation.name", "gen_ai.output"
_CALLED, _ARGUMENTS = "tool.name", "tool.args"
_MODEL_CALL = "call_llm"


def matches(span: Span) -> bool:
    """Spans of its own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """A model call. The conventions know the others."""
    return "model" if span.attributes.get(_OPERATION) == _MODEL_CALL else None


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages, or the calls that a reply consists of."""
    if isinstance(value, list):
        calls = tuple(_asked(one) for one in value if isinstance(one, dict) and _CALLED in one)
        if calls and len(calls) == len(value):
            return (Message(role, calls=calls),)
    return parse_messages(value, role)


def _asked(call: dict[str, Any]) -> AskedCall:
    return AskedCall(as_id(call[_CALLED]) or "", decoded(call.get(_ARGUMENTS)))


ANY_AGENT = Dialect(
    name="any-agent",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_OPERATION,),
    entry_names=("invoke_agent",),
    messages=read_messages,
    loses_parent=True,
    fields=Fields(
        arguments=("gen_ai.tool.args",),
        result=(_OUTPUT,),
        output_messages=(_OUTPUT,),
    ),
)
