"""The first instrumentation of the OpenAI Agents SDK, whose messages hold tool calls as Python
writes them.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.openai_agents import read_messages
from pathgauge.collector.core.invocations.messages.literals import LONGEST
from pathgauge.collector.core.invocations.messages.message import AskedCall


def message(text: str) -> Any:
    return [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]


def call(padding: int = 0) -> str:
    return f"""ResponseFunctionToolCall(arguments='{{"order": 7}}', call_id='c1', name='refund'{" " * padding})"""


def test_a_call_in_a_text_is_read_and_one_that_is_too_long_stays_text() -> None:
    short, long = call(LONGEST - len(call())), call(LONGEST + 1 - len(call()))
    assert [(one.text, one.calls) for one in read_messages(message(short), "assistant")] == [
        (None, (AskedCall("refund", {"order": 7}, "c1"),))
    ]
    assert [(one.text, one.calls) for one in read_messages(message(long), "assistant")] == [
        (long, ())
    ]
