"""Special cases of fast-agent, with handwritten spans."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from support.dialects import INSTALLED, read


def traced(id: str, name: str, start: float, end: float, parent: str | None = "app") -> Span:
    scope = "fast_agent.agents.llm_decorator"
    return span(id, name, {}, parent=parent, start=start, end=end, scope=scope)


def test_the_turns_of_a_program_are_its_runs() -> None:
    turns = read(
        Trace(
            "",
            trace_id("trace"),
            (
                traced("app", "shop", 0, 9, parent=None),
                traced("a", "Agent: 'clerk' generate", 1, 2),
                traced("b", "Chain: 'desk' generate", 3, 8),
                traced("c", "Agent: 'clerk[1]' structured", 4, 5, parent="b"),
            ),
        )
    )
    assert [(turn.span_id, turn.agent) for turn in turns] == [
        (span_id("a"), "clerk"),
        (span_id("b"), "desk"),
    ]
    assert [sub.agent for sub in turns[1].sub_agents] == ["clerk"]


def test_a_tool_of_an_mcp_server_has_the_name_that_the_server_knows() -> None:
    tool = span(
        "t",
        "MCP Tool: orders__look",
        {"tool_name": "look", "server_name": "orders"},
        parent="a",
        start=2,
        end=3,
        scope="fast_agent.mcp.mcp_aggregator",
    )
    agent = traced("a", "Agent: 'clerk' generate", 1, 4, parent=None)
    [turn] = read(Trace("", trace_id("trace"), (agent, tool)))
    assert [call.name for call in turn.tool_calls] == ["look"]


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("Agent: 'clerk' generate", True),
        ("Agent: 'clerk' apply_prompt_template", False),
        ("shop", False),
    ],
)
def test_agents_may_be_entry_spans(name: str, may: bool) -> None:
    assert INSTALLED.may_be_entry(traced("a", name, 0, 1)) is may
