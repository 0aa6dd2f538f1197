"""VoltAgent, own telemetry, with attributes of its own.

Recognised by the scope `@voltagent/core`. Spans of agents have a state, those inside them a type.
One span for the model encloses all rounds of an agent: its messages are those of the first round,
its tokens those of the last one, and the tools stand beside it. The agent states the tokens of all
its rounds, without those of agents that it calls.

What a model asked for is not recorded: a call has a span if its tool ran, so that calls of unknown
tools and those with refused arguments are lost, unless the AI SDK below records them. A sub-agent
has the name of its caller beside its own.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import STATUS_ERROR, Span

SCOPE = "@voltagent/core"

_TYPE, _OPERATION = "span.type", "llm.operation"
_AGENT, _WORKFLOW = "agent.state", "workflow.state"
_OUTPUT = "output"

_TITLE = "generateTitle"
"""The model call that names a new conversation."""
_TOOL, _ROUTER = "tool.execution:", "tool.execution:callTool"
"""Other spans of the type `tool` search for tools. A router that succeeded has executed another
tool, which has a span of its own beside it.
"""


def matches(span: Span) -> bool:
    """All spans of its scope."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By type, and by the state that only agents and workflows have."""
    stated = span.attributes.get(_TYPE)
    if stated == "llm":
        return "other" if span.attributes.get(_OPERATION) == _TITLE else "model"
    if stated == "tool":
        has_routed = span.name == _ROUTER and span.status != STATUS_ERROR
        return "tool" if span.name.startswith(_TOOL) and not has_routed else "other"
    if _AGENT in span.attributes:
        return "agent"
    return "workflow" if _WORKFLOW in span.attributes else "other"


def may_be_entry(span: Span) -> bool:
    """Spans with a state."""
    return _AGENT.encode() in span.raw or _WORKFLOW.encode() in span.raw


def _answer(span: Span) -> Any:
    """What an agent returned, or a workflow if it is a text, alone or in an object."""
    output = span.attributes.get(_OUTPUT)
    if _AGENT in span.attributes:
        return output
    value = decoded(output)
    if isinstance(value, dict) and len(value) == 1:
        [value] = value.values()
    return value if isinstance(value, str) else None


VOLTAGENT = Dialect(
    name="voltagent",
    before=("langsmith",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_TYPE, _OPERATION, _AGENT, _WORKFLOW),
    may_be_entry=may_be_entry,
    states_last_round=True,
    totals_leave_out_agents=True,
    fields=Fields(
        agent_name=("subagent.name", "entity.name"),
        workflow_name=("entity.name",),
        conversation_id=("conversation.id",),
        user_id=("user.id",),
        tool_name=("tool.name",),
        call_id=("tool.call.id",),
        arguments=("input",),
        result=(_OUTPUT,),
        request_model=("llm.model",),
        input_tokens=("llm.usage.prompt_tokens",),
        output_tokens=("llm.usage.completion_tokens",),
        cached_tokens=("llm.usage.cached_tokens",),
        total_input_tokens=("usage.prompt_tokens",),
        total_output_tokens=("usage.completion_tokens",),
        input_messages=("llm.messages",),
        agent_input=("input",),
        final_response=(Derived(_answer),),
        finish_reasons=("llm.finish_reason",),
    ),
)
