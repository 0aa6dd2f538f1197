"""Mastra, by its exporter or its bridge: the GenAI conventions, and what an agent was given in
attributes of its own.

Recognised by `mastra.span.type`. A run of an agent is a generation of steps, each with one model
call, and with the tools that it asked for; operations of such steps are Mastra's own. In earlier
versions the generation is the model call. The messages of a model call have its text and not its
tool calls, which are on the step around it. So is the prompt, but it only names calls and results.

A model call that failed has the status OK; only its finish reason tells. Then the agent fails, too,
unless it tries again. An agent that another one calls is a tool `agent-<name>`.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    JsonMember,
    members,
)
from pathgauge.collector.core.invocations.dialects.genai import OPERATIONS
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import Span

TYPE = "mastra.span.type"

_OPERATION, _FINISH = "gen_ai.operation.name", "gen_ai.response.finish_reasons"


def matches(span: Span) -> bool:
    """Spans with a type of Mastra."""
    return TYPE in span.attributes


def kind(span: Span) -> Kind | None:
    """By operation. Those of the conventions mean the same here; all others are steps."""
    return OPERATIONS.get(str(span.attributes.get(_OPERATION)), "other")


def failure(span: Span) -> str | None:
    """The only sign of a model call that failed."""
    if decoded(span.attributes.get(_FINISH)) in ("error", ["error"]):
        return "error"
    return None


def _step_output(span: Span) -> Any:
    """What the model said and asked for, as one message."""
    output = members(span.attributes.get("mastra.model_step.output"))
    return {
        "role": "assistant",
        "content": output.get("text"),
        "tool_calls": output.get("toolCalls"),
    }


MASTRA = Dialect(
    name="mastra",
    before=("langsmith",),
    key_prefixes=(TYPE,),
    matches=matches,
    kind=kind,
    reads=(TYPE, _OPERATION, _FINISH),
    failure=failure,
    content_setting="hideInput: false, hideOutput: false",
    fields=Fields(
        conversation_id=("mastra.metadata.threadId",),
        user_id=("mastra.metadata.resourceId",),
        step_output=(Derived(_step_output),),
        agent_input=("mastra.agent_run.input", "mastra.workflow_run.input"),
        agent_output=("mastra.workflow_run.output",),
        final_response=(JsonMember("mastra.agent_run.output", ("text",)),),
    ),
)
