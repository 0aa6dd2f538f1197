"""Names of agents and handoffs in Microsoft Agent 365, with handwritten spans."""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "microsoft_agents_a365.observability.core.config"
BAGGAGE = {"gen_ai.agent.name": "front"}


def step(id: str, name: str, operation: str | None = None, parent: str = "w", **more: Any) -> Span:
    stated = {"gen_ai.operation.name": operation} if operation else {}
    times = {"start": more.pop("start", 1), "end": more.pop("end", 9)}
    attributes = {**BAGGAGE, **stated, **more}
    return span(id, name, attributes, parent=parent or None, scope=SCOPE, **times)


def of(*spans: Span) -> Invocation:
    [one] = read(Trace("", trace_id("trace"), spans))
    return one


def test_an_agent_has_the_name_in_the_title_of_its_span_and_not_that_of_the_baggage() -> None:
    workflow = step("w", "Agent workflow", "chain", "", start=0, end=10)
    found = of(workflow, step("a", "invoke_agent desk", "invoke_agent"))
    assert found.agent == "desk"


def test_a_graph_without_a_name_in_the_baggage_has_that_of_its_run() -> None:
    graph = span("w", "desk", {}, end=10, scope=SCOPE)
    chat = {"gen_ai.operation.name": "chat"}
    found = of(graph, span("m", "chat ChatOpenAI", chat, parent="w", start=2, end=3, scope=SCOPE))
    assert found.agent == "desk"


def test_a_tool_without_a_name_that_hands_over_is_a_handoff() -> None:
    handed = step("h", "handoff to desk", "execute_tool", "a")
    [call] = of(step("a", "invoke_agent front", "invoke_agent", ""), handed).tool_calls
    assert call.kind == "handoff"
