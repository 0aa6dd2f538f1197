"""Messages that a framework wrote as the `repr` or `str` of its own objects.

Instrumentations write them where the JSON encoder finds an object that it does not know. Such a
text is no message that somebody wrote. If it can be read, it is a message with the role and the
content of the object.

Known are the dataclass `ChatMessage` of Haystack and of smolagents, and the pydantic models of
AutoGen's messages. Other texts that look like code stay texts: users and models write code, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pathgauge.collector.core.invocations.messages.literals import Call, Name, call, fields
from pathgauge.collector.core.reading_budget import spend

_DATACLASSES = ("ChatMessage(_role=<ChatRole.", "ChatMessage(role=<MessageRole.")
_MODELS = ("id='", "source='")
_IN_MODELS = " models_usage="
_STARTS = (*_DATACLASSES, *_MODELS)

_OBJECT = re.compile(r"(?:[\[{(][^\n]{0,200}?)?[A-Z]\w{0,100}\(\w{1,100}=")
"""Bounded, because senders choose the text."""

_PARTS = {"ToolCall": "tool_call", "ToolCallResult": "tool_call_result"}
"""Keys under which Haystack's JSON has the parts of a message, by their class."""


def shows_object(text: str) -> bool:
    """Whether a text begins with the `repr` of an object, or with a list or a state with one."""
    return _OBJECT.match(text) is not None


def is_written_object(text: str) -> bool:
    """Whether a text is an object with a message."""
    if not text.startswith(_STARTS):
        return False
    return text.startswith(_DATACLASSES) or _IN_MODELS in text[:_MAX_BEFORE_USAGE]


_MAX_BEFORE_USAGE = 1_000
"""Characters within which the id and the source of a message of AutoGen end."""


def written_message(text: str) -> Mapping[str, Any] | None:
    """The message in a text that `is_written_object`, as JSON would have it; `None` if it cannot be
    read: too long, truncated, or with objects that show no Python expression.
    """
    spend(len(text))
    try:
        if text.startswith(_DATACLASSES):
            return _chat_message(call(text).keywords)
        return _team_message(fields(text))
    except ValueError:
        return None


def _chat_message(members: Mapping[str, Any]) -> Mapping[str, Any]:
    content = members.get("_content", members.get("content"))
    if isinstance(content, list):
        content = [_part(item) for item in content]
    return {"role": members.get("_role", members.get("role")), "content": content}


def _team_message(members: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message between agents of AutoGen: what is not from the user is from another agent."""
    content = members.get("content")
    role = "user" if members.get("source") == "user" else "assistant"
    return {"role": role, "content": content if isinstance(content, str) else None}


def _part(item: Any) -> Any:
    if not isinstance(item, Call):
        return _plain(item)
    members = _plain(item)
    if item.name == "TextContent":
        return {"type": "text", **members}
    key = _PARTS.get(item.name)
    return {key: members} if key is not None else {"type": item.name, **members}


def _plain(value: Any) -> Any:
    """The value with objects as JSON has them. What shows no value is `None`."""
    match value:
        case Call():
            return {key: _plain(item) for key, item in value.keywords.items()}
        case Name():
            return None
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case set() | bytes():
            return repr(value)
    return value
