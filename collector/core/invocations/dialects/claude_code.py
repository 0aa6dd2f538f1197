"""Claude Code and the Claude Agent SDK, which runs it.

Recognised by its scope. `claude_code.interaction` is a turn, below it are `claude_code.llm_request`
and `claude_code.tool`; sub-agents work below the tool that called them, without a span of their
own. The parts of a tool's span, `.blocked_on_user` and `.execution`, say whether it was permitted
and whether it succeeded. Token counts have bare names, and input excludes what was read from the
cache or written to it. Prompts and results each need a switch, arguments and answers detailed
tracing; log records are not tied to the spans. Models know a tool of an MCP server as
`mcp__<server>__<tool>`, which is in `tool_name`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, InEvent
from pathgauge.collector.core.invocations.messages.values import as_id, as_int
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "com.anthropic.claude_code.tracing"

_KINDS: dict[str, Kind] = {
    "interaction": "agent",
    "llm_request": "model",
    "tool": "tool",
    "tool.blocked_on_user": "tool_detail",
    "tool.execution": "tool_detail",
}
_INPUT_BUCKETS = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")


def matches(span: Span) -> bool:
    """Spans of Claude Code's own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """The type that every span states."""
    return _KINDS.get(str(span.attributes.get("span.type")), "other")


def failure(span: Span) -> str | None:
    """Why a request or a tool failed, or that the user did not permit it."""
    attributes = span.attributes
    if attributes.get("success") is False:
        return as_id(attributes.get("error")) or "error"
    return "rejected" if attributes.get("decision") == "reject" else None


def _tool_name(span: Span) -> Any:
    return span.attributes.get("tool_name") if matches(span) else None


def _tool_type(span: Span) -> str | None:
    """The tools that run a sub-agent, as ADK calls them."""
    return "AgentTool" if _tool_name(span) in ("Agent", "Task") else None


def _input_tokens(span: Span) -> int | None:
    if not matches(span):
        return None
    buckets = [
        count for key in _INPUT_BUCKETS if (count := as_int(span.attributes.get(key))) is not None
    ]
    return sum(buckets) if buckets else None


def _output_tokens(span: Span) -> Any:
    return span.attributes.get("output_tokens") if matches(span) else None


def _said(span: Span) -> Any:
    return (
        {"role": "user", "content": span.attributes["user_prompt"]}
        if "user_prompt" in span.attributes
        else None
    )


def _answered(span: Span) -> Any:
    text = span.attributes.get("response.model_output")
    return (
        None
        if text is None
        else {
            "role": "assistant",
            "content": text,
            "finish_reason": span.attributes.get("stop_reason"),
        }
    )


def _below(key: str, title: str) -> Callable[[Span], str | None]:
    """What stands in an attribute below a line with a title."""

    def found(span: Span) -> str | None:
        text = span.attributes.get(key)
        return (
            text.partition("\n")[2]
            if isinstance(text, str) and text.startswith(f"[{title}: ")
            else None
        )

    return found


CLAUDE_CODE = Dialect(
    name="claude-code",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    may_be_entry=lambda span: span.name == "claude_code.interaction",
    outranks_conventions=True,
    name_of=lambda span: as_id(span.resource.attributes.get("service.name")),
    failure=failure,
    fields=Fields(
        tool_name=(Derived(_tool_name),),
        tool_type=(Derived(_tool_type),),
        call_id=("tool_use_id",),
        arguments=(Derived(_below("tool_input", "TOOL INPUT")),),
        result=(InEvent("tool.output", "output"), Derived(_below("new_context", "TOOL RESULT"))),
        input_tokens=(Derived(_input_tokens),),
        output_tokens=(Derived(_output_tokens),),
        output_messages=(Derived(_answered),),
        agent_input=(Derived(_said),),
    ),
)
