"""Gemini CLI's own operation names, with handwritten spans."""

from __future__ import annotations

import json

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from support.dialects import read


def one(
    id: str, operation: str, start: float, end: float, *, parent: str | None = None, **more: str
) -> Span:
    attributes = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "gemini-cli"}
    attributes |= {f"gen_ai.{key.replace('_', '.', 1)}": value for key, value in more.items()}
    return span(id, operation, attributes, parent=parent, start=start, end=end, scope="gemini-cli")


def test_a_prompt_of_the_user_is_an_invocation() -> None:
    output = json.dumps([{"content": {"role": "model", "parts": [{"text": "answer"}]}}])
    spans = (
        one("p", "user_prompt", 0, 9),
        one("s", "schedule_tool_calls", 1, 5, parent="p"),
        one("t", "tool_call", 2, 3, parent="s", tool_name="look", tool_call_id="c1"),
        one("sub", "agent_call", 3, 4, parent="s", agent_name="helper"),
        one("m", "llm_call", 6, 7, parent="p", output_messages=output),
    )
    [read_one] = read(Trace("", trace_id("trace"), spans))
    assert (read_one.span_id, read_one.agent, read_one.final_response) == (
        span_id("p"),
        "gemini-cli",
        "answer",
    )
    assert [(call.name, call.id) for call in read_one.tool_calls] == [("look", "c1")]
    assert [sub.agent for sub in read_one.sub_agents] == ["helper"]
    assert len(read_one.model_calls) == 1
