"""Chat messages of OpenAI, Anthropic and LangChain: the messages of a conversation come in, its
reference turns go out.

Every message of the user begins a turn. The calls that one message asks for may come in any order.
What the assistant says without calling a tool is the response. A transcript shows all calls, so a
turn without calls expects none.
"""

from __future__ import annotations

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
from pathgauge.collector.core.references.loaded import Ignored, unread
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
"""Under these keys LangChain's `messages_to_dict` and `dumps` put the message itself."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Function(_Part):
    name: Annotated[str, Field(min_length=1)]
    arguments: Any = None


class _Call(_Part):
    """A call as OpenAI writes it, with a function, or as LangChain does, with name and arguments of
    its own.
    """

    function: _Function | None = None
    name: Annotated[str, Field(min_length=1)] | None = None
    args: Any = None


class _Block(_Part):
    """A call as Anthropic writes it, among the parts of a content."""

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
    user_input: str | None = None
    calls: list[list[ExpectedCall]] = field(default_factory=list)
    """Those of each message."""
    response: str | None = None
    answered: bool = False


def is_message(value: Json) -> bool:
    """Whether a value looks like a message."""
    if not isinstance(value, dict) or not ("role" in value or "type" in value):
        return False
    return any(key in value for key in ("content", "tool_calls", "function_call", *_WRAPPERS))


def turns(
    document: Document, path: KeyPath, messages: Json, asked: str | None, ignored: Ignored
) -> tuple[ReferenceTurn, ...]:
    """The turns of the messages at `path`; `asked` is what the user said where the messages begin
    with the answer to it.

    What is passed over is counted in `ignored`. Raises `ConfigError` with every problem.
    """
    if not isinstance(messages, list):
        raise ConfigError(
            [document.problem(path, f"found {show_value(messages)}, expected a list of messages")]
        )
    found: list[_Turn] = [] if asked is None else [_Turn(asked)]
    problems = Problems()
    for index, message in enumerate(messages):
        with problems:
            _take(document, *_unwrapped((*path, index), message), found, ignored)
    problems.report()
    if len(found) > 1 and found[0].user_input is None and not found[0].calls:
        ignored["messages before the user's first"] += 1
        del found[0]
    if not found:
        raise ConfigError(
            [
                document.problem(
                    path, "found no message of a user or an assistant, expected a conversation"
                )
            ]
        )
    return tuple(
        ReferenceTurn(turn.user_input, joined(turn.calls), turn.response) for turn in found
    )


def begins_with_user(messages: Json) -> bool:
    """Whether the user speaks before the assistant in what may be a list of messages."""
    return next((role in _USER for role, _ in _spoken(messages)), False)


def last_said(messages: Json, *, by_user: bool) -> str | None:
    """The text of the last message of the user, or of the assistant, in what may be a list of
    messages, or one.
    """
    texts = [text for role, text in _spoken(messages) if (role in _USER) is by_user]
    return texts[-1] if texts else None


def _spoken(messages: Json) -> Iterator[tuple[str, str | None]]:
    """The role and the text of every message of the user and the assistant."""
    for message in messages if isinstance(messages, list) else [messages]:
        _, found = _unwrapped((), message)
        role = found.get("role", found.get("type")) if isinstance(found, dict) else None
        if isinstance(role, str) and role in _USER | _ASSISTANT:
            yield role, _text(found.get("content"))


def _unwrapped(path: KeyPath, message: Json) -> tuple[KeyPath, Json]:
    for key in _WRAPPERS if isinstance(message, dict) else ():
        if isinstance(message.get(key), dict) and "content" not in message:
            return (*path, key), {"type": message.get("type"), **message[key]}
    return path, message


def _take(
    document: Document, path: KeyPath, raw: Json, found: list[_Turn], ignored: Ignored
) -> None:
    """Add a message to the turns."""
    message = validate(_Message, document, raw, path)
    role = message.role or message.type
    if role in _OTHERS:
        ignored[f"{role} messages"] += 1
        return
    if role in _USER and _returns_results(message.content):
        ignored["tool results"] += 1
        return
    if role in _USER:
        _ask(_text(message.content), found)
    elif role in _ASSISTANT:
        _answer(list(_calls(document, path, message)), _text(message.content), found)
    else:
        key = "role" if message.role is not None else "type"
        raise ConfigError(
            [
                document.problem(
                    (*path, key),
                    f"found {show_value(role)}, expected a role such as user, assistant or tool",
                )
            ]
        )
    ignored.update(key for key in unread(message, "messages.") if not key.endswith(".id"))


def _ask(text: str | None, found: list[_Turn]) -> None:
    if found and not found[-1].answered:  # the user went on before the assistant said anything
        found[-1].user_input = (
            "\n".join(part for part in (found[-1].user_input, text) if part) or None
        )
    else:
        found.append(_Turn(text))


def _answer(calls: list[ExpectedCall], text: str | None, found: list[_Turn]) -> None:
    if not found:
        found.append(_Turn())
    turn = found[-1]
    turn.answered = True
    if calls:
        turn.calls.append(calls)
    else:
        turn.response = text or turn.response


def _text(content: Json) -> str | None:
    """The text parts of a content, a line each, without images and the like; `None` when there are
    none.
    """
    if isinstance(content, str):
        return content or None
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str) and text) or None


def _returns_results(content: Json) -> bool:
    """Whether a message of the user holds nothing but results of tools, as Anthropic's do."""
    parts = content if isinstance(content, list) else []
    return bool(parts) and all(
        isinstance(part, dict) and part.get("type") == "tool_result" for part in parts
    )


def _calls(document: Document, path: KeyPath, message: _Message) -> Iterator[ExpectedCall]:
    for index, part in enumerate(message.content if isinstance(message.content, list) else ()):
        if isinstance(part, dict) and part.get("type") == "tool_use":
            called = validate(_Block, document, part, (*path, "content", index))
            if (
                not message.tool_calls
            ):  # LangChain writes the calls of Anthropic's models there, too
                yield ExpectedCall(
                    called.name,
                    _arguments(document, (*path, "content", index, "input"), called.input),
                )
    if message.function_call is not None:
        yield _call_of(document, (*path, "function_call"), message.function_call)
    for index, call in enumerate(message.tool_calls or ()):
        place = (*path, "tool_calls", index)
        if call.function is not None:
            yield _call_of(document, (*place, "function"), call.function)
        elif call.name is not None:
            yield ExpectedCall(call.name, _arguments(document, (*place, "args"), call.args))
        else:
            raise ConfigError(
                [document.problem(place, "found neither function nor name, expected one of them")]
            )


def _call_of(document: Document, path: KeyPath, function: _Function) -> ExpectedCall:
    return ExpectedCall(
        function.name, _arguments(document, (*path, "arguments"), function.arguments)
    )


def _arguments(document: Document, path: KeyPath, value: Json) -> dict[str, Json] | None:
    """An object, or text that holds one; models that call without arguments often write no text at
    all.
    """
    if isinstance(value, str):
        value = embedded.read(document, path, value) if value.strip() else {}
    if value is None or isinstance(value, dict):
        return value
    raise ConfigError([document.problem(path, f"found {show_value(value)}, expected an object")])
