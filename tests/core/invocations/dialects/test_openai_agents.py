"""The first instrumentation of the OpenAI Agents SDK, whose messages hold tool calls as Python
`repr`.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.openai_agents import read_messages
from pathgauge.collector.core.invocations.messages.literals import MAX_LITERAL_CHARACTERS
from pathgauge.collector.core.invocations.messages.message import AskedCall


def message(text: str) -> Any:
    return [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]


def call(padding: int = 0) -> str:
    fields = """arguments='{"order": 7}', call_id='c1', name='refund'"""
    return f"ResponseFunctionToolCall({fields}{' ' * padding})"


def test_a_call_in_a_text_is_read_and_one_that_is_too_long_stays_text() -> None:
    short, long = (
        call(MAX_LITERAL_CHARACTERS - len(call())),
        call(MAX_LITERAL_CHARACTERS + 1 - len(call())),
    )
    assert [(one.text, one.calls) for one in read_messages(message(short), "assistant")] == [
        (None, (AskedCall("refund", {"order": 7}, "c1"),))
    ]
    assert [(one.text, one.calls) for one in read_messages(message(long), "assistant")] == [
        (long, ())
    ]
