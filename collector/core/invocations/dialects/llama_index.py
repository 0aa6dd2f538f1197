"""LlamaIndex as instrumented by OpenInference: spans are named after the methods that they time
(`AgentWorkflow.run_agent_step`).

The steps of a workflow are siblings below its run: the turn of an agent (`run_agent_step`), the
tools that it called, the next turn. Their events are written as Python `repr`; the input of a turn
ends with the name of the agent. A span that only prepares a model call has the kind of a model
call. The answer of an agent that reasons in text follows its thoughts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.field_paths import members
from pathgauge.collector.core.invocations.dialects.openinference import (
    OPENINFERENCE,
    kind as stated_kind,
    read_messages,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_text, decoded
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "openinference.instrumentation.llama_index"

_TURN, _PREPARATION = ".run_agent_step", "._prepare_chat_with_tools"

_AGENT_NAME = re.compile(r"current_agent_name=(?:'([^']*)'|\"([^\"]*)\")\)$")

_TOOL_OUTPUT_KEYS = frozenset({"tool_name", "raw_output"})

_THOUGHT, _ANSWER = "Thought:", "Answer:"


def kind(span: Span) -> Kind | None:
    """The stated kind, except for turns and for preparations of a model call."""
    if span.name.endswith(_PREPARATION):
        return "other"
    if span.name.endswith(_TURN):
        return "turn"
    return stated_kind(span)


def name_of(span: Span) -> str | None:
    """The agent of a turn; for other spans the class."""
    if not span.name.endswith(_TURN):
        return span.name.partition(".")[0] or None
    found = _AGENT_NAME.search(str(members(span.attributes.get("input.value")).get("ev") or ""))
    if found:
        return found[1] or found[2] or None
    return None


def read_answers(value: Any, role: str) -> tuple[Message, ...]:
    """Messages without the thoughts before the answer. Thoughts without an answer are no text."""
    return tuple(map(_without_thoughts, read_messages(value, role)))


def _without_thoughts(message: Message) -> Message:
    text = message.text or ""
    if message.role != "assistant" or not text.lstrip().startswith(_THOUGHT):
        return message
    return message._replace(text=text.partition(_ANSWER)[2].strip() or None)


def unwrap_result(value: Any) -> Result:
    """The return value of the function, inside LlamaIndex's object for tool outputs."""
    if not isinstance(value, dict) or not value.keys() >= _TOOL_OUTPUT_KEYS:
        return Result(value)
    returned = decoded(value["raw_output"])
    error = (as_text(returned) or "error") if value.get("is_error") is True else None
    return Result(returned, error)


LLAMA_INDEX = replace(
    OPENINFERENCE,
    before=("openinference",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE and OPENINFERENCE.matches(span),
    kind=kind,
    name_of=name_of,
    messages=read_answers,
    unwrap_arguments=callable_arguments,
    unwrap_result=unwrap_result,
)
