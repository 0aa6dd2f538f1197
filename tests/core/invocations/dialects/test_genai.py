"""Special cases of the GenAI conventions, with handwritten spans."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import span, trace_id
from support.dialects import read


@pytest.mark.parametrize(
    ("beside", "name"),
    [
        ("mcp__orders__search", "mcp__orders__search"),
        ("mcp__orders__find", "search"),
        ("orders_search", "search"),
        (["mcp__orders__search"], "search"),
        (None, "search"),
    ],
)
def test_the_tool_of_an_mcp_server_has_the_name_that_models_know(beside: object, name: str) -> None:
    named: dict[str, object] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
    }
    if beside is not None:
        named["tool_name"] = beside
    agent = span("a", "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent"})
    tool = span("t", "execute_tool", named, parent="a", start=1, end=2)
    [found] = read(Trace("", trace_id("trace"), (agent, tool)))
    assert [call.name for call in found.tool_calls] == [name]


def test_the_scenario_may_be_in_an_attribute_of_metadata() -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "metadata.pathgauge.scenario.id": "sc1"}
    [read_one] = read(Trace("", trace_id("t"), (span("a", "a", attributes, trace="t"),)))
    assert read_one.scenario_id == "sc1"
