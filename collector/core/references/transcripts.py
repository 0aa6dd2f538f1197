"""Converts a list of chat messages (OpenAI, Anthropic, LangChain) into reference turns.

Each user message begins a turn. Tool calls in one assistant message may come in any order. The
response is the last assistant text without tool calls. A transcript contains every call, so a turn
without calls expects none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Problems,
    embedded,
    show_value,
)
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.ignored_keys import unknown_keys
from pathgauge.collector.core.references.parallel_groups import joined
from pathgauge.scorers.types import ExpectedCall, Json, ReferenceTurn

_USER = frozenset({"user", "human", "HumanMessageChunk"})
_ASSISTANT = frozenset({"assistant", "ai", "AIMessageChunk"})
_OTHERS = frozenset(
    {
        "system",
        "developer",
        "tool",
        "function",
        "remove",
        "SystemMessageChunk",
        "ToolMessageChunk",
        "FunctionMessageChunk",
    }
)
_WRAPPERS = ("data", "kwargs")
"""LangChain's `messages_to_dict` and `dumps` nest the message under these keys."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Function(_Part):
    name: Annotated[str, Field(min_length=1)]
    arguments: Any = None


class _Call(_Part):
    """A call with a `function` (OpenAI), or with `name` and `args` (LangChain)."""

    function: _Function | None = None
    name: Annotated[str, Field(min_length=1)] | None = None
    args: Any = None


class _Block(_Part):
    """A `tool_use` block in the content of a message, as Anthropic writes calls."""

    name: Annotated[str, Field(min_length=1)]
    input: Any = None


class _Message(_Part):
    role: str | None = None
    type: str | None = None
    content: Any = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None


@dataclass(slots=True)
class _Turn:
    user_texts: list[str] = field(default_factory=list)
    calls: list[list[ExpectedCall]] = field(default_factory=list)
    """The calls of each message."""
    response: str | None = None
    answered: bool = False

    @property
    def user_input(self) -> str | None:
        """Several user messages in a row belong to one turn."""
        return "\n".join(self.user_texts) or None


def is_message(value: Json) -> bool:
    """Whether a value looks like a message."""
    if not isinstance(value, dict) or not ("role" in value or "type" in value):
        return False
    return any(key in value for key in ("content", "tool_calls", "function_call", *_WRAPPERS))


def turns(
    document: Document,
    path: KeyPath,
    messages: Json,
    user_input: str | None,
    ignored: Counter[str],
) -> tuple[ReferenceTurn, ...]:
    """The turns of the messages at `path`. `user_input` is the user's first text if the messages
    begin with the answer to it.

    Counts ignored messages and keys in `ignored`. Raises `ConfigError` with every problem.
    """
    if not isinstance(messages, list):
        text = f"found {show_value(messages)}, expected a list of messages"
        raise ConfigError([document.problem(path, text)])
    found: list[_Turn] = [] if user_input is None else [_Turn([user_input])]
    problems = Problems()
    for index, message in enumerate(messages):
        with problems:
            _add_message(document, *_unwrapped((*path, index), message), found, ignored)
    problems.report()
    if len(found) > 1 and not found[0].user_texts and not found[0].calls:
        ignored["messages before the user's first"] += 1
        del found[0]
    if not found:
        text = "found no message of a user or an assistant, expected a conversation"
        raise ConfigError([document.problem(path, text)])
    return tuple(
        ReferenceTurn(turn.user_input, joined(turn.calls), turn.response) for turn in found
    )


def begins_with_user(messages: Json) -> bool:
    """Whether the first message of user or assistant is the user's; `False` if there is none."""
    return next((role in _USER for role, _ in _texts(messages)), False)


def last_text(messages: Json, *, by_user: bool) -> str | None:
    """The text of the last message of the user (or else of the assistant) in a list of messages or
    a single message; `None` for any other value.
    """
    texts = [text for role, text in _texts(messages) if (role in _USER) is by_user]
    return texts[-1] if texts else None


def _texts(messages: Json) -> Iterator[tuple[str, str | None]]:
    """Role and text of every message of the user and the assistant."""
    for wrapped in messages if isinstance(messages, list) else [messages]:
        _, message = _unwrapped((), wrapped)
        if isinstance(message, dict):
            role = message.get("role", message.get("type"))
            if isinstance(role, str) and role in _USER | _ASSISTANT:
                yield role, _text(message.get("content"))


def _unwrapped(path: KeyPath, message: Json) -> tuple[KeyPath, Json]:
    if isinstance(message, dict) and "content" not in message:
        for key in _WRAPPERS:
            if isinstance(message.get(key), dict):
                return (*path, key), {"type": message.get("type"), **message[key]}
    return path, message


def _add_message(
    document: Document, path: KeyPath, raw: Json, found: list[_Turn], ignored: Counter[str]
) -> None:
    """Add one message to the turns found so far."""
    message = validate(_Message, document, raw, path)
    role = message.role or message.type
    if role in _OTHERS:
        ignored[f"{role} messages"] += 1
        return
    if role in _USER and _returns_results(message.content):
        ignored["tool results"] += 1
        return
    if role in _USER:
        _add_user_text(_text(message.content), found)
    elif role in _ASSISTANT:
        _add_answer(list(_calls(document, path, message)), _text(message.content), found)
    else:
        key = "role" if message.role is not None else "type"
        text = f"found {show_value(role)}, expected a role such as user, assistant or tool"
        raise ConfigError([document.problem((*path, key), text)])
    ignored.update(key for key in unknown_keys(message, "messages.") if not key.endswith(".id"))


def _add_user_text(text: str | None, found: list[_Turn]) -> None:
    if not found or found[-1].answered:
        found.append(_Turn())
    if text:
        found[-1].user_texts.append(text)


def _add_answer(calls: list[ExpectedCall], text: str | None, found: list[_Turn]) -> None:
    if not found:
        found.append(_Turn())
    turn = found[-1]
    turn.answered = True
    if calls:
        turn.calls.append(calls)
    else:
        turn.response = text or turn.response


def _text(content: Json) -> str | None:
    """The text parts of a message's content, one per line, without images and other media; `None`
    if there are none.
    """
    if isinstance(content, str):
        return content or None
    texts = [part.get("text") if isinstance(part, dict) else part for part in _parts(content)]
    return "\n".join(text for text in texts if isinstance(text, str) and text) or None


def _parts(content: Json) -> list[Json]:
    return content if isinstance(content, list) else []


def _returns_results(content: Json) -> bool:
    """Whether a user message contains tool results only, as Anthropic's API sends them."""
    parts = _parts(content)
    return bool(parts) and all(
        isinstance(part, dict) and part.get("type") == "tool_result" for part in parts
    )


def _calls(document: Document, path: KeyPath, message: _Message) -> Iterator[ExpectedCall]:
    for place, block in _tool_use_blocks(document, (*path, "content"), message.content):
        if not message.tool_calls:  # LangChain repeats the calls of Anthropic's models there
            yield ExpectedCall(block.name, _arguments(document, (*place, "input"), block.input))
    if message.function_call is not None:
        yield _call_of(document, (*path, "function_call"), message.function_call)
    for index, call in enumerate(message.tool_calls or ()):
        place = (*path, "tool_calls", index)
        if call.function is not None:
            yield _call_of(document, (*place, "function"), call.function)
        elif call.name is not None:
            yield ExpectedCall(call.name, _arguments(document, (*place, "args"), call.args))
        else:
            text = "found neither function nor name, expected one of them"
            raise ConfigError([document.problem(place, text)])


def _tool_use_blocks(
    document: Document, path: KeyPath, content: Json
) -> Iterator[tuple[KeyPath, _Block]]:
    for index, part in enumerate(_parts(content)):
        if isinstance(part, dict) and part.get("type") == "tool_use":
            yield (*path, index), validate(_Block, document, part, (*path, index))


def _call_of(document: Document, path: KeyPath, function: _Function) -> ExpectedCall:
    return ExpectedCall(
        function.name, _arguments(document, (*path, "arguments"), function.arguments)
    )


def _arguments(document: Document, path: KeyPath, value: Json) -> dict[str, Json] | None:
    """Arguments given as an object or as JSON text. Empty text is what many models write for a call
    without arguments.
    """
    if isinstance(value, str):
        value = embedded.read(document, path, value) if value.strip() else {}
    if value is None or isinstance(value, dict):
        return value
    raise ConfigError([document.problem(path, f"found {show_value(value)}, expected an object")])
