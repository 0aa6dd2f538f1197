"""Messages that frameworks wrote as the `repr` or `str` of their objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.invocations.messages.literals import MAX_LITERAL_CHARACTERS
from pathgauge.collector.core.invocations.messages.message import AskedCall, Message, Response
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.reprs import is_written_object, shows_object

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


class ChatRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass
class TextContent:
    text: str


@dataclass
class ToolCall:
    tool_name: str
    arguments: dict[str, Any]
    id: str | None = None
    extra: dict[str, Any] | None = None


@dataclass
class ToolCallResult:
    result: str
    origin: ToolCall
    error: bool


@dataclass
class ChatMessage:
    """As Haystack has it."""

    _role: ChatRole
    _content: list[Any]
    _name: str | None = None
    _meta: dict[str, Any] = field(default_factory=dict)


def team_message(source: str, content: Any, kind: str = "TextMessage") -> str:
    """As pydantic writes a message of AutoGen."""
    at = "datetime.datetime(2026, 11, 24, 16, 45, tzinfo=datetime.timezone.utc)"
    start = f"id='e59a' source={source!r} models_usage=RequestUsage(prompt_tokens=1) metadata={{}}"
    return f"{start} created_at={at} content={content!r} type={kind!r}"


def read_one(text: str) -> Message:
    [message] = parse_messages([text], "user")
    return message


@given(st.sampled_from(["user", "assistant"]), TEXTS)
def test_a_text_of_haystack_is_the_text_that_was_written(role: str, text: str) -> None:
    written = ChatMessage(ChatRole(role), [TextContent(text)], _meta={"usage": {"n": 1}})
    assert read_one(repr(written)) == Message(role, text)


@given(TEXTS.filter(bool), st.dictionaries(TEXTS, JSON, max_size=3))
def test_a_call_of_haystack_is_the_call_that_was_written(
    id: str, arguments: dict[str, Any]
) -> None:
    call = ToolCall("look", arguments, f"call_{id}")
    asking = ChatMessage(ChatRole.ASSISTANT, [call])
    answering = ChatMessage(ChatRole.TOOL, [ToolCallResult("gone", call, error=True)])
    asked = AskedCall("look", arguments, f"call_{id}")
    assert read_one(repr(asking)) == Message("assistant", calls=(asked,))
    answered = Response("gone", "look", f"call_{id}", "gone")
    assert read_one(repr(answering)) == Message("tool", responses=(answered,))


@given(TEXTS)
def test_a_text_of_autogen_is_the_text_that_was_written(text: str) -> None:
    assert read_one(team_message("user", text)) == Message("user", text)
    assert read_one(team_message("clerk", text)) == Message("assistant", text)


def test_an_event_of_autogen_is_no_text() -> None:
    event = team_message("clerk", ["call"], "ToolCallRequestEvent")
    assert [one.is_recorded for one in parse_messages([event], "user")] == [False]


UNREADABLE = (
    "ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='cut",
    "ChatMessage(_role=<ChatRole.USER: 'user'>, _meta={'a': 1 + 2})",
    "source='user' models_usage=None content='cut",
    repr(ChatMessage(ChatRole.USER, [TextContent("a" * MAX_LITERAL_CHARACTERS)])),
)


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_object_that_cannot_be_read_is_no_message(text: str) -> None:
    assert parse_messages([text], "user") == ()


@pytest.mark.parametrize(
    "text",
    ["User(name='a')", "ChatMessage(", "source='user'", "id='a' or 1", "a='1' b='2'", "<A.B: 1>"],
)
def test_code_that_somebody_wrote_is_text(text: str) -> None:
    assert not is_written_object(text)
    assert read_one(text) == Message("user", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AIMessage(content='hi')", True),
        ("{'messages': [AIMessage(content='hi')]}", True),
        ("[Command(update={})]", True),
        ("Call me (tomorrow).", False),
        ("I called f(x=1).", False),
        ("[1, 2, 3]", False),
    ],
)
def test_a_text_that_begins_with_an_object_shows_one(text: str, expected: bool) -> None:
    assert shows_object(text) is expected
