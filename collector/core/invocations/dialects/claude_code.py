"""Claude Code, and the Claude Agent SDK that runs it.

Recognised by its scope. `claude_code.interaction` is a turn, with `claude_code.llm_request` and
`claude_code.tool` below it. Sub-agents work below the tool that called them and have no span of
their own. `.blocked_on_user` and `.execution` below a tool span tell whether the call was permitted
and whether it succeeded. Token counts have keys without a prefix, and input tokens exclude those
read from and written to the cache. Prompts and results each need a switch; arguments and answers
need detailed tracing. Log records are not linked to the spans. Models know a tool of an MCP server
as `mcp__<server>__<tool>`, which is also the value of `tool_name`.
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
_INPUT_TOKENS = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")


def matches(span: Span) -> bool:
    """Spans of Claude Code's own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By the type that every span states."""
    return _KINDS.get(str(span.attributes.get("span.type")), "other")


def failure(span: Span) -> str | None:
    """The error of a request or a tool, or `rejected` if the user did not permit the call."""
    attributes = span.attributes
    if attributes.get("success") is False:
        return as_id(attributes.get("error")) or "error"
    if attributes.get("decision") == "reject":
        return "rejected"
    return None


def _tool_name(span: Span) -> Any:
    if matches(span):
        return span.attributes.get("tool_name")
    return None


def _tool_type(span: Span) -> str | None:
    """The type that ADK gives to tools that run a sub-agent."""
    if _tool_name(span) in ("Agent", "Task"):
        return "AgentTool"
    return None


def _input_tokens(span: Span) -> int | None:
    if not matches(span):
        return None
    counts = [as_int(span.attributes.get(key)) for key in _INPUT_TOKENS]
    known = [count for count in counts if count is not None]
    if known:
        return sum(known)
    return None


def _output_tokens(span: Span) -> Any:
    if matches(span):
        return span.attributes.get("output_tokens")
    return None


def _user_message(span: Span) -> Any:
    if "user_prompt" not in span.attributes:
        return None
    return {"role": "user", "content": span.attributes["user_prompt"]}


def _answer(span: Span) -> Any:
    text = span.attributes.get("response.model_output")
    if text is None:
        return None
    reason = span.attributes.get("stop_reason")
    return {"role": "assistant", "content": text, "finish_reason": reason}


def _text_below(key: str, title: str) -> Callable[[Span], str | None]:
    """Read the text of an attribute that follows a line with a title."""

    def find(span: Span) -> str | None:
        text = span.attributes.get(key)
        if not isinstance(text, str) or not text.startswith(f"[{title}: "):
            return None
        return text.partition("\n")[2]

    return find


CLAUDE_CODE = Dialect(
    name="claude-code",
    before=("langsmith",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=("span.type", "success", "decision", "stop_reason", "service.name"),
    may_be_entry=lambda span: span.name == "claude_code.interaction",
    outranks_conventions=True,
    content_setting="OTEL_LOG_USER_PROMPTS=1 OTEL_LOG_TOOL_DETAILS=1 OTEL_LOG_TOOL_CONTENT=1",
    name_of=lambda span: as_id(span.resource.attributes.get("service.name")),
    failure=failure,
    fields=Fields(
        tool_name=(Derived(_tool_name, reads=("tool_name",)),),
        tool_type=(Derived(_tool_type, reads=("tool_name",)),),
        call_id=("tool_use_id",),
        arguments=(Derived(_text_below("tool_input", "TOOL INPUT")),),
        result=(
            InEvent("tool.output", "output"),
            Derived(_text_below("new_context", "TOOL RESULT")),
        ),
        input_tokens=(Derived(_input_tokens, reads=_INPUT_TOKENS),),
        output_tokens=(Derived(_output_tokens, reads=("output_tokens",)),),
        cached_tokens=("cache_read_tokens",),
        cache_write_tokens=("cache_creation_tokens",),
        output_messages=(Derived(_answer),),
        agent_input=(Derived(_user_message),),
    ),
)
