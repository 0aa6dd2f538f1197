"""Reads the content of one message: texts, tool calls and tool results.

Content is a text or a list of parts. Model APIs call parts blocks, and each API has its own format.
The `type` of a part identifies it, or its only member if it has no type.
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
"""Blocks that are identified by their only member, with its type."""

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
"""By the type of a block, the members of which it has at least one."""

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
_RESULT_MEMBERS = (
    "function_response",
    "functionResponse",
    "toolResult",
    "tool_call_result",
    "toolResponse",
)
_AUTOGEN_CALL = frozenset({"id", "name", "arguments"})
_AUTOGEN_RESULT = frozenset({"call_id", "content", "is_error"})
"""The members of calls and results in AutoGen's messages, which have no type."""

_TEXT_TYPES = frozenset({None, "text", "output_text", "input_text", "refusal"})

_REASONING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})

_UNTYPED_REASONING = ({"reasoningContent"}, {"reasoning"}, {"reasoning", "metadata"})
"""The members of parts of reasoning that have no type: Bedrock's and Genkit's."""

_REMOVED: Mapping[str, Any] = {"type": "text"}
"""A text without its content, as instrumentations write it that only remove the content."""

_ID_KEYS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "id", "ref")


def listed_parts(message: Mapping[str, Any]) -> list[Any]:
    """The parts of a message, for `read_part`."""
    parts = message.get("parts")
    if parts is None:
        content = message.get("message")  # Strands writes the content of a choice there.
        if not isinstance(content, list):
            # OpenInference writes `contents` for several.
            content = message.get("content", message.get("contents"))
        parts = _blocks(content)
    if parts is None:
        parts = message.get("blocks")  # LlamaIndex
    if isinstance(parts, list):
        return parts
    return [parts]


def _blocks(content: Any) -> Any:
    """Content blocks that were written as JSON text. Other JSON text is the text of a message."""
    if not isinstance(content, str):
        return content
    if content in UNWRITTEN:
        return _REMOVED
    value = decoded(content)
    is_blocks = isinstance(value, list) and value and all(map(_is_block, value))
    if is_blocks:
        return value
    return content


def _is_block(block: Any) -> bool:
    """Whether this is a content block of a model API: it has a member of its type, and a text block
    has no unknown members.
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
    if kind not in _TEXT_TYPES:
        return True
    return block.keys() <= _TEXT_MEMBERS and isinstance(read_part(block), str)


def read_part(part: Any) -> str | AskedCall | Response | None:
    """A text, a call or a result; `None` for others (reasoning, media)."""
    if isinstance(part, str):
        return None if part in UNWRITTEN else part
    if not isinstance(part, dict) or part.get("thought"):
        return None
    part = as_object(part.get("message_content")) or part  # OpenInference wraps blocks in it.
    kind = part.get("type", part.get("block_type"))
    if kind == "text":
        text = part.get("content", part.get("text"))
        if isinstance(text, str):
            return None if text in UNWRITTEN else _without_blocks(text)
    if not isinstance(kind, str | None):
        return None
    if kind in _CALL_TYPES:
        return read_call(part)
    if kind in _RESULT_TYPES:
        return _response(part)
    if kind in _TEXT_TYPES:
        return _untyped(part)
    return None


def _without_blocks(text: str) -> str:
    """The text of content blocks that were written as a Python `repr`; other text unchanged."""
    blocks = _blocks(text) if text.startswith("[{'") else None
    if not isinstance(blocks, list):
        return text
    return "".join(filter(None, (one for one in map(read_part, blocks) if isinstance(one, str))))


def is_reasoning(part: Any) -> bool:
    """Whether a part is no answer but what the model thought before it."""
    if not isinstance(part, dict):
        return False
    kind = part.get("type")
    if isinstance(kind, str) and kind in _REASONING_TYPES:
        return True
    return bool(part.get("thought")) or part.keys() in _UNTYPED_REASONING


def _untyped(part: Mapping[str, Any]) -> str | AskedCall | Response | None:
    """Parts that are identified by their only member: Google's, Bedrock's, Haystack's, Genkit's,
    and plain text.
    """
    for key in ("function_call", "functionCall", "toolUse", "tool_call", "toolRequest"):
        call = as_object(part.get(key))
        if call is not None:
            return read_call(call)
    for key in _RESULT_MEMBERS:
        response = as_object(part.get(key))
        if response is not None:
            return _response(response)
    if part.keys() == {"json"}:
        return as_text(part["json"])
    if part.keys() == _AUTOGEN_CALL:
        return read_call(part)
    if part.keys() >= _AUTOGEN_RESULT:
        return _response(part)
    text = part.get("text", part.get("content"))
    if isinstance(text, str) and text not in UNWRITTEN:
        return text
    return None


def read_call(entry: Any) -> AskedCall | None:
    """A tool call, under any of the keys in use."""
    if not isinstance(entry, dict):
        return None
    entry = as_object(entry.get("tool_call")) or entry
    function = as_object(entry.get("function")) or entry
    name = _tool_name(function)
    if name is None:
        return None
    arguments = function.get("arguments")
    if arguments is None:
        arguments = function.get("args")
    if arguments is None:
        arguments = function.get("input")
    if arguments is None:
        arguments = function.get("tool_kwargs")
    return AskedCall(name, {} if arguments == "" else decoded(arguments), call_id(entry))


def _response(entry: Mapping[str, Any]) -> Response:
    """A tool result, under any of the keys in use."""
    origin = as_object(entry.get("origin")) or entry
    result = None
    for key in ("response", "result", "output", "content"):
        if key in entry:
            result = entry[key]
            break
    error = (as_id(result) or "error") if _failed(entry) else None
    return Response(decoded(result), _tool_name(origin), call_id(origin), error)


def _tool_name(entry: Mapping[str, Any]) -> str | None:
    return as_id(entry.get("name") or entry.get("toolName") or entry.get("tool_name"))


def _failed(entry: Mapping[str, Any]) -> bool:
    if entry.get("status") == "error":
        return True
    return entry.get("is_error") is True or entry.get("error") is True


def call_id(value: Mapping[str, Any]) -> str | None:
    """The id of the call that is asked for or answered."""
    for key in _ID_KEYS:
        if key in value:
            found = as_id(value[key])
            if found is not None:
                return found
    return None
