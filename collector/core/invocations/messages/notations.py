"""Recognises by its keys in which notation an object is a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathgauge.collector.core.invocations.messages.values import as_id, as_object

CREW_OUTPUT = frozenset({"raw", "pydantic"})
"""Keys of the output of a crew, task or agent of CrewAI. `raw` is the text."""

_LANGCHAIN = frozenset({"human", "ai", "system", "tool", "function", "AIMessageChunk"})
"""Values of `type` in messages of LangChain."""

_AUTOGEN = {
    "SystemMessage": "system",
    "UserMessage": "user",
    "AssistantMessage": "assistant",
    "FunctionExecutionResultMessage": "tool",
}
"""The roles that values of `type` in messages of AutoGen stand for."""

_CONTENT = frozenset({"content", "parts", "tool_calls"})


def is_message(item: Any) -> bool:
    """Whether this is a message and nothing that contains some, as nearly all in lists."""
    return isinstance(item, dict) and ("role" in item or "parts" in item)


def langchain_fields(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of a LangChain message: the arguments of its constructor, `data` beside a `type`,
    or its own members.
    """
    kwargs, path, kind = as_object(value.get("kwargs")), value.get("id"), value.get("type")
    if kwargs is not None and value.get("lc") and isinstance(path, list) and path:
        return {**kwargs, "role": as_id(path[-1])}
    if not isinstance(kind, str) or kind not in _LANGCHAIN:
        return None
    fields = as_object(value.get("data")) or value
    if "content" in fields and "role" not in fields:
        return {**fields, "role": kind}
    return None


def autogen_fields(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of a message of AutoGen, whose type is in place of its role."""
    role = _AUTOGEN.get(kind) if isinstance(kind := value.get("type"), str) else None
    if role is None or "role" in value or "content" not in value:
        return None
    return {**value, "role": role}


def is_response_item(value: Mapping[str, Any]) -> bool:
    """Whether this is an item of OpenAI's responses other than a message. Some instrumentations add
    the role to a call.
    """
    kind = value.get("type")
    if "role" in value:
        return kind == "function_call" and value.keys().isdisjoint(_CONTENT)
    return kind in ("function_call", "function_call_output", "reasoning")
