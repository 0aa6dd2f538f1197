"""LlamaIndex as instrumented by OpenLLMetry: every method that is timed is a span `<class>.task`.

Recognised by its scope. All these tasks state the same kind, so attributes tell what they are.
Steps of a workflow are siblings: those of an agent have its name in their output, and the tools
that it called stand beside them. A model call is the innermost of three tasks of the same class.
Its message leaves tool calls out, which the output of the task has. A tool inside the step that
called it is the same call again. Failures of tools are only stated in that output.

Model calls of the class `OpenAI` are left to the instrumentation of its client. A run that fails
never ends its span, nor that of the step and of the model call that failed. When streaming, steps
have no output, and model calls no tool calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    JsonMember,
    members,
    value_below,
)
from pathgauge.collector.core.invocations.dialects.genai import OPERATIONS
from pathgauge.collector.core.invocations.dialects.llama_index import unwrap_result
from pathgauge.collector.core.invocations.dialects.openllmetry import (
    KIND,
    LLAMA_INDEX_SCOPE as SCOPE,
    OPENLLMETRY,
)
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.otlp.spans import Span

_OPERATION, _TOOL_NAME = "gen_ai.operation.name", "tool.name"
_INPUT, _OUTPUT = "traceloop.entity.input", "traceloop.entity.output"

_AGENT_NAME = JsonMember(_OUTPUT, ("current_agent_name",))
_TOOL_OF_OUTPUT = JsonMember(_OUTPUT, ("tool_name",))
_WORKFLOW, _TOOL = ".workflow", "Tool.task"


def matches(span: Span) -> bool:
    """Spans of that scope."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By what the attributes of a task are about."""
    attributes = span.attributes
    if attributes.get(KIND) == "workflow":
        return "workflow"
    if _OPERATION in attributes:
        return OPERATIONS.get(str(attributes[_OPERATION]), "other")
    if _TOOL_NAME in attributes:
        return "tool"
    if span.name.endswith(_TOOL):
        return "tool" if _TOOL_OF_OUTPUT.find(span) else "tool_detail"
    if _AGENT_NAME.find(span):
        return "turn"
    return "other"


def name_of(span: Span) -> str | None:
    """The class of a workflow."""
    if span.name.endswith(_WORKFLOW):
        return span.name.removesuffix(_WORKFLOW) or None
    return None


def _member(span: Span, *path: str) -> Any:
    return value_below(members(span.attributes.get(_OUTPUT)), path) if matches(span) else None


def _given(span: Span) -> Any:
    return span.attributes.get(_INPUT) if matches(span) else None


def _asked(span: Span) -> Any:
    """What a step was given, as messages."""
    given = _member(span, "input")
    return [_message(one) for one in given] if isinstance(given, list) else None


def _answered(span: Span) -> Any:
    """What a run returned, as a message."""
    response = _member(span, "result", "response")
    return None if response is None else _message(response)


def _said(span: Span) -> Any:
    """What a model said and asked for, as a message."""
    message = _member(span, "message")
    return None if message is None else _message(message)


def _message(message: Any) -> Any:
    """A message of LlamaIndex in the form of OpenAI, where tool calls are among its blocks."""
    stated = members(message)
    listed = stated.get("blocks")
    blocks = [members(one) for one in listed] if isinstance(listed, list) else []
    texts = [one["text"] for one in blocks if isinstance(one.get("text"), str)]
    calls = [
        {
            "id": one.get("tool_call_id"),
            "function": {"name": one.get("tool_name"), "arguments": one.get("tool_kwargs")},
        }
        for one in blocks
        if one.get("block_type") == "tool_call"
    ]
    return {"role": stated.get("role"), "content": _joined(texts), "tool_calls": calls}


def _joined(texts: Iterable[str]) -> str | None:
    return "\n".join(texts) or None


def _result(span: Span) -> Any:
    """The output of the tool inside that of the step that called it, otherwise that of the tool."""
    inner = _member(span, "tool_output")
    if inner is None and _member(span, "raw_output") is not None:
        return span.attributes.get(_OUTPUT)
    return inner


OPENLLMETRY_LLAMA_INDEX = replace(
    OPENLLMETRY,
    before=("openllmetry",),
    scopes=(SCOPE,),
    key_prefixes=(),
    matches=matches,
    kind=kind,
    reads=(KIND, _OPERATION),
    name_of=name_of,
    unwrap_arguments=callable_arguments,
    unwrap_result=unwrap_result,
    beside_run=False,
    outranks_conventions=True,
    fields=Fields(
        agent_name=(_AGENT_NAME,),
        tool_name=(_TOOL_NAME, _TOOL_OF_OUTPUT),
        call_id=(JsonMember(_OUTPUT, ("tool_id",)),),
        arguments=("tool.arguments", Derived(_given)),
        result=(Derived(_result),),
        output_messages=(Derived(_said),),
        agent_input=(Derived(_asked),),
        agent_output=(Derived(_answered),),
    ),
)
