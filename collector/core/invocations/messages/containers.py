"""Finds the messages in a list, a request, a response or the state of an agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pathgauge.collector.core.invocations.messages.notations import (
    CREW_OUTPUT,
    is_message,
    is_response_item,
    langchain_fields,
)
from pathgauge.collector.core.invocations.messages.values import decoded

_CONTAINERS = (
    "messages",
    "generations",
    "choices",
    "contents",
    "outputs",
    "inputs",
    "output",
    "input",
    "new_message",
    "replies",
    "tool_messages",
)
"""Keys of the messages in a request, a response or the state of an agent, by precedence."""

_INPUTS = frozenset({"contents", "inputs", "input", "new_message"})
"""Keys of the input. Agents that return their state repeat it in their output."""

_SPEAKERS = frozenset({"user", "human", "assistant", "ai", "system", "developer"})
"""The first of two texts that are a role and its message."""

_MAX_LEVELS = 5

_CALLABLE_INPUT = frozenset({"args", "kwargs"})
"""Keys of the recorded input of a Python function. Its arguments may be messages."""


def contained_messages(value: Any, role: str, level: int = 0) -> Iterator[Any]:
    """The messages in a value, or the value itself if it contains none. `role`: of messages without
    one; only agents repeat their input in their output.
    """
    if level > _MAX_LEVELS:
        return
    if isinstance(value, list):
        for item in value:
            if is_message(item):
                yield item
            elif _is_pair(item):
                yield {"role": item[0], "content": item[1]}
            elif isinstance(item, list) or _contained(item, role) is not None:
                yield from contained_messages(item, role, level + 1)
            else:
                yield item
        return
    contained = _contained(value, role)
    if contained is not None:
        yield from contained_messages(contained, role, level + 1)
    else:
        yield value


def _is_pair(item: Any) -> bool:
    """Whether this is a message as LangChain accepts it: its role and its text."""
    return (
        isinstance(item, list | tuple)
        and len(item) == 2
        and all(isinstance(text, str) for text in item)
        and item[0] in _SPEAKERS
    )


def _contained(value: Any, role: str) -> Any:
    """The messages in an object that is not a message itself; `None` if there are none."""
    if not isinstance(value, dict) or "role" in value or "parts" in value:
        return None
    if langchain_fields(value) is not None or value.keys() >= CREW_OUTPUT:
        return None
    if value.keys() == _CALLABLE_INPUT:
        arguments = (*_values(value["args"]), *_values(value["kwargs"]))
        return [item for item in arguments if isinstance(item, list | dict)] or None
    key = _container(value, role)
    if key is None or is_response_item(value):
        return None
    contained = decoded(value[key])
    if role == "assistant" and _has_text(contained) and not _is_only_text(value, key):
        return None
    return contained


def _container(value: Mapping[str, Any], role: str) -> str | None:
    for key in _CONTAINERS:
        if value.get(key) and not (role == "assistant" and key in _INPUTS):
            return key
    return None


def _has_text(contained: Any) -> bool:
    if isinstance(contained, list):
        return any(isinstance(item, str) for item in contained)
    return isinstance(contained, str)


def _is_only_text(value: Mapping[str, Any], key: str) -> bool:
    """Whether no other member could be the answer."""
    return not any(
        isinstance(item, str)
        for other, item in value.items()
        if other != key and other not in _INPUTS
    )


def _values(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()
