"""Special cases of OpenLIT that the captures do not have."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.openlit import (
    kind,
    read_messages,
)
from pathgauge.collector.core.invocations.messages.message import AskedCall
from pathgauge.collector.testing import span

LANGGRAPH, CREWAI = "openlit.instrumentation.langgraph", "openlit.instrumentation.crewai"
AGENT = {"gen_ai.operation.name": "invoke_agent"}


@pytest.mark.parametrize(
    ("scope", "name", "attributes", "expected"),
    [
        (LANGGRAPH, "invoke_agent model", {**AGENT, "gen_ai.agent.name": "model"}, "other"),
        (CREWAI, "invoke_agent clerk", {**AGENT, "gen_ai.agent.name": "clerk"}, None),
        (CREWAI, "invoke_agent generate_plan", AGENT, "other"),
        (CREWAI, "invoke_workflow AgentExecutor", {}, "other"),
        (CREWAI, "invoke_workflow crew", {"gen_ai.operation.name": "invoke_workflow"}, None),
    ],
)
def test_nodes_and_methods_are_steps(
    scope: str, name: str, attributes: dict[str, Any], expected: str | None
) -> None:
    assert kind(span("a", name, attributes, scope=scope)) == expected


@pytest.mark.parametrize(("written", "id"), [("fc_1", None), ("call_1", "call_1")])
def test_the_id_of_an_item_is_not_that_of_a_call(written: str, id: str | None) -> None:
    part = {"type": "tool_call", "id": written, "name": "look", "arguments": {}}
    [message] = read_messages([{"role": "assistant", "parts": [part]}], "assistant")
    assert message.calls == (AskedCall("look", {}, id),)
