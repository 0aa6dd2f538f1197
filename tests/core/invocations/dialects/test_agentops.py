"""Special cases of AgentOps that the captures do not have."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.agentops import AGENTOPS, kind
from pathgauge.collector.testing import span

KIND = "agentops.span.kind"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({KIND: "session"}, "other"),
        ({KIND: "workflow"}, "workflow"),
        ({KIND: "chain"}, "chain"),
        ({KIND: "guardrail"}, "other"),
        ({KIND: ["tool"]}, "other"),
        ({"tool.name": "look", "tool.call.id": "call_1"}, "other"),
        ({"from_agent": "support"}, "other"),
    ],
)
def test_a_session_is_no_run_and_a_call_that_was_asked_for_is_no_call(
    attributes: dict[str, Any], expected: str
) -> None:
    assert kind(span("a", "turn.session", attributes, scope="agentops")) == expected


@pytest.mark.parametrize(
    ("scope", "attributes", "expected"),
    [
        ("agentops.instrumentation.providers.openai.wrappers.chat", {"tool.name": "look"}, True),
        ("openai", {"gen_ai.request.type": "chat"}, True),
        ("crewai", {KIND: "agent"}, True),
        ("openai-agents", {"instrumentation.name": "agentops"}, True),
        ("openai-agents", {"gen_ai.request.model": "gpt-4.1"}, False),
        ("openai", {"gen_ai.request.model": "gpt-4.1"}, False),
    ],
)
def test_spans_are_recognised_by_scope_or_attribute(
    scope: str, attributes: dict[str, Any], expected: bool
) -> None:
    assert AGENTOPS.matches(span("a", "response", attributes, scope=scope)) is expected
