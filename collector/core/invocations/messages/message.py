"""Model messages in the form that the reader uses, and what it derives from them: texts, tool
calls, the answer.

`parse` reads them from any format. Reasoning is not text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pathgauge.collector.core.invocations.messages.values import as_text

_ITEM_ID = "fc_"


class AskedCall(NamedTuple):
    """A tool call that a model message asks for."""

    name: str
    arguments: Any
    """Decoded; `None` if not recorded."""
    id: str | None = None


class Response(NamedTuple):
    """The result of a tool in a prompt."""

    result: Any
    name: str | None = None
    id: str | None = None
    error: str | None = None
    """Set if the message says that the tool failed."""


class Message(NamedTuple):
    """One message of a model's input or output."""

    role: str
    text: str | None = None
    """`""` if the message says nothing, `None` if its text is not recorded."""
    calls: tuple[AskedCall, ...] = ()
    responses: tuple[Response, ...] = ()
    finish_reason: str | None = None
    hidden: bool = False
    """Whether it has content that cannot be read: removed, or of an unknown kind."""

    @property
    def is_recorded(self) -> bool:
        """Whether any of its content is recorded."""
        return bool(self.text is not None or self.calls or self.responses)


def is_recorded(messages: Iterable[Message]) -> bool:
    """Whether the content of any message is recorded."""
    for message in messages:
        if message.text is not None or message.calls or message.responses:
            return True
    return False


def most_telling(sources: Iterable[tuple[Message, ...]]) -> tuple[Message, ...]:
    """The first source with recorded content, which may be empty; otherwise the first with
    messages.
    """
    found: tuple[Message, ...] = ()
    for messages in sources:
        if is_recorded(messages):
            return messages
        found = found or messages
    return found


def without_item_ids(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Messages of OpenAI's Responses without the ids of items in place of those of calls: no result
    has them.
    """
    return tuple(
        message._replace(calls=tuple(map(_without_item_id, message.calls))) for message in messages
    )


def _without_item_id(call: AskedCall) -> AskedCall:
    if call.id is not None and call.id.startswith(_ITEM_ID):
        return call._replace(id=None)
    return call


def with_call_ids(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Complete the results in a prompt. Those with only an id get the name of the call that they
    answer. Those without id and name answer the calls of the last message with calls, in their
    order, and get their ids.
    """
    pending: deque[AskedCall] = deque()
    names: dict[str, str] = {}
    completed: list[Message] = []
    for message in messages:
        if message.calls:
            pending = deque(message.calls)
            names.update({call.id: call.name for call in message.calls if call.id is not None})
        if not message.responses:
            completed.append(message)
            continue
        responses = []
        for result, name, id, error in message.responses:
            if name is None and id is not None:
                responses.append(Response(result, names.get(id), id, error))
            elif pending and id is None and name is None:
                responses.append(Response(result, None, pending.popleft().id, error))
            else:
                responses.append(Response(result, name, id, error))
        completed.append(Message(*message[:3], tuple(responses), *message[4:]))
    return tuple(completed)


def is_of_user(message: Message) -> bool:
    """Whether a user wrote a text."""
    return message.role == "user" and bool(message.text) and not message.responses


def last_user_text(messages: Sequence[Message]) -> str | None:
    """The text of the last message that a user wrote."""
    return next((message.text for message in reversed(messages) if is_of_user(message)), None)


def last_turn(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages from the last text of a user on; all if there is none."""
    for at in range(len(messages) - 1, -1, -1):
        if is_of_user(messages[at]):
            return tuple(messages[at:])
    return tuple(messages)


def answer(messages: Iterable[Message]) -> str | None:
    """The answer in the output of a model: the text of the first choice, with streamed chunks
    joined; `None` if it asks for tool calls, or is not recorded. Whatever precedes a text of a user
    is no answer to it.

    One tool call is itself an answer: `final_answer`, with which smolagents ends.
    """
    chunks: list[str | None] = []
    for message in last_turn(tuple(messages)):
        if message.role != "assistant":
            continue
        if message.calls:
            return _final_answer(message)
        if "tool" in (message.finish_reason or "").lower():
            return None  # The calls of this message were lost.
        chunks.append(message.text)
        if message.finish_reason:
            break
    text = "".join(filter(None, chunks))
    if not text and (not chunks or None in chunks):
        return None
    return text


def said(messages: Iterable[Message]) -> str:
    """What the model said in its output: the text of the first choice, also beside tool calls."""
    texts: list[str] = []
    for message in messages:
        if message.role == "assistant":
            texts.append(message.text or "")
            if message.finish_reason:
                break
    return "".join(texts)


def _final_answer(message: Message) -> str | None:
    for call in message.calls:
        if call.name == "final_answer" and isinstance(call.arguments, dict):
            return as_text(call.arguments.get("answer"))
    return None


def last_answer(messages: Sequence[Message]) -> str | None:
    """The text of the last message of a conversation, if an assistant wrote it and it asks for no
    tool call.
    """
    if not messages:
        return None
    last = messages[-1]
    if last.role == "assistant" and not last.calls:
        return last.text
    return None


def asked_calls(messages: Iterable[Message]) -> Iterator[AskedCall]:
    """The tool calls in the output of a model, in order. Only the first choice counts: the calls of
    the others are never executed.
    """
    for message in messages:
        if message.role == "assistant":
            yield from message.calls
            if message.finish_reason:
                return
