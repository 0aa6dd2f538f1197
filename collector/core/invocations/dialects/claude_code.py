"""Claude Code, and the Claude Agent SDK that runs it.

Recognised by its scope. `claude_code.interaction` is a turn, with `claude_code.llm_request` and
`claude_code.tool` below it. Sub-agents work below the tool that called them and have no span of
their own. `.blocked_on_user` and `.execution` below a tool span tell whether the call was permitted
and whether it succeeded. The program also asks models for its own purposes, such as the title of a
session, while a turn lasts: the source of a request tells. Token counts have keys without a prefix,
and input tokens exclude those read from and written to the cache. Prompts and results each need a
switch; arguments and answers need detailed tracing. Log records have arguments too, but shorten
every long value inside. A text of more than 60 KB is cut off, with a mark and a second attribute.
Models know a tool of an MCP server as `mcp__<server>__<tool>`, which is also the value of
`tool_name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
from pathgauge.collector.core.invocations.messages.values import as_id, as_int
from pathgauge.collector.core.otlp.spans import Attributes, Event, Span

SCOPE = "com.anthropic.claude_code.tracing"

_KINDS: dict[str, Kind] = {
    "interaction": "agent",
    "llm_request": "model",
    "tool": "tool",
    "tool.blocked_on_user": "tool_detail",
    "tool.execution": "tool_detail",
}
_SOURCES = ("query_source_safe", "query_source")
_OF_AGENTS = frozenset({"sdk", "repl_main_thread", "agent", "compact"})
"""The sources of requests, without what follows a dot or colon, that belong to the work of agents.
"""
_CUT_OFF = '"'
"""The beginning of a JSON text, which is read as truncated content."""

_INPUT_TOKENS = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")


def matches(span: Span) -> bool:
    """Spans of Claude Code's own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By the type that every span states. Requests of a turn that are not for its agent are no
    model calls; requests of a tool are.
    """
    stated = _KINDS.get(str(span.attributes.get("span.type")), "other")
    if stated == "model" and _source(span) not in (None, *_OF_AGENTS) and not _is_of_tool(span):
        return "other"
    return stated


def _source(span: Span) -> str | None:
    """For what a model was asked; `None` in versions that do not tell."""
    source = next(filter(None, (as_id(span.attributes.get(key)) for key in _SOURCES)), None)
    return None if source is None else re.split("[.:]", source, maxsplit=1)[0]


def _is_of_tool(span: Span) -> bool:
    return span.attributes.get("llm_request.context") == "tool"


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
    """What the model said to the user. The summary of a session is not said to anybody."""
    text = _whole("response.model_output", span.attributes)
    if text is None or _source(span) == "compact":
        return None
    if text is _CUT_OFF:
        return text
    reason = span.attributes.get("stop_reason")
    return {"role": "assistant", "content": text, "finish_reason": reason}


def _whole(key: str, attributes: Attributes) -> Any:
    """A value that was not cut off."""
    return _CUT_OFF if attributes.get(f"{key}_truncated") else attributes.get(key)


def _output(span: Span) -> Any:
    """The output of a tool, in the first event that has one."""
    if b"tool.output" not in span.raw:
        return None
    outputs = (_whole("output", event.attributes) for event in span.events if _is_output(event))
    return next((one for one in outputs if one is not None), None)


def _is_output(event: Event) -> bool:
    return event.name == "tool.output"


def _text_below(key: str, title: str) -> Callable[[Span], Any]:
    """Read the text of an attribute that follows a line with a title."""

    def find(span: Span) -> Any:
        text = _whole(key, span.attributes)
        if text is _CUT_OFF:
            return text
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
    reads=(
        *("span.type", "success", "decision", "stop_reason", "service.name"),
        *("llm_request.context", *_SOURCES),
    ),
    may_be_entry=lambda span: span.name == "claude_code.interaction",
    outranks_conventions=True,
    content_setting="ENABLE_BETA_TRACING_DETAILED=1 OTEL_LOG_USER_PROMPTS=1 "
    "OTEL_LOG_TOOL_DETAILS=1 OTEL_LOG_TOOL_CONTENT=1",
    name_of=lambda span: as_id(span.resource.attributes.get("service.name")),
    failure=failure,
    fields=Fields(
        tool_name=(Derived(_tool_name, reads=("tool_name",)),),
        tool_type=(Derived(_tool_type, reads=("tool_name",)),),
        call_id=("tool_use_id",),
        arguments=(Derived(_text_below("tool_input", "TOOL INPUT")),),
        result=(
            Derived(_output),
            Derived(_text_below("new_context", "TOOL RESULT")),
        ),
        input_tokens=(Derived(_input_tokens, reads=_INPUT_TOKENS),),
        output_tokens=(Derived(_output_tokens, reads=("output_tokens",)),),
        cached_tokens=("cache_read_tokens",),
        cache_write_tokens=("cache_creation_tokens",),
        output_messages=(Derived(_answer),),
        agent_input=(Derived(_user_message),),
        error_type=("error_class",),
    ),
)
