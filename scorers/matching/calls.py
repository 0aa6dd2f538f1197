"""Reads tool calls: their names, positions, results and failures."""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.scorers.matching.equality import opened, tool_name
from pathgauge.scorers.types import Invocation, Json, ToolCall


def call_names(actual: Invocation) -> list[str]:
    """The names of the called tools in order, as they are compared."""
    return [tool_name(call.name) for call in actual.tool_calls]


def calls_of(actual: Invocation, tool: str) -> list[int]:
    """The positions of the calls of one tool."""
    wanted = tool_name(tool)
    return [index for index, call in enumerate(actual.tool_calls) if tool_name(call.name) == wanted]


def as_object(value: Json) -> Mapping[str, Json]:
    """An object, also if encoded as JSON text once or twice; an empty object for anything else."""
    try:
        value = opened(value)
    except RecursionError:
        return {}
    match value:
        case Mapping():
            return value
        case [{"type": "text", "text": str(text)}]:  # one content block, as MCP servers return
            return as_object(text)
    return {}


def failed(call: ToolCall) -> bool:
    """Whether the telemetry reports a failure, or the tool returned an `error`."""
    result = as_object(call.result)
    return call.error is not None or bool(result.get("error")) or result.get("isError") is True


def outcome_known(call: ToolCall) -> bool:
    """Whether a result or an error was recorded."""
    return call.result is not None or call.error is not None
