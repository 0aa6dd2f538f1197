"""smolagents as OpenInference instruments it: an agent's run, its steps, and in each step a model
call and tool calls.

Tool spans are called after the tool's class; `tool.name` has the name. An agent that manages others
calls them without a tool span. A run that raises never ends its span, so its steps arrive without
it. The task that the user set is `task` of the run's input, and with a heading in what the model is
shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.openinference import (
    OPENINFERENCE,
    kind as named_kind,
    read_messages,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "openinference.instrumentation.smolagents"

_HEADING = "New task:\n"


def kind(span: Span) -> Kind | None:
    """The kind as named, but for steps and for agents that may be managed."""
    named = named_kind(span)
    return "other" if named == "chain" else "nested_agent" if named == "agent" else named


def read_tasks(value: Any, role: str) -> tuple[Message, ...]:
    """Messages in which the heading is taken off the user's tasks."""
    return tuple(
        _bare(message) if message.role == "user" else message
        for message in read_messages(value, role)
    )


def _bare(message: Message) -> Message:
    return message._replace(text=message.text.removeprefix(_HEADING)) if message.text else message


SMOLAGENTS = replace(
    OPENINFERENCE,
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE and OPENINFERENCE.matches(span),
    kind=kind,
    messages=read_tasks,
    unwrap_arguments=callable_arguments,
)
