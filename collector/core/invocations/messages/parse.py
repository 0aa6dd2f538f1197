"""Reads messages in every format that frameworks use.

The formats: GenAI semantic conventions (`role` and `parts` with a `type`), OpenAI chat and
responses, Anthropic and Bedrock content blocks, Google GenAI contents, LangChain messages
(serialised in three ways), parts of the AI SDK, and the older `gen_ai.*.message` and
`gen_ai.choice` events. The keys identify the format, not the sender, because frameworks mix
formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pathgauge.collector.core.invocations.messages.message import (
    AskedCall,
    Message,
    Response,
    is_of_user,
)
from pathgauge.collector.core.invocations.messages.parts import (
    call_id,
    is_reasoning,
    listed_parts,
    read_call,
    read_part,
)
from pathgauge.collector.core.invocations.messages.reprs import (
    is_written_object,
    written_message,
)
from pathgauge.collector.core.invocations.messages.values import (
    UNWRITTEN,
    as_id,
    as_object,
    decode,
    decoded,
)
from pathgauge.collector.core.reading_budget import spend

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

_MESSAGE_KEYS = frozenset({"role", "content", "parts", "tool_calls", "message", "messages"})

_PLAIN_RESULT = frozenset({"role", "content", "tool_call_id", "name"})
"""Keys of the result of a tool in the chat messages of OpenAI."""

_CALLABLE_INPUT = frozenset({"args", "kwargs"})
"""Keys of the recorded input of a Python function. Its arguments may be messages."""

_CREW_OUTPUT = frozenset({"raw", "pydantic"})
"""Keys of the output of a crew, task or agent of CrewAI. `raw` is the text."""

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
"""Values of `type` in messages of LangChain."""


def parse_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Read one message, a list of messages, or an object that contains them. Messages without a
    role get `role`. Other values are skipped.
    """
    parsed = [parse_message(item, role) for item in _items(value, role, 0)]
    return tuple([message for message in parsed if message is not None])


def parse_last_turn(value: Any) -> tuple[Message, ...]:
    """What users and models wrote in a prompt from the last text of a user on, read from the end.
    Empty if it is no plain list of messages, or if no user wrote a text.
    """
    if not isinstance(value, list) or not all(map(_is_message, value)):
        return ()
    found: list[Message] = []
    for item in reversed(value):
        if _is_of_tool(item):
            continue  # results are the largest part of most prompts
        message = parse_message(item, "user")
        if message is None:
            continue
        found.append(message)
        if is_of_user(message):
            return tuple(reversed(found))
    return ()


def _is_message(item: Any) -> bool:
    """Whether this is a message and nothing that contains some, as nearly all in lists."""
    return isinstance(item, dict) and ("role" in item or "parts" in item)


def _is_of_tool(message: Mapping[str, Any]) -> bool:
    """Whether nobody but a tool can have written a message, whatever is in its content."""
    if message.get("role") != "tool":
        return False
    if "parts" in message:
        return True
    is_plain = message.keys() <= _PLAIN_RESULT
    return is_plain and not isinstance(message.get("content"), dict)  # it may be another message


def _items(value: Any, role: str, level: int) -> Iterator[Any]:
    if level > _MAX_LEVELS:
        return
    if isinstance(value, list):
        for item in value:
            if _is_message(item):
                yield item
            elif _is_pair(item):
                yield {"role": item[0], "content": item[1]}
            elif isinstance(item, list) or _contained(item, role) is not None:
                yield from _items(item, role, level + 1)
            else:
                yield item
        return
    contained = _contained(value, role)
    if contained is not None:
        yield from _items(contained, role, level + 1)
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
    if _langchain(value) is not None or value.keys() >= _CREW_OUTPUT:
        return None
    if value.keys() == _CALLABLE_INPUT:
        arguments = (*_values(value["args"]), *_values(value["kwargs"]))
        return [item for item in arguments if isinstance(item, list | dict)] or None
    key = _container(value, role)
    if key is None or _is_item(value):
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


def parse_message(value: Any, role: str) -> Message | None:
    """Read one message. Plain text is a message of `role`."""
    spend()
    if isinstance(value, str):
        if is_written_object(value):
            written = written_message(value)
            return None if written is None else _parse_object(written, role)
        content = decode(value)
        if isinstance(content.value, dict) and not content.value.keys().isdisjoint(_MESSAGE_KEYS):
            return _parse_object(content.value, role)
        return None if content.truncated or value in UNWRITTEN else Message(role, value)
    return _parse_object(value, role) if isinstance(value, dict) else None


def _parse_object(value: Mapping[str, Any], role: str) -> Message | None:
    if "parts" in value:
        return _message(value, role)
    if _is_item(value):
        return _item(value, role)
    if value.keys() >= _CREW_OUTPUT:
        return Message(role, "" if value["raw"] == "" else as_id(value["raw"]))
    serialised = _langchain(value)
    if serialised is not None:
        return _message(serialised, role)
    inner = as_object(value.get("message")) or as_object(value.get("content"))
    if inner is not None:
        return _enclosed(value, inner, role)
    return None if value.keys().isdisjoint(_MESSAGE_KEYS) else _message(value, role)


def _enclosed(value: Mapping[str, Any], inner: Mapping[str, Any], role: str) -> Message | None:
    """A message inside a choice, a generation, an event or an entry of a list."""
    if inner.get("type") == "function" and call_id(value) is None:
        return None  # Langfuse lists the definitions of tools among the messages.
    generation = as_object(value.get("generation_info")) or {}
    outer = {key: value.get(key) for key in ("role", "finish_reason", "tool_calls")}
    outer["finish_reason"] = outer["finish_reason"] or generation.get("finish_reason")
    return _message({**outer, **(_langchain(inner) or inner)}, role)


def _langchain(value: Mapping[str, Any]) -> dict[str, Any] | None:
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


def _is_item(value: Mapping[str, Any]) -> bool:
    """Whether this is an item of OpenAI's responses other than a message."""
    return (
        value.get("type") in ("function_call", "function_call_output", "reasoning")
        and "role" not in value
    )


def _item(value: Mapping[str, Any], role: str) -> Message | None:
    if value["type"] == "function_call":
        call = read_call(value)
        if call is not None:
            return Message("assistant", calls=(call,))
        return None
    if value["type"] == "function_call_output":
        response = Response(decoded(value.get("output")), None, call_id(value))
        return Message("tool", responses=(response,))
    return Message(role, "") if role == "assistant" else None  # Reasoning alone is no answer.


def _message(value: Mapping[str, Any], role: str) -> Message:
    name = as_id(value.get("role")) or role
    name = _ROLES.get(name, name)
    texts: list[str] = []
    calls: list[AskedCall] = []
    responses: list[Response] = []
    parts = listed_parts(value)
    for part in map(read_part, parts):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, AskedCall):
            calls.append(part)
        elif part is not None:
            responses.append(part)
    if "tool_calls" in value:
        calls += _listed_calls(decoded(value["tool_calls"]), calls)
    if name == "tool" and not responses:
        responses, texts = [_tool_response(value, texts)], []
    reason = as_id(value.get("finish_reason"))
    if texts or calls or responses:
        text = "\n".join(texts) if texts else None
        return Message(name, text, tuple(calls), tuple(responses), reason)
    if all(map(is_reasoning, parts)):
        return Message(name, "", finish_reason=reason)
    hidden = any(part is not None for part in parts)
    return Message(name, finish_reason=reason, hidden=hidden)


def _listed_calls(listed: Any, known: Iterable[AskedCall]) -> list[AskedCall]:
    """The calls in `tool_calls` that are not among the parts of the message."""
    if not isinstance(listed, list):
        return []
    known_ids = {call.id for call in known if call.id is not None}
    calls = (read_call(entry) for entry in listed)
    return [call for call in calls if call is not None and call.id not in known_ids]


def _tool_response(value: Mapping[str, Any], texts: list[str]) -> Response:
    """The result in a tool message without a part for it."""
    result = decoded("\n".join(texts)) if texts else None
    error = "error" if value.get("status") == "error" else None
    return Response(result, as_id(value.get("name")), call_id(value), error)
