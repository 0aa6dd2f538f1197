"""The OpenTelemetry GenAI semantic conventions, all versions from 1.26.

Recognised by `gen_ai.*` attributes, `mcp.method.name`, or the span names of the conventions.
Content is in one of: span attributes (JSON text, or structured since 1.37), log records or span
events `gen_ai.client.inference.operation.details`, the older message events
`gen_ai.{system,user,assistant,tool}.message` and `gen_ai.choice` (as log records or span events),
and before 1.27 the events `gen_ai.content.{prompt,completion}`. Content capture is off by default.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
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
"""Span names of the conventions, for instrumentations that omit the operation."""

_NAME_PREFIXES = tuple(NAMES)

WITHOUT_AGENTS = frozenset({"embeddings", "retrieval", "execute_task", "goto"})
"""Operations that are known and that say nothing of an agent's run."""

CONTENT_SETTING = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"

_TOOL_NAME = "gen_ai.tool.name"
_NAME_FOR_MODELS = "tool_name"
_OPERATION, _MCP_METHOD = "gen_ai.operation.name", "mcp.method.name"
_KEY_PREFIXES = ("gen_ai.", _MCP_METHOD)


def matches(span: Span) -> bool:
    """By any attribute of the conventions, or by the name if attributes were dropped."""
    return span.name.startswith(_NAME_PREFIXES) or any(
        key.startswith(_KEY_PREFIXES) for key in span.attributes
    )


def has_model_details(span: Span) -> bool:
    """Whether the operation is a model call, which some instrumentations write on agent spans."""
    return _operation(span) == "model"


def is_unknown_operation(span: Span) -> bool:
    """Whether a span has no operation, or one that the conventions do not know."""
    operation = str(span.attributes.get(_OPERATION) or "")
    return operation not in OPERATIONS and operation not in WITHOUT_AGENTS


def kind(span: Span) -> Kind | None:
    """By operation, except that an `invoke_agent` span with model details stays an agent."""
    operation = _operation(span)
    if operation == "model" and span.name.startswith("invoke_agent "):
        return "agent"
    if operation == "tool" and str(span.attributes.get(_TOOL_NAME)).startswith("("):
        return "dropped"  # sums up other calls; models call no function by such a name
    if operation is not None:
        return operation
    if span.attributes.get(_MCP_METHOD) == "tools/call":
        return "tool"
    return next((kind for prefix, kind in NAMES.items() if span.name.startswith(prefix)), None)


def _name_of_mcp_tool(span: Span) -> str | None:
    """The name under which models know the tool of an MCP server, `mcp__<server>__<tool>`. The
    attribute of the conventions may have the name in the server.
    """
    name = span.attributes.get(_NAME_FOR_MODELS)
    if not isinstance(name, str) or not name.startswith("mcp__"):
        return None
    return name if name.endswith(f"__{span.attributes.get(_TOOL_NAME)}") else None


def _operation(span: Span) -> Kind | None:
    return OPERATIONS.get(str(span.attributes.get(_OPERATION) or ""))


GENAI = Dialect(
    name="genai",
    names=_NAME_PREFIXES,
    key_prefixes=_KEY_PREFIXES,
    matches=matches,
    kind=kind,
    reads=(
        _OPERATION,
        _MCP_METHOD,
        # Two keys of early versions, by which their spans are recognised.
        "gen_ai.provider.name",
        "gen_ai.system",
        # Read by the code that all dialects share.
        "gen_ai.transfer.mode",
    ),
    entry_names=("invoke_agent", "invoke_workflow"),
    content_setting=CONTENT_SETTING,
    fields=Fields(
        agent_name=("gen_ai.agent.name",),
        agent_version=("gen_ai.agent.version",),
        workflow_name=("gen_ai.workflow.name",),
        conversation_id=("gen_ai.conversation.id", "session.id"),
        user_id=("user.id", "enduser.id"),
        tool_name=(Derived(_name_of_mcp_tool, reads=(_NAME_FOR_MODELS, _TOOL_NAME)), _TOOL_NAME),
        tool_type=("gen_ai.tool.type",),
        call_id=("gen_ai.tool.call.id", "gen_ai.tool.call_id"),
        arguments=("gen_ai.tool.call.arguments",),
        result=("gen_ai.tool.call.result",),
        request_model=("gen_ai.request.model",),
        response_model=("gen_ai.response.model",),
        response_id=("gen_ai.response.id",),
        input_tokens=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        output_tokens=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        cached_tokens=(
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
        ),
        cache_write_tokens=(
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_write_input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
        ),
        total_input_tokens=("gen_ai.usage.input_tokens",),
        total_output_tokens=("gen_ai.usage.output_tokens",),
        input_messages=("gen_ai.input.messages", "gen_ai.prompt"),
        output_messages=("gen_ai.output.messages", "gen_ai.completion"),
        finish_reasons=("gen_ai.response.finish_reasons",),
        error_type=("error.type",),
        tool_definitions=("gen_ai.tool.definitions",),
    ),
)
