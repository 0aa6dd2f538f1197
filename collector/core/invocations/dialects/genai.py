"""The OpenTelemetry GenAI semantic conventions, all versions from 1.26 on.

Recognised by `gen_ai.*` attributes, `mcp.method.name`, or the conventions' span names. Content
hides in one of: span attributes (JSON text, or structured since 1.37), log records or span events
`gen_ai.client.inference.operation.details`, the older message events
`gen_ai.{system,user,assistant,tool}.message` and `gen_ai.choice` (as logs or span events), and
before 1.27 the events `gen_ai.content.{prompt,completion}`. Without the opt-in switch there is none
at all.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.otlp.spans import Span

OPERATIONS: dict[str, Kind] = {
    "invoke_agent": "agent",
    "invoke_workflow": "workflow",
    "execute_tool": "tool",
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "create_agent": "dropped",
    # Gemini CLI
    "user_prompt": "agent",
    "agent_call": "agent",
    "llm_call": "model",
    "tool_call": "tool",
}

NAMES: dict[str, Kind] = {
    "invoke_agent ": "agent",
    "invoke_workflow ": "workflow",
    "execute_tool ": "tool",
}
"""Span names of the conventions, for instrumentations that leave the operation out."""

_NAME_PREFIXES = tuple(NAMES)

_KEY_PREFIXES = ("gen_ai.", "mcp.method.name")


def matches(span: Span) -> bool:
    """Any attribute of the conventions will do; the name, where attributes were dropped."""
    return span.name.startswith(_NAME_PREFIXES) or any(
        key.startswith(_KEY_PREFIXES) for key in span.attributes
    )


def has_model_details(span: Span) -> bool:
    """Whether the operation is that of a model call, as some instrumentations write it on agent
    spans too.
    """
    return OPERATIONS.get(str(span.attributes.get("gen_ai.operation.name") or "")) == "model"


def kind(span: Span) -> Kind | None:
    """The operation decides, but an `invoke_agent` span on which model details were written stays
    an agent.
    """
    operation = OPERATIONS.get(str(span.attributes.get("gen_ai.operation.name") or ""))
    if operation == "model" and span.name.startswith("invoke_agent "):
        return "agent"
    if operation is not None:
        return operation
    if span.attributes.get("mcp.method.name") == "tools/call":
        return "tool"
    return next((kind for prefix, kind in NAMES.items() if span.name.startswith(prefix)), None)


GENAI = Dialect(
    name="genai",
    names=_NAME_PREFIXES,
    byte_marks=tuple(prefix.encode() for prefix in _KEY_PREFIXES),
    matches=matches,
    kind=kind,
    entry_names=("invoke_agent", "invoke_workflow"),
    fields=Fields(
        agent_name=("gen_ai.agent.name",),
        agent_version=("gen_ai.agent.version",),
        workflow_name=("gen_ai.workflow.name",),
        conversation_id=("gen_ai.conversation.id", "session.id"),
        user_id=("user.id", "enduser.id"),
        tool_name=("gen_ai.tool.name",),
        tool_type=("gen_ai.tool.type",),
        call_id=("gen_ai.tool.call.id", "gen_ai.tool.call_id"),
        arguments=("gen_ai.tool.call.arguments",),
        result=("gen_ai.tool.call.result",),
        request_model=("gen_ai.request.model",),
        response_model=("gen_ai.response.model",),
        input_tokens=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        output_tokens=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        total_input_tokens=("gen_ai.usage.input_tokens",),
        total_output_tokens=("gen_ai.usage.output_tokens",),
        input_messages=("gen_ai.input.messages", "gen_ai.prompt"),
        output_messages=("gen_ai.output.messages", "gen_ai.completion"),
        finish_reasons=("gen_ai.response.finish_reasons",),
        error_type=("error.type",),
        tool_definitions=("gen_ai.tool.definitions",),
    ),
)
