"""Special cases of BeeAI that the captures do not have, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.beeai import unwrap_arguments
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "openinference.instrumentation.beeai"
_CALL = "llm.output_messages.0.message.tool_calls.0.tool_call."


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def timed(
    id: str,
    name: str,
    kind: str,
    start: float,
    parent: str | None = "run",
    *,
    error: str | None = None,
    **more: Any,
) -> Span:
    """A span of the instrumentation. In names of attributes, `__` stands for a dot."""
    attributes = {key.replace("__", "."): value for key, value in more.items()}
    attributes["openinference.span.kind"] = kind
    end = start + (20 if parent is None else 1)
    return span(id, name, attributes, parent=parent, start=start, end=end, scope=SCOPE, error=error)


def run(**more: Any) -> Span:
    given = json.dumps({"input": "Where is A-1?"})
    return timed("run", "desk", "AGENT", 0, None, agent__name="desk", input__value=given, **more)


def tool(id: str, start: float, given: Any, **more: Any) -> Span:
    return timed(
        id,
        "look",
        "TOOL",
        start,
        tool__name="look",
        input__value=json.dumps({"input": given, "options": None}),
        output__value="found",
        **more,
    )


def asks(arguments: str) -> Span:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        _CALL + "id": "c1",
        _CALL + "function.name": "look",
        _CALL + "function.arguments": arguments,
    }
    return span("m", "ChatModel", attributes, parent="run", start=1, end=2, scope=SCOPE)


def test_arguments_of_several_calls_are_read_from_the_tools() -> None:
    joined = asks('{"id": "A-1"}{"id": "A-2"}')
    [one] = of(run(), joined, tool("t", 3, {"id": "A-1"}), tool("u", 4, {"id": "A-2"}))
    assert [(call.id, call.arguments, call.group) for call in one.tool_calls] == [
        ("c1", {"id": "A-1"}, 0),
        (None, {"id": "A-2"}, 0),
    ]
    [lost] = of(run(), joined)
    assert [call.arguments for call in lost.tool_calls] == [None]


@pytest.mark.parametrize("kind", ["TOOL", "LLM", "AGENT"])
def test_the_event_of_an_error_is_no_call(kind: str) -> None:
    event = timed("e", "error", kind, 3.1, "t", error="Tool Error")
    failed = tool("t", 3, {"id": "A-1"}, error="Tool Error")
    [one] = of(run(), asks('{"id": "A-1"}'), failed, event)
    assert [(call.name, call.error) for call in one.tool_calls] == [("look", "Tool Error")]
    assert (len(one.model_calls), one.sub_agents) == (1, ())


def test_a_tool_with_the_name_error_is_one() -> None:
    named = timed("t", "error", "TOOL", 3, tool__name="error", input__value="{}")
    [one] = of(run(), named)
    assert [call.name for call in one.tool_calls] == ["error"]


def test_the_final_answer_is_an_event_and_no_agent() -> None:
    event = timed("e", "final_answer", "AGENT", 3, input__value='{"output": "Home."}')
    [one] = of(run(output__value="Home."), asks("{}"), event)
    assert (one.sub_agents, one.final_response) == ((), "Home.")


def test_the_text_of_an_exception_is_no_answer() -> None:
    [one] = of(run(output__value="AgentError(x): no", error="no"), asks('{"id": "A-1"}'))
    assert (one.error, one.final_response) == (True, None)


@pytest.mark.parametrize(
    ("recorded", "arguments"),
    [
        ({"input": {"id": 1}, "options": None}, {"id": 1}),
        ({"input": "a", "options": None, "more": 1}, {"input": "a", "options": None, "more": 1}),
        ("text", "text"),
    ],
)
def test_only_the_wrapping_is_removed(recorded: Any, arguments: Any) -> None:
    assert unwrap_arguments(recorded) == arguments
