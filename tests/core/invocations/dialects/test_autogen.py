"""Special cases of AutoGen: agents that start when a message arrives, and no content."""

from __future__ import annotations

import json

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

RUNTIME, CORE = "autogen SingleThreadedAgentRuntime", "autogen-core"
TEAM, OTHER = "996caa2f-fb9d-4795-9d47-9aa15c83e36b", "0997e1f9-e1fe-43fb-a2e7-1e5022ac7795"


def task(
    start: float, text: str = "Refund it", *, team: str = TEAM, parent: str | None = "request"
) -> list[Span]:
    """A task for the manager of a team, and its processing."""
    to = f"Manager_{team}.({team})-A"
    said = {
        "message": json.dumps(
            {"messages": [{"source": "user", "content": text, "type": "TextMessage"}]}
        )
    }
    sent = span(
        f"task {start}",
        f"autogen send {to}",
        {"messaging.destination": to},
        parent=parent,
        start=start,
        end=start + 1,
        scope=RUNTIME,
    )
    return [
        sent,
        span(
            f"in {start}",
            f"autogen process {to}",
            said,
            parent=f"task {start}",
            start=start,
            end=start + 1,
            scope=RUNTIME,
        ),
    ]


def delivery(
    start: float, agent: str, *tools: str, team: str = TEAM, parent: str | None = "request"
) -> list[Span]:
    """A message, and the agent that it brings to work."""
    to = f"{agent}.({team})-T"
    spans = [
        span(
            f"to {start}",
            f"autogen publish {to}",
            {"messaging.destination": to},
            parent=parent,
            start=start,
            end=start + 1,
            scope=RUNTIME,
        )
    ]
    spans.append(
        span(
            f"at {start}",
            f"autogen process {to}",
            {"message": "{}"},
            parent=f"to {start}",
            start=start,
            end=start + 1,
            scope=RUNTIME,
        )
    )
    named = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.agent.id": f"{agent}_{team}/{team}",
    }
    spans.append(
        span(
            f"{agent} {start}",
            f"invoke_agent {agent}",
            named,
            parent=f"at {start}",
            start=start,
            end=start + 1,
            scope=CORE,
        )
    )
    for index, name in enumerate(tools):
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        at = start + index / 10
        spans.append(
            span(
                f"{name} {start}",
                f"execute_tool {name}",
                attributes,
                parent=f"{agent} {start}",
                start=at,
                end=at + 0.1,
                scope=CORE,
            )
        )
    return spans


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def short(one: Invocation) -> tuple[str | None, list[str], list[str | None]]:
    return (
        one.user_input,
        [call.name for call in one.tool_calls],
        [sub.agent for sub in one.sub_agents],
    )


REQUEST = span("request", "POST /chat", end=60)


@pytest.mark.parametrize("above", [[REQUEST], []], ids=["the request is known", "it never arrives"])
def test_the_agents_of_a_team_that_work_on_a_task_are_one_invocation(above: list[Span]) -> None:
    [one] = of(
        *above,
        *task(0),
        *delivery(1, "coordinator", "look", "transfer_to_billing"),
        *delivery(5, "billing", "refund"),
    )
    assert short(one) == ("Refund it", ["look", "transfer_to_billing", "refund"], ["billing"])
    assert (one.span_id, one.agent, one.conversation_id, one.duration_s) == (
        span_id("task 0"),
        "coordinator",
        TEAM,
        6.0,
    )


def test_each_task_begins_an_invocation() -> None:
    first, second = of(
        REQUEST,
        *task(0, "one"),
        *delivery(1, "a", "x"),
        *task(10, "two"),
        *delivery(11, "b", "y"),
        *delivery(12, "a"),
    )
    assert (short(first), short(second)) == (("one", ["x"], []), ("two", ["y"], ["a"]))


def test_concurrent_teams_are_separate_invocations() -> None:
    tasks = [*task(0, "one"), *task(0.5, "two", team=OTHER)]
    first, second = of(
        REQUEST,
        *tasks,
        *delivery(1, "a", "x"),
        *delivery(2, "b", "y", team=OTHER),
        *delivery(3, "c", "z"),
    )
    assert (short(first), short(second)) == (("one", ["x", "z"], ["c"]), ("two", ["y"], []))


def test_a_team_called_by_an_agent_belongs_to_the_invocation_of_the_agent() -> None:
    asking = span(
        "asking",
        "invoke_agent lead",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "lead"},
        end=60,
        scope=CORE,
    )
    call = span(
        "request",
        "execute_tool ask",
        {"gen_ai.tool.name": "ask"},
        parent="asking",
        end=60,
        scope=CORE,
    )
    [one] = of(asking, call, *task(0), *delivery(1, "a", "x"), *delivery(2, "b"))
    assert (
        one.agent,
        [call.name for call in one.tool_calls],
        [sub.agent for sub in one.sub_agents],
    ) == ("lead", ["ask", "x"], ["a", "b"])


def test_without_an_enclosing_span_every_agent_is_an_invocation() -> None:
    [one] = of(*delivery(1, "billing", "refund", parent=None))
    assert (one.span_id, one.user_input, one.conversation_id) == (span_id("billing 1"), None, TEAM)
    assert (one.tool_calls[0].arguments, sorted(one.flags)) == (None, ["content_missing"])


def test_a_task_on_which_no_agent_works_is_no_invocation() -> None:
    assert of(REQUEST, *task(0)) == []


def test_a_model_that_chooses_the_next_speaker_is_no_invocation() -> None:
    chosen = span("m", "chat gpt", {"gen_ai.operation.name": "chat"}, parent="in 0")
    assert of(*task(0, parent=None), chosen) == []


@pytest.mark.parametrize(
    "agent_id", ["assistant/default", "arn:aws:bedrock:eu-west-1:1:agent/A1", "a"]
)
def test_an_agent_outside_a_team_has_no_conversation(agent_id: str) -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": agent_id}
    assert of(span("agent", "invoke_agent a", attributes, scope=CORE))[0].conversation_id is None


def test_messages_in_a_cycle_are_read() -> None:
    looped = [*task(0, parent="at 1"), *delivery(1, "a", parent="in 0")]
    assert [one.agent for one in of(*looped)] == ["a"]
