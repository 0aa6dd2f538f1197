"""Messages of models without their texts: in the form of the GenAI conventions, reduced to the
names and ids of their tool calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pathgauge.collector.core.invocations.dialects import Dialect
from pathgauge.collector.core.invocations.messages.message import AskedCall, Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.redaction.parsing import encoded
from pathgauge.collector.core.redaction.replace import MASKED

_REMOVED_TEXT = {"type": "text"}
"""The place of a text. A message without any part would be an empty answer."""


def stripped(value: Any, dialects: tuple[Dialect, ...]) -> list[dict[str, Any]] | None:
    """The messages of an assistant in a value, as the dialects write them; `None` without any."""
    if value is None:
        return None
    readers = (dialect.messages for dialect in dialects if dialect.messages is not None)
    read = next(readers, parse_messages)
    messages = (message for message in read(value, "assistant") if message.role == "assistant")
    return [without_text(message) for message in messages] or None


def without_text(message: Message) -> dict[str, Any]:
    """A message of an assistant, reduced to its tool calls."""
    calls = list(map(_call, message.calls))
    reduced: dict[str, Any] = {"role": "assistant", "parts": calls or [_REMOVED_TEXT]}
    if message.finish_reason is not None:
        reduced["finish_reason"] = message.finish_reason
    return reduced


def _call(call: AskedCall) -> dict[str, Any]:
    part = {"type": "tool_call", "id": call.id, "name": call.name, "arguments": MASKED}
    return {key: value for key, value in part.items() if value is not None}


def flattened(messages: list[dict[str, Any]], prefix: str) -> Iterator[tuple[str, Any]]:
    """The messages as attributes below a prefix, one for each scalar."""
    for number, message in enumerate(messages):
        for key in ("role", "finish_reason"):
            if key in message:
                yield f"{prefix}.{number}.{key}", message[key]
        for index, part in enumerate(message["parts"]):
            for key, value in part.items():
                yield f"{prefix}.{number}.parts.{index}.{key}", value


def stripped_choice(attributes: Mapping[str, Any], dialects: tuple[Dialect, ...]) -> dict[str, Any]:
    """The attributes of an event `gen_ai.choice`, reduced to tool calls and the finish reason."""
    values = {key: decoded(value) for key, value in attributes.items()}
    messages = stripped(values, dialects)
    parts = [part for message in messages or () for part in message["parts"]]
    calls = [part for part in parts if part != _REMOVED_TEXT]
    found: dict[str, Any] = {"message": encoded(calls)} if calls else {}
    if isinstance(attributes.get("finish_reason"), str):
        found["finish_reason"] = attributes["finish_reason"]
    return found
