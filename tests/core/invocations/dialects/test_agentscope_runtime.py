"""Special cases of AgentScope Runtime that the captures do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.agentscope_runtime import (
    AGENTSCOPE_RUNTIME,
    failure,
    kind,
)
from pathgauge.collector.core.invocations.dialects.field_paths import value_at
from pathgauge.collector.testing import span

KIND, SCOPE = "gen_ai.span.kind", "agentscope_runtime"
THROWN = ("exception", {"exception.message": "the window is closed"})


@pytest.mark.parametrize(
    ("name", "stated", "expected"),
    [
        ("agent_step", "AGENT_STEP", "chain"),
        ("support", "AGENT_STEP", "agent"),
        ("search", "SEARCH", "other"),
        ("search", ["TOOL"], "other"),
    ],
)
def test_a_span_is_what_its_kind_says_and_the_runner_is_around_its_agent(
    name: str, stated: Any, expected: str
) -> None:
    assert kind(span("a", name, {KIND: stated}, scope=SCOPE)) == expected


@pytest.mark.parametrize(
    ("name", "output", "events", "expected"),
    [
        ("look", {"error": {"message": "found in a result"}}, (), None),
        ("look", {}, (THROWN,), "the window is closed"),
        ("agent_step", {"error": {"message": "overloaded"}}, (), "overloaded"),
        ("agent_step", {"error": None}, (), None),
        ("agent_step", ["error"], (), None),
    ],
)
def test_a_function_fails_with_an_exception_and_a_runner_in_its_response(
    name: str, output: Any, events: Any, expected: str | None
) -> None:
    attributes = {"output.value": json.dumps(output)}
    assert failure(span("a", name, attributes, scope=SCOPE, events=events)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"question": "Where?", "history": [{"role": "user"}]}, {"question": "Where?"}),
        ({"request": {"input": [{"role": "user"}]}}, [{"role": "user"}]),
        (["Where?"], {}),
    ],
)
def test_an_agent_is_asked_with_texts_and_a_runner_with_messages(given: Any, expected: Any) -> None:
    [path] = AGENTSCOPE_RUNTIME.fields.agent_input
    attributes = {"input.value": json.dumps(given)}
    assert value_at(path, span("a", "support", attributes, scope=SCOPE)) == expected
