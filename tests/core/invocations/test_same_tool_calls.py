"""A framework and the SDK below it both write a call that they carry out: one call or two?"""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

AGENT = span("agent", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, end=20)
STEP = span("step", "step", {}, parent="agent", end=20)


def tool(id: str, parent: str, at: tuple[float, float], scope: str, **more: Any) -> Span:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        **{f"gen_ai.tool.{key}": value for key, value in more.items()},
    }
    start, end = at
    return span(
        id, "execute_tool look", attributes, parent=parent, start=start, end=end, scope=scope
    )


def of(*spans: Span) -> Invocation:
    [invocation] = read(Trace("", trace_id("trace"), (AGENT, STEP, *spans)))
    return invocation


@pytest.mark.parametrize(
    ("second", "calls"),
    [
        (tool("b", "agent", (2, 3), "framework"), 1),
        (tool("b", "agent", (2, 4.5), "framework"), 1),
        (tool("b", "agent", (5, 6), "framework"), 2),
        (tool("b", "agent", (2, 3), "sdk"), 2),
        (tool("b", "agent", (2, 3), "framework", name="find"), 2),
        (tool("b", "agent", (2, 3), "framework", **{"call.id": "c2"}), 2),
        (tool("b", "agent", (2, 3), "framework", **{"call.id": ""}), 2),
    ],
    ids=["inside", "overlapping", "later", "same scope", "other tool", "other id", "no id"],
)
def test_spans_of_two_instrumentations_are_one_call_if_the_id_is_the_same_and_they_overlap(
    second: Span, calls: int
) -> None:
    assert len(of(tool("a", "step", (1, 4), "sdk"), second).tool_calls) == calls


def test_each_of_the_two_spans_tells_what_the_other_one_lacks() -> None:
    [call] = of(
        tool("a", "step", (1, 4), "sdk", **{"call.arguments": '{"id": 1}'}),
        tool("b", "agent", (2, 3), "framework", **{"call.result": "found"}),
    ).tool_calls
    assert (call.arguments, call.result) == ({"id": 1}, "found")


def test_an_agent_below_one_of_the_spans_was_called() -> None:
    inner = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "billing"}
    one = of(
        tool("a", "step", (1, 5), "sdk"),
        tool("b", "agent", (2, 4), "framework"),
        span("c", "invoke_agent billing", inner, parent="b", start=3, end=3.5),
    )
    assert [call.kind for call in one.tool_calls] == ["agent"]
    assert [(run.agent, run.via) for run in one.sub_agents] == [("billing", "agent")]


def mcp(id: str, at: tuple[float, float], **more: Any) -> Span:
    client = tool(id, "agent", at, "mcp", **{"call.id": "", **more})
    attributes = {**client.attributes, "mcp.method.name": "tools/call"}
    start, end = at
    name = f"tools/call {attributes['gen_ai.tool.name']}"
    return span(id, name, attributes, parent="agent", start=start, end=end, scope="mcp")


ASKED = {"call.arguments": '{"id": 1}'}


@pytest.mark.parametrize(
    ("client", "calls"),
    [
        (mcp("b", (2, 3)), 1),
        (mcp("b", (2, 3), **ASKED), 1),
        (mcp("b", (2, 3), **{"call.arguments": '{"id": 2}'}), 2),
        (mcp("b", (2, 5)), 2),
        (mcp("b", (5, 6)), 2),
        (mcp("b", (2, 3), name="find"), 2),
        (mcp("b", (2, 3), **{"call.id": "c2"}), 2),
    ],
    ids=["inside", "equal", "other arguments", "overlapping", "later", "other tool", "other id"],
)
@pytest.mark.parametrize("known_as", ["look", "orders_look", "mcp__orders__look"])
def test_the_span_of_an_mcp_client_beside_that_of_a_call_is_part_of_it(
    client: Span, calls: int, known_as: str
) -> None:
    call = tool("a", "agent", (1, 4), "framework", name=known_as, **ASKED)
    names = [one.name for one in of(call, client).tool_calls]
    assert names[0] == known_as
    assert len(names) == calls


def test_each_parallel_call_has_one_span_of_an_mcp_client() -> None:
    found = of(
        tool("a", "agent", (1, 5), "framework", **{**ASKED, "call.id": "c1"}),
        tool("b", "agent", (1, 5), "framework", **{**ASKED, "call.id": "c2"}),
        *(mcp(f"client {number}", (2, 3)) for number in range(3)),
    )
    assert [call.id for call in found.tool_calls] == ["c1", "c2", None]


def test_a_tool_whose_name_ends_with_that_of_another_one_is_another_tool() -> None:
    call = tool("a", "agent", (1, 4), "framework", name="overlook")
    assert len(of(call, mcp("b", (2, 3))).tool_calls) == 2
