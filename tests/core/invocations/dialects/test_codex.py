"""Special cases of Codex, with handwritten spans."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

CALL = {"tool_name": "exec_command", "call_id": "c1"}


def step(id: str, name: str, parent: str | None, start: float, **more: Any) -> Span:
    return span(id, name, parent=parent, start=start, end=9 - start, scope="codex_exec", **more)


def turn(*events: tuple[str, dict[str, Any]]) -> Invocation:
    tokens = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
    spans = (
        step("turn", "session_task.turn", None, 0, attributes={"thread.id": "s-1"}),
        step("m", "handle_responses", "turn", 1, attributes=tokens),
        step("part", "handle_responses", "turn", 1, attributes={"tool_name": "exec_command"}),
        step("t", "exec_command", "part", 2, attributes={**CALL, "codex.tool.phase": "dispatch"}),
        step("d", "dispatch_tool_call_with_state", "t", 3, events=events),
        step("s", "guardian_scoring_observation", "d", 4, attributes=CALL),
    )
    [found] = read(Trace("", trace_id("trace"), spans))
    return found


def test_of_many_spans_about_a_tool_one_is_the_call() -> None:
    found = turn()
    assert [(call.id, call.name) for call in found.tool_calls] == [("c1", "exec_command")]
    assert (found.input_tokens, found.output_tokens) == (100, 20)
    assert (found.conversation_id, sorted(found.flags)) == ("s-1", ["content_missing"])


@pytest.mark.parametrize(
    ("success", "error"), [("true", None), ("false", "error"), (False, "error")]
)
def test_an_event_tells_whether_a_tool_failed(success: Any, error: str | None) -> None:
    result = {"event.name": "codex.tool_result", "success": success}
    assert [call.error for call in turn(("event", result)).tool_calls] == [error]
