"""The `tracestate` member `pathgauge`, in any form that senders may write."""

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import span, trace_id
from support.dialects import read


@pytest.mark.parametrize(
    ("states", "scenario_id", "turn", "conflict"),
    [
        (["pathgauge=c:refund"], "refund", None, False),
        (["other=1, pathgauge=c:refund;r:7 ,more=2"], "refund", None, False),
        (["pathgauge=r:7;t:3;c:refund"], "refund", 3, False),
        (["pathgauge=c:50%20%25%2C%3B%3D%C3%A9;t:0"], "50 %,;=é", 0, False),
        (["pathgauge=c:50%;t:0"], "50%", 0, False),
        (["pathgauge=c:a:b+c"], "a:b+c", None, False),
        (["pathgauge=c:refund;t:-1"], "refund", None, False),
        (["pathgauge=c:refund;t:x"], "refund", None, False),
        (["pathgauge=c:refund;t"], "refund", None, False),
        (["pathgauge=c:refund;t:1;t:2"], "refund", None, False),
        (["pathgauge=c:refund;t:1", "pathgauge=c:refund;t:1;r:7"], "refund", 1, False),
        (["pathgauge=c:refund;t:1", "pathgauge=c:refund;t:2"], "refund", None, False),
        (["pathgauge=c:refund;t:1", "pathgauge=c:pay;t:1"], None, None, True),
        (["pathgauge=t:1"], None, None, False),
        (["pathgauge=c:;t:1"], None, None, False),
        (["pathgauge=c:N%2FA;t:1"], None, None, False),
        (["pathgauge=c"], None, None, False),
        (["pathgauges=c:refund", "a=pathgauge=c:refund"], None, None, False),
    ],
)
def test_scenario_and_turn_in_the_tracestate(
    states: list[str], scenario_id: str | None, turn: int | None, conflict: bool
) -> None:
    spans = [span("agent", "invoke_agent a", end=9, trace_state=states[0])]
    spans += [
        span(state, "chat", parent="agent", start=1, end=2, trace_state=state)
        for state in states[1:]
    ]
    [invocation] = read(Trace("", trace_id("trace"), tuple(spans)))
    assert (invocation.scenario_id, invocation.turn, "scenario_conflict" in invocation.flags) == (
        scenario_id,
        turn,
        conflict,
    )


@pytest.mark.parametrize(
    ("states", "run_id"),
    [
        (["pathgauge=c:refund;t:1;r:2026-11-21"], "2026-11-21"),
        (["pathgauge=r:run%207;c:refund"], "run 7"),
        (["pathgauge=c:refund", "pathgauge=c:refund;r:7"], "7"),
        (["pathgauge=c:refund;r:7", "pathgauge=c:refund;t:1;r:7"], "7"),
        (["pathgauge=c:refund;r:7", "pathgauge=c:refund;r:8"], None),
        (["pathgauge=c:refund;r:7", "pathgauge=c:pay;r:7"], None),
        (["pathgauge=c:refund;r:"], None),
        (["pathgauge=c:refund;r:N%2FA"], None),
        (["pathgauge=r:7"], None),
        (["other=r:7;c:refund"], None),
    ],
)
def test_test_run_in_the_tracestate(states: list[str], run_id: str | None) -> None:
    spans = [span("agent", "invoke_agent a", end=9, trace_state=states[0])]
    spans += [
        span(state, "chat", parent="agent", start=1, end=2, trace_state=state)
        for state in states[1:]
    ]
    [invocation] = read(Trace("", trace_id("trace"), tuple(spans)))
    assert invocation.run_id == run_id


@pytest.mark.parametrize(
    ("attributes", "resource", "run_id"),
    [
        ({"test.suite.run.id": "7"}, {}, "7"),
        ({"test.suite.run.id": 7}, {}, "7"),
        ({"test.suite.run.id": '"7"'}, {}, "7"),
        ({"pathgauge.run.id": "8"}, {}, "8"),
        ({"test.suite.run.id": "7", "pathgauge.run.id": "8"}, {"test.suite.run.id": "9"}, "7"),
        ({}, {"test.suite.run.id": "9"}, "9"),
        ({"test.suite.run.id": ""}, {}, "from the tracestate"),
        ({"test.suite.run.id": ["7"]}, {}, "from the tracestate"),
    ],
)
def test_the_test_run_of_an_attribute_or_the_resource_precedes_the_tracestate(
    attributes: dict[str, Any], resource: dict[str, str], run_id: str
) -> None:
    agent = span(
        "agent",
        "invoke_agent a",
        attributes,
        resource=resource,
        trace_state="pathgauge=c:refund;r:from%20the%20tracestate",
    )
    [invocation] = read(Trace("", trace_id("trace"), (agent,)))
    assert invocation.run_id == run_id


def test_the_test_run_is_also_read_from_spans_above_and_below_the_agent() -> None:
    request = span("request", "POST /chat", {"test.suite.run.id": "outer"}, end=9)
    agent = span("agent", "invoke_agent a", parent="request", end=8)
    chat = span(
        "chat",
        "chat",
        {"gen_ai.operation.name": "chat", "test.suite.run.id": "inner"},
        parent="agent",
        end=2,
    )
    [without] = read(Trace("", trace_id("trace"), (request, agent)))
    [within] = read(Trace("", trace_id("trace"), (request, agent, chat)))
    assert (without.run_id, within.run_id) == ("outer", "inner")


@pytest.mark.parametrize(
    ("attributes", "scenario_id", "turn"),
    [
        ({"pathgauge.scenario.id": "pay"}, "pay", None),
        ({"pathgauge.scenario.id": "refund"}, "refund", 1),
        ({"pathgauge.turn": "2"}, "refund", 2),
        ({"pathgauge.turn": 0}, "refund", 0),
        ({"pathgauge.turn": "second"}, "refund", 1),
    ],
)
def test_attributes_precede_the_tracestate_and_its_turn_belongs_to_its_scenario(
    attributes: dict[str, str | int], scenario_id: str, turn: int
) -> None:
    agent = span("agent", "invoke_agent a", attributes, trace_state="pathgauge=c:refund;t:1")
    [invocation] = read(Trace("", trace_id("trace"), (agent,)))
    assert (invocation.scenario_id, invocation.turn) == (scenario_id, turn)
