"""Special cases of any-agent that the captures do not have."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.any_agent import read_messages
from pathgauge.collector.core.invocations.messages.message import AskedCall, Message

CALL = {"tool.name": "look", "tool.args": '{"id": 1}'}
ASKED = AskedCall("look", {"id": 1})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ([CALL], [Message("assistant", calls=(ASKED,))]),
        ([CALL | {"tool.args": {"id": 1}}], [Message("assistant", calls=(ASKED,))]),
        ([CALL | {"tool.args": None}], [Message("assistant", calls=(AskedCall("look", None),))]),
        ("It is shipped.", [Message("assistant", "It is shipped.")]),
        ([CALL | {"tool.name": None}], [Message("assistant", calls=(AskedCall("", {"id": 1}),))]),
    ],
)
def test_a_reply_is_its_text_or_its_calls(written: Any, read: list[Message]) -> None:
    assert list(read_messages(written, "assistant")) == read


def test_a_list_with_anything_but_calls_is_read_as_messages() -> None:
    [message] = read_messages([{"role": "user", "content": "Where?"}], "user")
    assert message.text == "Where?"
