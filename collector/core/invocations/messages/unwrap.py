"""Removes what frameworks wrap around tool arguments and results.

LangChain's wrapping, content blocks and `written_results` are recognised by their format in every
trace. Other wrapping is removed by a hook of the dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pathgauge.collector.core.invocations.messages.message import Response
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_object, as_text, decoded
from pathgauge.collector.core.invocations.messages.written_results import (
    Result,
    is_object,
    written_result,
)
from pathgauge.scorers.types import Json

_CALLABLE_INPUT = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})
"""Keys of the recorded input of a Python callable."""


def bare_arguments(
    value: Any, unwrap: Callable[[Any], Any] | None = None
) -> Mapping[str, Json] | str | None:
    """The arguments of a call as an object; text if they are recorded without names; `None` if they
    are not recorded.

    `unwrap` removes what the framework of the dialect wraps around them.
    """
    if unwrap is not None:
        value = unwrap(value)
    if isinstance(value, dict | str):
        return value
    return None


def callable_arguments(value: Any) -> Any:
    """The arguments of a Python callable, if `value` has its positional and its named arguments.
    Other values are returned unchanged.
    """
    if not isinstance(value, dict) or "kwargs" not in value or not value.keys() <= _CALLABLE_INPUT:
        return value
    if value.get("args"):
        return as_text(value["args"])
    return _without_objects(value["kwargs"])


def texts_of_arguments(value: Any) -> Any:
    """The texts among the arguments of a function that was called as an agent: lists and objects
    among them may be an earlier conversation. Other values are returned unchanged.
    """
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if isinstance(item, str)}
    return value


def _without_objects(value: Any) -> Any:
    """The arguments without objects of the framework, which are written with their addresses."""
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if not is_object(item)}


def bare_result(value: Any, unwrap: Callable[[Any], Result] | None = None) -> Result:
    """The result of a call without its wrapping, and the error that it reports. `unwrap` is as for
    `bare_arguments`.
    """
    written = written_result(value)
    if written is not None:
        return written
    value, error = unwrap(value) if unwrap is not None else Result(value)
    response = tool_message(value)
    if response is not None:
        value = response.result
        if response.error and not error:
            error = as_text(value) or "error"
    elif isinstance(value, list):
        value = _text_of_blocks(value)
    return Result(value, error or _error_in(value))


def tool_message(value: Any) -> Response | None:
    """The result in a LangChain tool message, which may be the only message of a state, the last
    one of a LangGraph command, or the output of a run in JavaScript.
    """
    value = _message_in(value)
    if not _is_tool_message(value):
        return None
    messages = parse_messages(value, "tool")
    responses = [response for message in messages for response in message.responses]
    if len(responses) == 1:
        return responses[0]
    return None


def _message_in(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1:
        [value] = value
    match value:
        case {"messages": [message], **others} if not others:
            return message
        case {"output": output, **others} if not others:
            return _message_in_command(output)
    return _message_in_command(value)


def _message_in_command(value: Any) -> Any:
    """The message with which a tool that returns a command answers the model."""
    match value:
        case {"goto": _, "update": {"messages": [*_, message]}}:
            return message
    return value


def _is_tool_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    path = value.get("id")
    if value.get("lc"):
        return isinstance(path, list) and path[-1:] == ["ToolMessage"]
    return value.get("type") == "tool" and "tool_call_id" in (as_object(value.get("data")) or value)


def _text_of_blocks(blocks: list[Any]) -> Any:
    """The content of a single content block of text or JSON."""
    if len(blocks) != 1 or not isinstance(blocks[0], dict):
        return blocks
    [block] = blocks
    if block.keys() == {"json"}:
        return block["json"]
    text = block.get("text")
    if isinstance(text, str) and block.keys() <= {"text", "type"}:
        return decoded(text)
    return blocks


def _error_in(value: Any) -> str | None:
    """The error that a tool reports in its result."""
    if isinstance(value, dict):
        return as_text(value.get("error") or None)
    return None
