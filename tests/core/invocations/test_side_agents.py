"""Agents beside the one that answers: guardrails, judges, and those that control was passed to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read


def of(*spans: Span) -> Invocation:
    [read_one] = read(Trace("", trace_id("trace"), spans))
    return read_one


def agent(
    id: str,
    name: str,
    start: float,
    end: float,
    parent: str | None = None,
    *,
    error: str | None = None,
) -> Span:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return span(
        id, f"invoke_agent {name}", attributes, parent=parent, start=start, end=end, error=error
    )


def chat(
    id: str,
    start: float,
    parent: str,
    asked: str,
    answer: dict[str, Any],
    *,
    error: str | None = None,
) -> Span:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.input.messages": json.dumps([{"role": "user", "content": asked}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", **answer}]),
    }
    return span(id, "chat m", attributes, parent=parent, start=start, end=start + 0.5, error=error)


ASKING = {
    "tool_calls": [{"id": "c1", "function": {"name": "transfer_to_billing", "arguments": "{}"}}]
}
HELLO = {"content": "Hello"}
SAFE = {"content": '{"pii": false}'}


@pytest.mark.parametrize("start", [0.5, 1.2, 5])
@pytest.mark.parametrize("error", [None, "guard is down"])
def test_a_guardrail_neither_answers_nor_asks_nor_fails_for_the_agent_that_it_watches(
    start: float, error: str | None
) -> None:
    read_one = of(
        agent("a", "desk", 0, 9),
        chat("m", 1, "a", "Q", HELLO),
        agent("g", "guard", start, start + 1, "a", error=error),
        chat("n", start, "g", "Is this ok? Q", SAFE, error=error),
    )
    assert (read_one.user_input, read_one.final_response, read_one.error) == ("Q", "Hello", False)
    assert [(one.agent, one.via, one.error) for one in read_one.sub_agents] == [
        ("guard", "agent", error)
    ]
    assert read_one.input_tokens == 20


def test_an_agent_to_which_control_was_passed_on_answers() -> None:
    read_one = of(
        agent("a", "desk", 0, 9),
        chat("m", 1, "a", "Q", ASKING),
        agent("b", "billing", 2, 8, "a"),
        chat("n", 3, "b", "Q", {"content": "120"}),
    )
    assert (read_one.final_response, [one.via for one in read_one.sub_agents]) == (
        "120",
        ["handoff"],
    )


def test_inner_agents_answer_for_an_agent_without_model_calls() -> None:
    read_one = of(
        agent("a", "sequence", 0, 9),
        agent("b", "first", 1, 3, "a"),
        chat("m", 1, "b", "Q", HELLO),
        agent("c", "second", 4, 6, "a"),
        chat("n", 5, "c", "Q", {"content": "done"}),
    )
    assert (read_one.user_input, read_one.final_response) == ("Q", "done")


def test_the_answer_of_an_agent_without_model_calls_is_unknown() -> None:
    workflow = span("w", "invoke_workflow w", {"gen_ai.operation.name": "invoke_workflow"}, end=9)
    read_one = of(
        workflow,
        agent("p", "planner", 1, 3, "w"),
        chat("m", 1, "p", "Q", {"content": "I pass you on."}),
        agent("r", "remote", 4, 8, "w"),
    )
    assert (read_one.final_response, sorted(read_one.flags)) == (None, ["content_missing"])
