"""smolagents as instrumented by OpenInference: the run of an agent, its steps, and in each step a
model call and tool calls.

Tool spans are named after the class of the tool; `tool.name` has the name. An agent that manages
others calls them without a tool span. A run that raises never ends its span, so its steps arrive
without it. The task of the user is `task` in the input of the run, and has a heading in the prompt.
The output of a streamed run is not its answer, but all its events.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.openinference import (
    OPENINFERENCE,
    SMOLAGENTS as SCOPE,
    kind as stated_kind,
    read_messages,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.otlp.spans import Span

_HEADING = "New task:\n"


def kind(span: Span) -> Kind | None:
    """The stated kind, except for steps, and for agents, which another agent may manage."""
    stated = stated_kind(span)
    if stated == "chain":
        return "other"
    if stated == "agent":
        return "nested_agent"
    return stated


def read_tasks(value: Any, role: str) -> tuple[Message, ...]:
    """Messages without the heading of the user's tasks."""
    return tuple(map(_without_heading, read_messages(value, role)))


def _without_heading(message: Message) -> Message:
    if message.role != "user" or not message.text:
        return message
    return message._replace(text=message.text.removeprefix(_HEADING))


SMOLAGENTS = replace(
    OPENINFERENCE,
    before=("openinference",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE and OPENINFERENCE.matches(span),
    kind=kind,
    messages=read_tasks,
    unwrap_arguments=callable_arguments,
)
