"""Special cases of LiveKit Agents that the captures do not have."""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.collector.testing import span, trace_id
from support.dialects import INSTALLED, read
from support.repository import CAPTURES

SCOPE = "livekit-agents"
CAPTURE = CAPTURES / "livekit-1.8-native" / "S5"


def test_turns_are_read_before_their_session_ends() -> None:
    files = read_path(CAPTURE)
    arrived = tuple(one for one in files.spans if one.name not in ("agent_session", "test"))
    found = read(Trace("", files.spans[0].trace_id, arrived))
    assert [(one.user_input, one.final_response) for one in found] == [
        ("Hello", "Hello!"),
        ("Where is A-1?", "It is shipped."),
        ("Thanks", "You are welcome."),
    ]
    assert [one.name for one in arrived if INSTALLED.may_be_entry(one)] == ["agent_turn"] * 3


def test_of_an_interrupted_answer_only_what_was_said_counts() -> None:
    written = '[{"role": "assistant", "parts": [{"type": "text", "content": "It left at 9."}]}]'
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "lk.pii.user_input": "Where is it?",
        "lk.pii.response.text": "It left",
        "lk.interrupted": True,
    }
    turn = span("a", "agent_turn", attributes, parent="session", start=0, end=9, scope=SCOPE)
    called = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": written}
    call = span("b", "llm_request", called, parent="a", start=1, end=2, scope=SCOPE)
    [found] = read(Trace("", trace_id("trace"), (turn, call)))
    assert (found.user_input, found.final_response) == ("Where is it?", "It left")


def test_earlier_versions_are_reported_as_an_unknown_framework() -> None:
    stated = {"lk.function_tool.name": "find_order", "lk.function_tool.arguments": "{}"}
    earlier = span("a", "function_tool", stated, scope=SCOPE)
    classified = INSTALLED.classify(earlier)
    assert "livekit" not in [dialect.name for dialect in classified[1]]
    assert INSTALLED.is_unread(earlier, classified)
