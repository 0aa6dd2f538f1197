"""Frees tool arguments and results from what frameworks wrap around them: decoded values come in,
bare ones go out.

What LangChain writes and content blocks are told by their shape in every trace; all else a dialect
unwraps, with a function of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pathgauge.collector.core.invocations.messages.message import Response
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_object, as_text, decoded
from pathgauge.scorers.types import Json

_CALLABLE_INPUT = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})
"""Members of the recorded input of a Python callable."""

_ADDRESS = re.compile(r"<[^<>]* object at 0x[0-9a-f]+>$")


class Result(NamedTuple):
    """What a tool returned, and what it or its framework calls an error."""

    value: Json = None
    error: str | None = None


def bare_arguments(
    value: Any, unwrap: Callable[[Any], Any] | None = None
) -> Mapping[str, Json] | str | None:
    """The arguments of a call as an object; text when they are recorded without their names; `None`
    when they are not recorded.

    `unwrap` takes off what the dialect's framework wraps around them.
    """
    if unwrap is not None:
        value = unwrap(value)
    return value if isinstance(value, dict | str) else None


def callable_arguments(value: Any) -> Any:
    """What a Python callable was passed, where its positional and named arguments are recorded as
    such; anything else as it is.
    """
    if not isinstance(value, dict) or "kwargs" not in value or not value.keys() <= _CALLABLE_INPUT:
        return value
    return as_text(value["args"]) if value.get("args") else _without_objects(value["kwargs"])


def _without_objects(value: Any) -> Any:
    """What was passed to a callable, less the objects that a framework passes, which are written by
    their addresses.
    """
    if not isinstance(value, dict):
        return value
    return {
        key: item
        for key, item in value.items()
        if not (isinstance(item, str) and _ADDRESS.match(item))
    }


def bare_result(value: Any, unwrap: Callable[[Any], Result] | None = None) -> Result:
    """The result of a call without its wrapping, and the error that it reports; `unwrap` is as for
    the arguments.
    """
    value, failed = unwrap(value) if unwrap is not None else Result(value)
    shown = tool_message(value)
    if shown is not None:
        value = shown.result
        failed = failed or ((as_text(value) or "error") if shown.error else None)
    elif isinstance(value, list):
        value = _text_of_blocks(value)
    return Result(value, failed or _error_in(value))


def tool_message(value: Any) -> Response | None:
    """The result in LangChain's message that shows it to the model, which may be the only one in a
    state.
    """
    if (
        isinstance(value, dict)
        and value.keys() == {"messages"}
        and isinstance(value["messages"], list)
        and len(value["messages"]) == 1
    ):
        value = value["messages"][0]
    if not _is_tool_message(value):
        return None
    responses = [
        response for message in parse_messages(value, "tool") for response in message.responses
    ]
    return responses[0] if len(responses) == 1 else None


def _is_tool_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    path = value.get("id")
    if value.get("lc"):
        return isinstance(path, list) and path[-1:] == ["ToolMessage"]
    return value.get("type") == "tool" and "tool_call_id" in (as_object(value.get("data")) or value)


def _text_of_blocks(blocks: list[Any]) -> Any:
    """One content block of text or JSON stands for what it holds."""
    block = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], dict) else {}
    if block.keys() == {"json"}:
        return block["json"]
    text = block.get("text")
    return decoded(text) if isinstance(text, str) and block.keys() <= {"text", "type"} else blocks


def _error_in(value: Any) -> str | None:
    """What a tool reports as an error in its own answer."""
    return as_text(value.get("error") or None) if isinstance(value, dict) else None
