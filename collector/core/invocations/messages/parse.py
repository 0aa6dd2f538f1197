"""Reads messages in every shape that frameworks give them: JSON-like values come in, `Message`s go
out.

The shapes: GenAI semantic conventions (`role` and `parts` with a `type`), OpenAI chat and
responses, Anthropic and Bedrock content blocks, Google GenAI contents, LangChain messages
(serialised in three ways), the AI SDK's parts, and the older `gen_ai.*.message` and `gen_ai.choice`
events. A shape is told by its keys, never by the sender, as frameworks mix them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pathgauge.collector.core.invocations.messages.message import AskedCall, Message, Response
from pathgauge.collector.core.invocations.messages.parts import (
    call_id,
    listed_parts,
    read_call,
    read_part,
)
from pathgauge.collector.core.invocations.messages.values import (
    UNWRITTEN,
    as_id,
    as_object,
    decode,
    decoded,
)

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
"""Members of a request, a response or an agent's state that hold its messages; the first that is
there does.
"""

_GIVEN = frozenset({"contents", "inputs", "input", "new_message"})
"""Those that hold what a model or an agent was given, which agents that give their state back
repeat.
"""

_SPEAKERS = frozenset({"user", "human", "assistant", "ai", "system", "developer"})
"""The first of two texts that are a role and what was said."""

_MAX_NESTED = 5

_MESSAGE_KEYS = frozenset({"role", "content", "parts", "tool_calls", "message", "messages"})

_CALLABLE_INPUT = frozenset({"args", "kwargs"})
"""Members of the recorded input of a Python function, which may have been called with messages."""

_CREW_OUTPUT = frozenset({"raw", "pydantic"})
"""Members of what a crew, a task or an agent of CrewAI gives back, of which `raw` is the text."""

_ROLES = {
    "model": "assistant",
    "human": "user",
    "ai": "assistant",
    "function": "tool",
    "developer": "system",
    "tool-call": "assistant",
    "tool-response": "tool",
    "AIMessageChunk": "assistant",
    "AIMessage": "assistant",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
}

_LANGCHAIN = frozenset({"human", "ai", "system", "tool", "function", "AIMessageChunk"})
"""What LangChain writes under `type` of a message."""


def parse_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Read a list of messages, one, or what contains them; `role` is used where a message names
    none. What is no message is left out.
    """
    return tuple(
        message
        for item in _items(value, role, 0)
        if (message := parse_message(item, role)) is not None
    )


def _items(value: Any, role: str, depth: int) -> Iterator[Any]:
    if depth > _MAX_NESTED:
        return
    if isinstance(value, list):
        for item in value:
            if _is_pair(item):
                yield {"role": item[0], "content": item[1]}
            elif isinstance(item, list) or _contained(item, role) is not None:
                yield from _items(item, role, depth + 1)
            else:
                yield item
    elif (contained := _contained(value, role)) is not None:
        yield from _items(contained, role, depth + 1)
    else:
        yield value


def _is_pair(item: Any) -> bool:
    """Whether this is a message as LangChain takes it: its role and its text."""
    return (
        isinstance(item, list | tuple)
        and len(item) == 2
        and all(isinstance(text, str) for text in item)
        and item[0] in _SPEAKERS
    )


def _contained(value: Any, role: str) -> Any:
    """The messages in an object that is none itself."""
    if not isinstance(value, dict) or "role" in value or "parts" in value:
        return None
    if _langchain(value) is not None or value.keys() >= _CREW_OUTPUT:
        return None
    if value.keys() == _CALLABLE_INPUT:
        passed = [*_values(value["args"]), *_values(value["kwargs"])]
        return [item for item in passed if isinstance(item, list | dict)] or None
    key = next(
        (
            key
            for key in _CONTAINERS
            if value.get(key) and not (role == "assistant" and key in _GIVEN)
        ),
        None,
    )
    if key is None or _is_item(value):
        return None
    contained = decoded(value[key])
    return (
        contained
        if role != "assistant" or not _is_text(contained) or _is_only_text(value, key)
        else None
    )


def _is_text(contained: Any) -> bool:
    return any(
        isinstance(item, str)
        for item in (contained if isinstance(contained, list) else (contained,))
    )


def _is_only_text(value: Mapping[str, Any], key: str) -> bool:
    """Whether nothing beside the member could be the answer."""
    return not any(
        isinstance(item, str)
        for other, item in value.items()
        if other != key and other not in _GIVEN
    )


def _values(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def parse_message(value: Any, role: str) -> Message | None:
    """Read one message; a bare text is a message of `role`."""
    if isinstance(value, str):
        content = decode(value)
        if not isinstance(content.value, dict) or content.value.keys().isdisjoint(_MESSAGE_KEYS):
            return None if content.truncated or value in UNWRITTEN else Message(role, value)
        value = content.value
    if not isinstance(value, dict):
        return None
    if "parts" in value:
        return _message(value, role)
    if _is_item(value):
        return _item(value, role)
    if value.keys() >= _CREW_OUTPUT:
        return Message(role, as_id(value["raw"]))
    serialised = _langchain(value)
    if serialised is not None:
        return _message(serialised, role)
    inner = as_object(value.get("message")) or as_object(value.get("content"))
    if inner is not None:
        # A tool's definition, which Langfuse lists among the messages, answers no call.
        return (
            _enclosed(value, inner, role)
            if inner.get("type") != "function" or call_id(value) is not None
            else None
        )
    return _message(value, role) if not value.keys().isdisjoint(_MESSAGE_KEYS) else None


def _enclosed(value: Mapping[str, Any], inner: Mapping[str, Any], role: str) -> Message | None:
    """A message inside a choice, a generation, an event or an entry of a list."""
    generation = as_object(value.get("generation_info")) or {}
    outer = {key: value.get(key) for key in ("role", "finish_reason", "tool_calls")}
    outer["finish_reason"] = outer["finish_reason"] or generation.get("finish_reason")
    return _message({**outer, **(_langchain(inner) or inner)}, role)


def _langchain(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of a LangChain message: as its constructor's arguments, as `data` beside a `type`,
    or flat.
    """
    kwargs, path, kind = as_object(value.get("kwargs")), value.get("id"), value.get("type")
    if kwargs is not None and value.get("lc") and isinstance(path, list) and path:
        return {**kwargs, "role": as_id(path[-1])}
    fields = as_object(value.get("data")) or value
    if (
        isinstance(kind, str)
        and kind in _LANGCHAIN
        and "content" in fields
        and "role" not in fields
    ):
        return {**fields, "role": kind}
    return None


def _is_item(value: Mapping[str, Any]) -> bool:
    """Whether this is an item of OpenAI's responses that is no message."""
    return (
        value.get("type") in ("function_call", "function_call_output", "reasoning")
        and "role" not in value
    )


def _item(value: Mapping[str, Any], role: str) -> Message | None:
    if value["type"] == "function_call":
        call = read_call(value)
        return Message("assistant", calls=(call,)) if call is not None else None
    if value["type"] == "function_call_output":
        return Message(
            "tool", responses=(Response(decoded(value.get("output")), None, call_id(value)),)
        )
    return None


def _message(value: Mapping[str, Any], role: str) -> Message:
    name = as_id(value.get("role")) or role
    name = _ROLES.get(name, name)
    texts: list[str] = []
    calls: list[AskedCall] = []
    responses: list[Response] = []
    for part in map(read_part, listed_parts(value)):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, AskedCall):
            calls.append(part)
        elif part is not None:
            responses.append(part)
    listed = decoded(value.get("tool_calls"))
    if isinstance(listed, list):
        known = {call.id for call in calls if call.id is not None}
        calls += [
            call
            for entry in listed
            if (call := read_call(entry)) is not None and call.id not in known
        ]
    if name == "tool" and not responses:
        failed = "error" if value.get("status") == "error" else None
        responses, texts = (
            [
                Response(
                    decoded("\n".join(texts)) if texts else None,
                    as_id(value.get("name")),
                    call_id(value),
                    failed,
                )
            ],
            [],
        )
    text = "\n".join(texts) if texts else None
    return Message(name, text, tuple(calls), tuple(responses), as_id(value.get("finish_reason")))
