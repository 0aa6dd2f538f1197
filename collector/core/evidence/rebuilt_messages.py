"""Writes texts and tool calls as messages of the GenAI conventions, for rebuilt traces."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pathgauge.scorers.types import Json, ToolCall


def asked_id(number: int, call: ToolCall) -> str:
    """The id that joins a call with its span. Models may repeat theirs."""
    return call.id or f"call-{number}"


def asked_part(number: int, call: ToolCall) -> dict[str, Json]:
    """The part of a model message that asks for a call."""
    part = {"type": "tool_call", "id": asked_id(number, call), "name": call.name}
    return part if call.arguments is None else {**part, "arguments": call.arguments}


def texts(user_input: str | None, answer: str | None) -> dict[str, str | None]:
    """What an agent was asked and what it answered."""
    return {
        "gen_ai.input.messages": _message("user", user_input),
        "gen_ai.output.messages": _message("assistant", answer),
    }


def _message(role: str, text: str | None) -> str | None:
    if text is None:
        return None
    part = {"type": "text", "content": text}
    return messages(role, [part], "stop" if role == "assistant" else None)


def messages(role: str, parts: Sequence[Json], finish_reason: str | None) -> str | None:
    """One message of a model, a user or an agent."""
    message = {"role": role, "parts": list(parts)}
    if finish_reason is not None:
        message["finish_reason"] = finish_reason
    return json_text([message])


def json_text(value: Json) -> str | None:
    """The value as JSON; `None` stays unknown."""
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def sendable(text: str) -> str:
    """The text with lone surrogates replaced, which protobuf cannot encode."""
    return text.encode("utf-8", "replace").decode()
