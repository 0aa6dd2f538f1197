"""Tool calls as scorers look at them: an invocation comes in, the positions of the calls of a tool
go out; a call comes in, whether it failed and the object that it returned go out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.scorers.matching.equality import opened, tool_name
from pathgauge.scorers.types import Invocation, Json, ToolCall


def call_names(actual: Invocation) -> list[str]:
    """The tools that were called, in order, by the names that are compared."""
    return [tool_name(call.name) for call in actual.tool_calls]


def calls_of(actual: Invocation, tool: str) -> list[int]:
    """The positions of the calls of one tool."""
    wanted = tool_name(tool)
    return [index for index, call in enumerate(actual.tool_calls) if tool_name(call.name) == wanted]


def as_object(value: Json) -> Mapping[str, Json]:
    """An object as it is, or as text holds it, also encoded twice; the empty object for anything
    else.
    """
    try:
        value = opened(value)
    except RecursionError:
        return {}
    match value:
        case Mapping():
            return value
        case [{"type": "text", "text": str(text)}]:  # one block of content, as MCP servers answer
            return as_object(text)
    return {}


def failed(call: ToolCall) -> bool:
    """Whether the telemetry says that the call failed, or the tool answered with an `error`."""
    result = as_object(call.result)
    return call.error is not None or bool(result.get("error")) or result.get("isError") is True


def outcome_known(call: ToolCall) -> bool:
    """Whether anything is known of how the call ended."""
    return call.result is not None or call.error is not None


def counted(count: int, noun: str) -> str:
    """For instance `1 tool call`, `2 tool calls`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
