"""AgentOps: its decorators, and its instrumentations of OpenAI, the OpenAI Agents SDK and others.

Recognised by `agentops.span.kind`, by `gen_ai.request.type` of its model clients, or by its scopes.
Inputs and outputs of decorated functions are JSON in `agentops.<kind>.input` and `.output`, the
names of positional arguments are not recorded. A session may be that of one turn or of the whole
process, so that it is no run.

A span `tool_call.<tool>` below a chat completion is what the model asked for, not the call itself.
The reply lacks these calls, the next prompt has them. Under OpenAI Agents only the agents, tools
and model calls have a kind; a model call of Chat Completions has its whole prompt as JSON in one
message, and the completion beside it is a child of the session.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Flattened
from pathgauge.collector.core.invocations.messages.message import Message, without_item_ids
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

_KIND, _NAME = "agentops.span.kind", "operation.name"
_REQUEST_TYPE, _STEP_TYPE = "gen_ai.request.type", "workflow.step.type"
_INSTRUMENTATION = "instrumentation.name"
_FROM, _TO = "from_agent", "to_agent"

_SCOPE, _AGENTS_SCOPE = "agentops", "openai-agents"
_ENTRIES = (".workflow", ".agent")

_KINDS: dict[str, Kind] = {
    "agent": "agent",
    "workflow": "workflow",
    "llm": "model",
    "tool": "tool",
    "chain": "chain",
}


def matches(span: Span) -> bool:
    """Spans of its decorators and instrumentations."""
    attributes = span.attributes
    if _KIND in attributes or _REQUEST_TYPE in attributes:
        return True
    if span.scope.name == _AGENTS_SCOPE:
        return _INSTRUMENTATION in attributes
    return span.scope.name.startswith(_SCOPE)


def kind(span: Span) -> Kind | None:
    """The stated kind; without one, a model client or a step of OpenAI Agents."""
    attributes = span.attributes
    stated = attributes.get(_KIND)
    if stated is not None:
        return _KINDS.get(str(stated), "other")
    if _REQUEST_TYPE in attributes:
        return "model"
    if _FROM in attributes and _TO in attributes:
        return "handoff"
    return "workflow" if attributes.get(_STEP_TYPE) == "trace" else "other"


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Flattened messages. One of them may hold the whole prompt as JSON, a reply nothing but the
    reason why the model stopped, and a call the id of an item, which no result has.
    """
    messages = parse_messages(value, role)
    if len(messages) == 1 and (messages[0].text or "").startswith('[{"'):
        messages = parse_messages(decoded(messages[0].text), role) or messages
    return without_item_ids(
        message
        for message in messages
        if message.is_recorded or message.finish_reason != "tool_calls"
    )


def _may_be_entry(span: Span) -> bool:
    return span.parent_id is None or span.name.endswith(_ENTRIES)


AGENTOPS = Dialect(
    name="agentops",
    before=("openllmetry", "openai_agents"),
    scopes=(_SCOPE,),
    key_prefixes=("agentops.", _REQUEST_TYPE, _INSTRUMENTATION),
    matches=matches,
    kind=kind,
    reads=(_KIND, _NAME, _REQUEST_TYPE, _STEP_TYPE, _INSTRUMENTATION, _FROM, _TO),
    may_be_entry=_may_be_entry,
    name_of=lambda span: as_id(span.attributes.get(_NAME)),
    messages=read_messages,
    unwrap_arguments=callable_arguments,
    calls_in_next_prompt=True,
    content_setting="TRACELOOP_TRACE_CONTENT=true",
    fields=Fields(
        agent_name=("agent.name",),
        tool_name=("tool.name",),
        call_id=("tool.call.id",),
        arguments=("agentops.tool.input", "tool.parameters"),
        result=("agentops.tool.output", "tool.result"),
        input_messages=(Flattened("gen_ai.prompt"),),
        output_messages=(Flattened("gen_ai.completion"),),
        agent_output=("agentops.agent.output", "agentops.workflow.output"),
        finish_reasons=("gen_ai.completion.0.finish_reason",),
        tool_definitions=(Flattened("gen_ai.request.functions"),),
    ),
)
