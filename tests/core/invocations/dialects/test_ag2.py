"""Special cases of AG2 under OpenInference, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "openinference.instrumentation.ag2"


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def chat() -> Span:
    attributes = {
        "openinference.span.kind": "AGENT",
        "agent.name": "user",
        "ag2.recipient.name": "desk",
        "input.value": json.dumps({"message": "Where is A-1?", "sender": "user"}),
        "output.value": "At home.",
    }
    return span("chat", "user.initiate_chat", attributes, end=20, scope=SCOPE)


def reply(id: str, agent: str, start: float) -> Span:
    attributes = {"openinference.span.kind": "AGENT", "agent.name": agent}
    name = f"{agent}.generate_reply"
    return span(id, name, attributes, parent="chat", start=start, end=start + 2, scope=SCOPE)


def tool(output: Any, parent: str) -> Span:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "find",
        "tool.parameters": '{"id": "str"}',
        "tool_call.function.arguments": '{"id": "A-1"}',
        "input.value": json.dumps({"name": "find", "arguments": '{"id": "A-1"}'}),
        "output.value": json.dumps(output),
    }
    return span("t", "find", attributes, parent=parent, start=4.5, end=5, scope=SCOPE)


def test_the_agent_of_a_chat_is_the_one_that_is_asked() -> None:
    [found] = of(chat(), reply("r1", "desk", 1), reply("r2", "user", 4), reply("r3", "desk", 7))
    assert (found.agent, found.user_input, found.final_response) == (
        "desk",
        "Where is A-1?",
        "At home.",
    )
    assert [sub.agent for sub in found.sub_agents] == ["user"]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([True, {"role": "function", "content": "{'at': 'home'}"}], ({"at": "home"}, None)),
        ([False, {"role": "function", "content": "Error: no"}], ("Error: no", "Error: no")),
        ([True, "home"], ([True, "home"], None)),
    ],
)
def test_a_tool_has_the_arguments_and_the_result_without_what_ag2_adds(
    output: Any, expected: tuple[Any, str | None]
) -> None:
    [found] = of(chat(), reply("r1", "desk", 1), reply("r2", "user", 4), tool(output, "r2"))
    [call] = found.tool_calls
    assert (call.arguments, (call.result, call.error)) == ({"id": "A-1"}, expected)
