"""Puts back what the AWS Distribution for OpenTelemetry takes out of spans: their log records and
messages come in, all messages go out.

It takes the texts out of the spans of any instrumentation, but no tool calls. Those of one span
make one log record, named after the span's scope, with `input` and `output` in its body. Each entry
there was an attribute: the text of one message, or the JSON of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, as_object, decoded
from pathgauge.collector.core.otlp.spans import LogRecord

_NO_TEXT = ("[TaskOutput(",)
"""How CrewAI writes, beside the text of its result, the objects that it comes from."""


def put_back(shown: Sequence[Message], logs: Iterable[LogRecord], role: str) -> tuple[Message, ...]:
    """The messages that the span shows, with those texts that were taken out of it; `role` is
    `user` for input, `assistant` for output.
    """
    moved = () if any(message.text for message in shown) else tuple(_moved(logs, role))
    stayed = (
        [message for message in shown if message.calls or message.responses]
        if moved
        else list(shown)
    )
    results = [response.result for message in moved for response in message.responses]
    if results and len(results) == sum(len(message.responses) for message in stayed):
        rest = iter(results)
        stayed = [
            message._replace(
                responses=tuple(r._replace(result=next(rest)) for r in message.responses)
            )
            for message in stayed
        ]
    if not stayed:
        return moved
    return (*stayed, *(message._replace(calls=()) for message in moved if not message.responses))


def _moved(logs: Iterable[LogRecord], role: str) -> Iterator[Message]:
    """Of the output the last entry counts, as the raw output comes before the messages in it."""
    for log in logs:
        if log.scope.name and log.event_name == log.scope.name:
            side = (as_object(log.body) or {}).get("output" if role == "assistant" else "input")
            listed = (as_object(side) or {}).get("messages")
            entries = [
                entry
                for entry in (listed if isinstance(listed, list) else ())
                if _holds_text(entry)
            ]
            for entry in entries[-1:] if role == "assistant" else entries:
                yield from _messages_of(entry, as_id(entry.get("role")) or role)


def _holds_text(entry: Any) -> bool:
    content = entry.get("content") if isinstance(entry, dict) else None
    return (
        bool(content)
        and content != "{}"
        and not (isinstance(content, str) and content.startswith(_NO_TEXT))
    )


def _messages_of(entry: Mapping[str, Any], role: str) -> tuple[Message, ...]:
    """JSON that holds no messages is a text when a model wrote it; an agent that is given some is
    asked nothing in words.
    """
    whole = decoded(entry["content"])
    if isinstance(whole, dict):
        whole = {key: decoded(value) if key != "content" else value for key, value in whole.items()}
    messages = parse_messages(whole, role) if isinstance(whole, dict | list) else ()
    return (
        messages
        if messages or (isinstance(whole, dict | list) and role == "user")
        else parse_messages(entry, role)
    )
