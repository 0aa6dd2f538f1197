"""A message that says nothing is not a message whose content is not recorded."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.invocations.messages.message import Message, answer, most_telling
from pathgauge.collector.core.invocations.messages.parse import parse_messages

THOUGHT = {"type": "thinking", "content": "hm"}

EMPTY: list[Any] = [
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": []},
    {"role": "assistant", "contents": []},
    {"role": "assistant", "parts": []},
    {"role": "assistant", "parts": [], "finish_reason": "stop"},
    {"role": "assistant", "parts": [{"type": "text", "content": ""}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "", "annotations": []}]},
    {"role": "model", "parts": [{"text": ""}]},
    {"type": "ai", "content": "", "tool_calls": []},
    {"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "", "type": "ai"}},
    {"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"},
    {"raw": "", "pydantic": None},
    {"role": "assistant", "parts": [THOUGHT]},
    {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]},
    {"role": "assistant", "content": [{"type": "reasoning", "summary": []}]},
    {"role": "model", "parts": [{"text": "hm", "thought": True}]},
    {"role": "assistant", "content": [{"reasoningContent": {"text": "hm"}}]},
    {"type": "reasoning", "summary": []},
    {"output": [{"type": "reasoning", "summary": []}], "object": "response"},
    {"role": "assistant", "content": "", "finish_reason": "length"},
]

NOT_RECORDED: list[Any] = [
    {"role": "assistant"},
    {"role": "assistant", "content": None},
    {"role": "assistant", "finish_reason": "stop"},
    {"message": {"role": "assistant"}, "finish_reason": "stop"},
]

HIDDEN: list[Any] = [
    {"role": "assistant", "content": "__REDACTED__"},
    {"role": "assistant", "content": "[REDACTED]"},
    {"role": "assistant", "content": "<REDACTED>"},
    {"role": "assistant", "parts": [{"type": "text"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": None}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "[REDACTED]"}]},
    {"role": "assistant", "parts": ["[REDACTED]"]},
    {"role": "model", "parts": [{"text": "__REDACTED__"}]},
    {"role": "assistant", "parts": [THOUGHT, {"type": "text"}]},
    {"role": "assistant", "content": [{"type": "image_url", "image_url": "x"}]},
    {"raw": "<elided>", "pydantic": None},
]


@pytest.mark.parametrize("value", EMPTY, ids=str)
def test_a_message_without_content_is_an_empty_answer(value: Any) -> None:
    assert answer(parse_messages(value, "assistant")) == ""


@pytest.mark.parametrize("value", NOT_RECORDED, ids=str)
def test_a_message_whose_content_is_absent_is_not_an_answer(value: Any) -> None:
    [message] = parse_messages(value, "assistant")
    assert (message.text, message.hidden, message.is_recorded) == (None, False, False)


@pytest.mark.parametrize("value", HIDDEN[:-1], ids=str)
def test_a_message_whose_content_was_removed_is_known_to_have_content(value: Any) -> None:
    [message] = parse_messages(value, "assistant")
    assert (message.text, message.hidden, message.is_recorded) == (None, True, False)


@pytest.mark.parametrize("value", [*NOT_RECORDED, *HIDDEN], ids=str)
def test_content_that_is_not_recorded_is_no_empty_answer(value: Any) -> None:
    assert answer(parse_messages(value, "assistant")) is None


def test_an_empty_message_that_asks_for_a_tool_is_no_answer() -> None:
    asked = {"content": "", "tool_calls": [{"function": {"name": "lookup"}}]}
    assert answer(parse_messages(asked, "assistant")) is None


NOTHING, EMPTY_TEXT = Message("assistant"), Message("assistant", "")
TEXT = Message("assistant", "yes")


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ([], ()),
        ([()], ()),
        ([(), (NOTHING,)], (NOTHING,)),
        ([(NOTHING,), ()], (NOTHING,)),
        ([(NOTHING,), (TEXT,)], (TEXT,)),
        ([(NOTHING,), (EMPTY_TEXT,), (TEXT,)], (EMPTY_TEXT,)),
        ([(EMPTY_TEXT,), (TEXT,)], (EMPTY_TEXT,)),
        ([(NOTHING, TEXT), (EMPTY_TEXT,)], (NOTHING, TEXT)),
    ],
)
def test_the_first_source_with_recorded_content_counts(
    sources: list[tuple[Message, ...]], found: tuple[Message, ...]
) -> None:
    assert most_telling(sources) == found
