"""Every shape of a model message, read into the same `Message`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.dialects.messages import AskedCall, Message, Response, answer, last_user_text, parse_messages

ASKED = Message("assistant", calls=(AskedCall("lookup", {"id": 7}, "c1"),))
SHOWN = Message("tool", responses=(Response({"ok": True}, None, "c1"),))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"role": "user", "parts": [{"type": "text", "content": "hi"}]}, Message("user", "hi")),
        ({"role": "user", "parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]}, Message("user", "a\nb")),
        ({"role": "user", "content": "hi"}, Message("user", "hi")),
        ({"role": "user", "content": '{"order": 7}'}, Message("user", '{"order": 7}')),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, Message("user", "hi")),
        ({"role": "user", "content": '[{"text": "hi"}]'}, Message("user", "hi")),
        ({"role": "model", "parts": [{"text": "hi"}]}, Message("assistant", "hi")),
        ("hi", Message("assistant", "hi")),
        ('{"role": "user", "content": "hi"}', Message("user", "hi")),
        ({"content": "<elided>"}, Message("assistant")),
        (
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"id": 7}}]},
            ASKED,
        ),
        (
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": '{"id": 7}'}]},
            ASKED,
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": 7}'}}],
            },
            ASKED,
        ),
        ({"role": "model", "parts": [{"function_call": {"id": "c1", "name": "lookup", "args": {"id": 7}}}]}, ASKED),
        ({"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "lookup", "args": {"id": 7}}}]}, ASKED),
        (
            {"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"},
            Message("assistant", "yes", finish_reason="stop"),
        ),
        ({"content": {"role": "model", "parts": [{"text": "yes", "function_call": None}]}}, Message("assistant", "yes")),
        ({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"ok": True}}]}, SHOWN),
        ({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": '{"ok": true}'}]}, SHOWN),
        ({"role": "tool", "content": '{"ok": true}', "tool_call_id": "c1"}, SHOWN),
        ({"role": "tool", "content": '{"ok": true}', "id": "c1"}, SHOWN),
        (
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "yes"}]},
            Message("assistant", "yes"),
        ),
        ({"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "yes"}]}, Message("assistant", "yes")),
    ],
)
def test_a_message_of_any_shape(value: Any, message: Message) -> None:
    assert parse_messages([value], "assistant") == (message,)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "parts", "content", "type", "text", "tool_calls", "function", "name", "message", "id", "function_call"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_read_without_an_error(value: Any) -> None:
    parse_messages(value, "user")


def test_the_last_text_that_a_user_wrote_is_not_a_tool_result() -> None:
    result = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "result": "x"}]}
    messages = parse_messages([{"role": "user", "content": "first"}, {"role": "user", "content": "last"}, result], "user")
    assert last_user_text(messages) == "last"


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([{"content": "yes", "finish_reason": "stop"}], "yes"),
        ([{"content": "one ", "finish_reason": ""}, {"content": "answer", "finish_reason": "stop"}], "one answer"),
        ([{"content": "first choice", "finish_reason": "stop"}, {"content": "second", "finish_reason": "stop"}], "first choice"),
        ([{"content": "let me look", "tool_calls": [{"function": {"name": "lookup"}}]}], None),
        ([{"content": ""}], None),
        ([], None),
    ],
)
def test_the_answer_of_a_model_call(messages: list[dict[str, Any]], text: str | None) -> None:
    assert answer(parse_messages(messages, "assistant")) == text
