"""Model messages as the reading uses them, and what is asked of them: their texts, the calls that
they ask for, the answer.

`Message`s come from `shapes`, which reads them from whatever a framework wrote. Reasoning is not
text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pathgauge.collector.core.invocations.messages.values import as_text


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
    error: str | None = None
    """Set when the message says that the tool failed."""


class Message(NamedTuple):
    """One message of a model's input or output."""

    role: str
    text: str | None = None
    calls: tuple[AskedCall, ...] = ()
    responses: tuple[Response, ...] = ()
    finish_reason: str | None = None


def with_call_ids(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give results that say neither id nor name the ids of the calls that were asked for right
    before them, which they answer in order.
    """
    waiting: list[AskedCall] = []
    named: list[Message] = []
    for message in messages:
        if message.calls:
            waiting = list(message.calls)
        responses = tuple(
            response._replace(id=waiting.pop(0).id)
            if waiting and response.id is None and response.name is None
            else response
            for response in message.responses
        )
        named.append(message._replace(responses=responses) if message.responses else message)
    return tuple(named)


def last_user_text(messages: Sequence[Message]) -> str | None:
    """The text of the last message that a user wrote."""
    return next(
        (m.text for m in reversed(messages) if m.role == "user" and m.text and not m.responses),
        None,
    )


def answer(messages: Iterable[Message]) -> str | None:
    """The text with which a model's output answers: the first choice, its streamed chunks put
    together; none beside tool calls.

    One tool call is an answer itself: that of `final_answer`, with which smolagents ends.
    """
    chunks: list[str] = []
    for message in messages:
        if message.role != "assistant":
            continue
        if message.calls:
            given = (
                call.arguments
                for call in message.calls
                if call.name == "final_answer" and isinstance(call.arguments, dict)
            )
            return next((as_text(arguments.get("answer")) for arguments in given), None)
        if "tool" in (message.finish_reason or "").lower():
            return None  # whose calls were lost
        chunks.append(message.text or "")
        if message.finish_reason:
            break
    return "".join(chunks) or None


def last_answer(messages: Sequence[Message]) -> str | None:
    """The text that ends a conversation: that of its last message, when an assistant wrote it and
    asks for no call in it.
    """
    last = messages[-1] if messages else None
    return last.text if last is not None and last.role == "assistant" and not last.calls else None


def asked_calls(messages: Iterable[Message]) -> Iterator[AskedCall]:
    """The tool calls that a model's output asks for, in order; other choices than the first were
    never carried out.
    """
    for message in messages:
        if message.role == "assistant":
            yield from message.calls
            if message.finish_reason:
                return
