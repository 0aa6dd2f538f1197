"""BeeAI as instrumented by OpenInference.

Recognised by its scope. Spans of runs, models and tools follow OpenInference, with the arguments of
a tool beside options. What fails has a span `error` below it, of the same kind, and the error as
its output. The final answer of an agent is an event that looks like an agent.

Model calls stream. Calls that a model asked for together become one, whose arguments are those of
all of them, one behind the other: only the spans of the tools are right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.openinference import (
    BEEAI as SCOPE,
    OPENINFERENCE,
    kind as stated_kind,
    read_messages,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.otlp.spans import Span

_TOOL_NAME, _AGENT_NAME = "tool.name", "agent.name"
_ARGUMENTS = frozenset({"input", "options"})
_FAILURE = "error"


def kind(span: Span) -> Kind | None:
    """The stated kind, except for events."""
    if span.name == _FAILURE and _TOOL_NAME not in span.attributes:
        return "other"
    stated = stated_kind(span)
    if stated == "agent" and _AGENT_NAME not in span.attributes:
        return "other"
    return stated


def read_calls(value: Any, role: str) -> tuple[Message, ...]:
    """Messages in which the arguments of several calls at once are no arguments of the first."""
    return tuple(map(_without_joined_arguments, read_messages(value, role)))


def _without_joined_arguments(message: Message) -> Message:
    calls = tuple(
        call._replace(arguments=None) if isinstance(call.arguments, str) else call
        for call in message.calls
    )
    return message._replace(calls=calls)


def unwrap_arguments(value: Any) -> Any:
    """The arguments without the options of the call."""
    if isinstance(value, dict) and value.keys() == _ARGUMENTS:
        return value["input"]
    return value


BEEAI = replace(
    OPENINFERENCE,
    before=("openinference",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE and OPENINFERENCE.matches(span),
    kind=kind,
    reads=(*OPENINFERENCE.reads, _TOOL_NAME, _AGENT_NAME),
    messages=read_calls,
    unwrap_arguments=unwrap_arguments,
)
