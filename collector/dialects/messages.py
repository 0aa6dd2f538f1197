"""Reads model messages in every shape the field has: JSON-like values come in, `Message`s go out.

The shapes: GenAI semantic conventions (`role` and `parts` with a `type`), OpenAI chat (`content`, `tool_calls`), Google GenAI
contents (`parts` with `function_call`), and the bodies of the conventions' older `gen_ai.*.message` and `gen_ai.choice` events.
A shape is told by its keys, never by the sender, as frameworks mix them. Reasoning is not text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from collector.dialects.values import as_id, as_object, decoded

_MESSAGE_KEYS = frozenset({"role", "content", "parts", "tool_calls", "message"})

_BLOCK_KEYS = frozenset({"text", "type", "toolUse", "toolResult"})

ROLES = {"model": "assistant", "human": "user", "ai": "assistant", "function": "tool", "developer": "system"}


class AskedCall(NamedTuple):
    """A tool call that a model message asks for."""

    name: str
    arguments: Any
    """Decoded; `None` when not recorded."""
    id: str | None = None


class Response(NamedTuple):
    """A tool's result as it is shown to the model."""

    result: Any
    name: str | None = None
    id: str | None = None


class Message(NamedTuple):
    """One message of a model's input or output."""

    role: str
    text: str | None = None
    calls: tuple[AskedCall, ...] = ()
    responses: tuple[Response, ...] = ()
    finish_reason: str | None = None


def parse_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Read a list of messages, or one; `role` is used where a message names none. What is no message is left out."""
    items = value if isinstance(value, list) else [value]
    return tuple(message for item in items if (message := parse_message(item, role)) is not None)


def parse_message(value: Any, role: str) -> Message | None:
    """Read one message; a bare text is a message of `role`."""
    if isinstance(value, str):
        content = decoded(value)
        if not isinstance(content, dict) or content.keys().isdisjoint(_MESSAGE_KEYS):
            return Message(role, value) if content is not None else None
        value = content
    if not isinstance(value, dict):
        return None
    inner = as_object(value.get("message")) or as_object(value.get("content"))
    if inner is not None and "parts" not in value:
        value = {"finish_reason": value.get("finish_reason"), "role": value.get("role"), **inner}
    return _message(value, role)


def _message(value: Mapping[str, Any], role: str) -> Message:
    name = as_id(value.get("role")) or role
    name = ROLES.get(name, name)
    texts: list[str] = []
    calls: list[AskedCall] = []
    responses: list[Response] = []
    for part in map(_part, _parts(value)):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, AskedCall):
            calls.append(part)
        elif part is not None:
            responses.append(part)
    calls += _openai_calls(value.get("tool_calls"))
    if name == "tool" and not responses:
        responses, texts = [Response(decoded("\n".join(texts)), as_id(value.get("name")), _tool_call_id(value))], []
    text = "\n".join(texts) if texts else None
    return Message(name, text, tuple(calls), tuple(responses), as_id(value.get("finish_reason")))


def _parts(value: Mapping[str, Any]) -> list[Any]:
    parts = value.get("parts")
    if parts is None:
        parts = _blocks(value.get("content"))
    return parts if isinstance(parts, list) else [parts]


def _blocks(content: Any) -> Any:
    """Content blocks that were written as JSON text; any other text is what somebody wrote, even when it is JSON."""
    if not isinstance(content, str):
        return content
    value = decoded(content)
    if isinstance(value, list) and value and all(isinstance(block, dict) and not _BLOCK_KEYS.isdisjoint(block) for block in value):
        return value
    return content if value is not None else None


def _part(part: Any) -> str | AskedCall | Response | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("thought"):
        return None
    kind = part.get("type")
    if kind in ("tool_call", "server_tool_call"):
        return _asked(part, "arguments")
    if kind in ("tool_call_response", "server_tool_call_response"):
        result = part.get("response", part.get("result"))
        return Response(decoded(result), as_id(part.get("name")), as_id(part.get("id")))
    if kind in (None, "text", "output_text", "input_text"):
        return _google_part(part)
    return None


def _google_part(part: Mapping[str, Any]) -> str | AskedCall | Response | None:
    call = as_object(part.get("function_call") or part.get("functionCall"))
    if call is not None:
        return _asked(call, "args")
    response = as_object(part.get("function_response") or part.get("functionResponse"))
    if response is not None:
        return Response(decoded(response.get("response")), as_id(response.get("name")), as_id(response.get("id")))
    text = part.get("text", part.get("content"))
    return text if isinstance(text, str) else None


def _asked(call: Mapping[str, Any], key: str) -> AskedCall | None:
    name = as_id(call.get("name"))
    return None if name is None else AskedCall(name, decoded(call.get(key)), as_id(call.get("id")))


def _openai_calls(value: Any) -> Iterator[AskedCall]:
    calls = decoded(value)
    for call in calls if isinstance(calls, list) else []:
        function = as_object(call.get("function")) if isinstance(call, dict) else None
        name = as_id((function or {}).get("name"))
        if function is not None and name is not None:
            yield AskedCall(name, decoded(function.get("arguments")), as_id(call.get("id")))


def _tool_call_id(value: Mapping[str, Any]) -> str | None:
    return as_id(value.get("tool_call_id") or value.get("id"))


def last_user_text(messages: Iterable[Message]) -> str | None:
    """The text of the last message that a user wrote."""
    return next((m.text for m in reversed(list(messages)) if m.role == "user" and m.text and not m.responses), None)


def answer(messages: Iterable[Message]) -> str | None:
    """The text with which a model's output answers: the first choice, its streamed chunks put together; none beside tool calls."""
    chunks: list[str] = []
    for message in messages:
        if message.role != "assistant":
            continue
        if message.calls:
            return None
        chunks.append(message.text or "")
        if message.finish_reason:
            break
    return "".join(chunks) or None


def asked_calls(messages: Iterable[Message]) -> Iterator[AskedCall]:
    """The tool calls that a model's output asks for, in order; other choices than the first were never carried out."""
    for message in messages:
        if message.role == "assistant":
            yield from message.calls
            if message.finish_reason:
                return
