"""Reads messages in every format that frameworks use.

The formats: GenAI semantic conventions (`role` and `parts` with a `type`), OpenAI chat and
responses, Anthropic and Bedrock content blocks, Google GenAI contents, LangChain messages
(serialised in three ways), parts of the AI SDK, and the older `gen_ai.*.message` and
`gen_ai.choice` events. The keys identify the format, not the sender, because frameworks mix
formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pathgauge.collector.core.invocations.messages.containers import contained_messages
from pathgauge.collector.core.invocations.messages.message import (
    AskedCall,
    Message,
    Response,
    is_of_user,
)
from pathgauge.collector.core.invocations.messages.notations import (
    CREW_OUTPUT,
    autogen_fields,
    is_message,
    is_response_item,
    langchain_fields,
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

_MESSAGE_KEYS = frozenset({"role", "content", "parts", "tool_calls", "message", "messages"})
_MORE = "additional_kwargs"
"""The member of LlamaIndex's messages with the name and the id of an answered call."""

_PLAIN_RESULT = frozenset({"role", "content", "tool_call_id", "name"})
"""Keys of the result of a tool in the chat messages of OpenAI."""

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


def parse_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Read one message, a list of messages, or an object that contains them. Messages without a
    role get `role`. Other values are skipped.
    """
    parsed = [parse_message(item, role) for item in contained_messages(value, role)]
    return tuple([message for message in parsed if message is not None])


def parse_last_turn(value: Any) -> tuple[Message, ...]:
    """What users and models wrote in a prompt from the last text of a user on, read from the end.
    Empty if it is no plain list of messages, or if no user wrote a text.
    """
    if not isinstance(value, list) or not all(map(is_message, value)):
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


def _is_of_tool(message: Mapping[str, Any]) -> bool:
    """Whether nobody but a tool can have written a message, whatever is in its content."""
    if message.get("role") != "tool":
        return False
    if "parts" in message:
        return True
    is_plain = message.keys() <= _PLAIN_RESULT
    return is_plain and not isinstance(message.get("content"), dict)  # it may be another message


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
    if is_response_item(value):
        return _item(value, role)
    if value.keys() >= CREW_OUTPUT:
        return Message(role, "" if value["raw"] == "" else as_id(value["raw"]))
    serialised = langchain_fields(value) or autogen_fields(value)
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
    return _message({**outer, **(langchain_fields(inner) or inner)}, role)


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
    if _MORE in value:
        value = {**(as_object(value[_MORE]) or {}), **value}
    return Response(result, as_id(value.get("name")), call_id(value), error)
