"""Restores the texts that the AWS Distribution for OpenTelemetry moves from spans to log records.

It moves the texts of the spans of any instrumentation, but no tool calls. The texts of one span
become one log record, named after the scope of the span, with `input` and `output` in its body.
Each entry there was an attribute: the text of one message, or the JSON of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, as_object, decoded
from pathgauge.collector.core.otlp.spans import LogRecord

_NO_TEXT = ("[TaskOutput(",)
"""Beside the text of its result, CrewAI writes the objects that the result was made of."""


def with_moved_texts(
    messages: Sequence[Message], logs: Iterable[LogRecord], role: str
) -> tuple[Message, ...]:
    """The messages of a span together with its texts in `logs`. `role` is `user` for input and
    `assistant` for output.
    """
    if any(message.text for message in messages):
        return tuple(messages)
    moved = tuple(_moved(logs, role))
    if not moved:
        return tuple(messages)
    kept = [message for message in messages if message.calls or message.responses]
    if not kept:
        return moved
    texts = (one._replace(calls=()) for one in moved if not one.responses)
    return (*_with_results(kept, moved), *texts)


def _with_results(messages: Sequence[Message], moved: Iterable[Message]) -> Sequence[Message]:
    """The messages with the results in the moved ones, if there are as many of both."""
    results = [response.result for message in moved for response in message.responses]
    if not results or len(results) != sum(len(message.responses) for message in messages):
        return messages
    rest = iter(results)
    return [
        message._replace(
            responses=tuple(one._replace(result=next(rest)) for one in message.responses)
        )
        for message in messages
    ]


def _moved(logs: Iterable[LogRecord], role: str) -> Iterator[Message]:
    side = "output" if role == "assistant" else "input"
    for log in logs:
        if not log.scope.name or log.event_name != log.scope.name:
            continue
        body = as_object(log.body) or {}
        listed = (as_object(body.get(side)) or {}).get("messages")
        entries = (
            [entry for entry in listed if _has_text(entry)] if isinstance(listed, list) else []
        )
        if role == "assistant":
            entries = entries[-1:]  # The raw output comes first, the messages in it last.
            entries = [entry for entry in entries if not _is_of_prompt(entry["content"])]
        for entry in entries:
            yield from _messages_of(entry, as_id(entry.get("role")) or role)


def _is_of_prompt(content: Any) -> bool:
    """Whether an entry was an event with an earlier answer, and not one with a choice."""
    return isinstance(content, dict) and "content" in content and "message" not in content


def _has_text(entry: Any) -> bool:
    content = entry.get("content") if isinstance(entry, dict) else None
    if not content or content == "{}":
        return False
    return not (isinstance(content, str) and content.startswith(_NO_TEXT))


def _messages_of(entry: Mapping[str, Any], role: str) -> tuple[Message, ...]:
    """The messages of one entry. JSON without messages is text if a model wrote it; in the input of
    an agent it is no user text.
    """
    whole = decoded(entry["content"])
    if isinstance(whole, dict):
        whole = {key: decoded(value) if key != "content" else value for key, value in whole.items()}
    if not isinstance(whole, dict | list):
        return parse_messages(entry, role)
    messages = parse_messages(whole, role)
    if messages or role == "user":
        return messages
    return parse_messages(entry, role)
