"""Reads the content of one message: its fields come in, texts, calls and results of tools go out.

Content is a text, or a list of parts, which model APIs call blocks and each write in their own way.
A part is told by its `type`, or where it has none by its one member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathgauge.collector.core.invocations.messages.message import AskedCall, Response
from pathgauge.collector.core.invocations.messages.values import (
    UNWRITTEN,
    as_id,
    as_object,
    as_text,
    decoded,
)

_BEDROCK: Mapping[str, type] = {
    "text": str,
    "json": object,
    "toolUse": dict,
    "toolResult": dict,
    "image": dict,
    "reasoningContent": dict,
}
"""Blocks that are told by their one member, and what it is."""

_BLOCK_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "content"),
    "output_text": ("text",),
    "input_text": ("text",),
    "thinking": ("thinking",),
    "redacted_thinking": ("data",),
    "reasoning": ("reasoning", "content", "text", "summary"),
    "image": ("source", "image", "url", "base64", "data"),
    "image_url": ("image_url",),
    "input_image": ("image_url", "file_id"),
    "input_audio": ("input_audio",),
    "file": ("file", "data", "file_id"),
    "document": ("source",),
    "tool_use": ("name",),
    "tool_call": ("name", "function"),
    "tool-call": ("toolName",),
    "function_call": ("name",),
    "server_tool_call": ("name",),
    "tool_result": ("tool_use_id",),
    "tool-result": ("toolCallId",),
    "tool_call_response": ("id",),
    "server_tool_call_response": ("id",),
    "function_call_output": ("call_id",),
}
"""By the type of a block the members of which it has one."""

_TEXT_MEMBERS = frozenset(
    {
        "type",
        "text",
        "content",
        "annotations",
        "logprobs",
        "citations",
        "cache_control",
        "id",
        "index",
    }
)

_CALL_TYPES = frozenset({"tool_call", "server_tool_call", "tool_use", "tool-call", "function_call"})
_RESULT_TYPES = frozenset(
    {
        "tool_call_response",
        "server_tool_call_response",
        "tool_result",
        "tool-result",
        "function_call_output",
    }
)
_TEXT_TYPES = frozenset({None, "text", "output_text", "input_text", "refusal"})

_ID_KEYS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "id")


def listed_parts(message: Mapping[str, Any]) -> list[Any]:
    """The parts of a message, each as `read_part` takes it."""
    parts = message.get("parts")
    if parts is None:
        listed = message.get("message")  # where Strands writes the content of a choice
        content = message.get(
            "content", message.get("contents")
        )  # OpenInference's plural is for several
        parts = _blocks(listed if isinstance(listed, list) else content)
    return parts if isinstance(parts, list) else [parts]


def _blocks(content: Any) -> Any:
    """Content blocks that were written as JSON text; any other text is what somebody wrote, even
    when it is JSON.
    """
    if not isinstance(content, str):
        return content
    if content in UNWRITTEN:
        return None
    value = decoded(content)
    return value if isinstance(value, list) and value and all(map(_is_block, value)) else content


def _is_block(block: Any) -> bool:
    """Whether this is a content block as model APIs define them, with the member of its type and,
    of a text, no unknown one.
    """
    if not isinstance(block, dict):
        return False
    if "type" not in block:
        return len(block) == 1 and all(
            key in _BEDROCK and isinstance(value, _BEDROCK[key]) for key, value in block.items()
        )
    kind = block["type"]
    if not isinstance(kind, str) or block.keys().isdisjoint(_BLOCK_MEMBERS.get(kind, ())):
        return False
    return kind not in _TEXT_TYPES or (
        block.keys() <= _TEXT_MEMBERS and isinstance(read_part(block), str)
    )


def read_part(part: Any) -> str | AskedCall | Response | None:
    """A text, a call, a result, or nothing that counts (reasoning, media)."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("thought"):
        return None
    part = as_object(part.get("message_content")) or part  # how OpenInference wraps blocks
    kind = part.get("type")
    if kind == "text" and isinstance(text := part.get("content", part.get("text")), str):
        return text
    if not isinstance(kind, str | None):
        return None
    if kind in _CALL_TYPES:
        return read_call(part)
    if kind in _RESULT_TYPES:
        return _response(part)
    return _untyped(part) if kind in _TEXT_TYPES else None


def _untyped(part: Mapping[str, Any]) -> str | AskedCall | Response | None:
    """Parts that are told by the one member that they have: Google's, Bedrock's, Haystack's, and
    plain text.
    """
    for key in ("function_call", "functionCall", "toolUse", "tool_call"):
        if (call := as_object(part.get(key))) is not None:
            return read_call(call)
    for key in ("function_response", "functionResponse", "toolResult", "tool_call_result"):
        if (response := as_object(part.get(key))) is not None:
            return _response(response)
    if part.keys() == {"json"}:
        return as_text(part["json"])
    text = part.get("text", part.get("content"))
    return text if isinstance(text, str) else None


def read_call(entry: Any) -> AskedCall | None:
    """A call, whatever its keys are called."""
    entry = as_object(entry.get("tool_call")) or entry if isinstance(entry, dict) else {}
    function = as_object(entry.get("function")) or entry
    name = as_id(function.get("name") or function.get("toolName") or function.get("tool_name"))
    arguments = next(
        (function[key] for key in ("arguments", "args", "input") if function.get(key) is not None),
        None,
    )
    return (
        None
        if name is None
        else AskedCall(name, decoded(arguments) if arguments != "" else {}, call_id(entry))
    )


def _response(entry: Mapping[str, Any]) -> Response:
    """A result, whatever its keys are called."""
    origin = as_object(entry.get("origin")) or entry
    name = as_id(origin.get("name") or origin.get("toolName") or origin.get("tool_name"))
    result = next(
        (entry[key] for key in ("response", "result", "output", "content") if key in entry), None
    )
    failed = (
        entry.get("status") == "error"
        or entry.get("is_error") is True
        or entry.get("error") is True
    )
    return Response(
        decoded(result), name, call_id(origin), (as_id(result) or "error") if failed else None
    )


def call_id(value: Mapping[str, Any]) -> str | None:
    """The ID of the call that is asked for or answered."""
    return next(
        (found for key in _ID_KEYS if key in value and (found := as_id(value[key])) is not None),
        None,
    )
