"""LlamaIndex as OpenInference instruments it: spans are called after the methods that they time
(`AgentWorkflow.run_agent_step`).

A workflow's steps lie beside each other below its run: an agent's turn (`run_agent_step`), then the
tools that it asked for, then the next turn. Their events are written as Python's `repr`; the name
of the agent ends the input of a turn. Preparing a model call is given the kind of a model call. An
agent that reasons in text answers behind its thoughts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.field_paths import members
from pathgauge.collector.core.invocations.dialects.openinference import (
    OPENINFERENCE,
    kind as named_kind,
    read_messages,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.unwrap import Result, callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_text, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "openinference.instrumentation.llama_index"

_TURN, _PREPARATION = ".run_agent_step", "._prepare_chat_with_tools"

_AGENT_NAME = re.compile(r"current_agent_name=(?:'([^']*)'|\"([^\"]*)\")\)$")

_OUTPUT = frozenset({"tool_name", "raw_output"})

_THOUGHT, _ANSWER = "Thought:", "Answer:"


def kind(span: Span) -> Kind | None:
    """The kind as named, but for turns and for what only prepares a model call."""
    if span.name.endswith(_PREPARATION):
        return "other"
    return "turn" if span.name.endswith(_TURN) else named_kind(span)


def name_of(span: Span) -> str | None:
    """The agent whose turn it is; of any other span the class."""
    if not span.name.endswith(_TURN):
        return span.name.partition(".")[0] or None
    found = _AGENT_NAME.search(str(members(span.attributes.get("input.value")).get("ev") or ""))
    return (found[1] or found[2] or None) if found else None


def read_answers(value: Any, role: str) -> tuple[Message, ...]:
    """Messages in which an answer stands without the thoughts before it, and thoughts without an
    answer are no text.
    """
    return tuple(map(_without_thoughts, read_messages(value, role)))


def _without_thoughts(message: Message) -> Message:
    text = message.text or ""
    if message.role != "assistant" or not text.lstrip().startswith(_THOUGHT):
        return message
    return message._replace(text=text.partition(_ANSWER)[2].strip() or None)


def unwrap_result(value: Any) -> Result:
    """What the function returned, in the object that stands for a tool's output."""
    if not isinstance(value, dict) or not value.keys() >= _OUTPUT:
        return Result(value)
    returned = decoded(value["raw_output"])
    return Result(
        returned, (as_text(returned) or "error") if value.get("is_error") is True else None
    )


LLAMA_INDEX = replace(
    OPENINFERENCE,
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE and OPENINFERENCE.matches(span),
    kind=kind,
    name_of=name_of,
    messages=read_answers,
    unwrap_arguments=callable_arguments,
    unwrap_result=unwrap_result,
)
