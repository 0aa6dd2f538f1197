"""An agent that called no tool is told from one whose tool calls are not recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.reading import RECORDS
from pathgauge.collector.testing import span
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from pathgauge.scorers.types import Invocation
from support.by_hand import OUTPUT, REASONS, invocation, reading, text

EXPECTED = reference_turn(*expected_calls("look"))


def scored(found: Invocation) -> float | str | None:
    score = ToolTrajectoryAvgScore().score(found, EXPECTED)
    return score.value if score.reason is None else score.reason


def test_an_agent_that_calls_a_tool_shows_its_tools() -> None:
    found = reading(*invocation("look"))
    assert scored(found.invocation) == 1.0
    assert found.shown == set(RECORDS) - {"results"}
    assert found.doubts.flags == {}


def test_an_agent_that_seems_to_call_no_tool_is_in_doubt_until_its_version_has_shown_one() -> None:
    found = reading(*invocation())
    assert found.shown == {"inputs", "responses", "usage", "models"}
    assert (found.invocation.tool_calls, scored(found.invocation)) == ((), "tools_not_recorded")
    assert found.settled(set(RECORDS) - {"tools"}) == found.invocation
    settled = found.settled({"tools"})
    assert (settled.flags, scored(settled)) == (frozenset(), 0.0)


def test_content_that_is_switched_off_leaves_tool_calls_known() -> None:
    found = reading(*invocation(answer=None))
    settled = found.settled({"tools", "responses"})
    assert (settled.final_response, set(settled.flags)) == (None, {"content_missing"})
    assert scored(settled) == 0.0


STOPPED = {REASONS: ["stop"]}
SAID = {OUTPUT: text("assistant", "Done.")}
ENDED = {OUTPUT: text("assistant", "Done.", finish_reason="stop")}


@pytest.mark.parametrize(
    "chats",
    [[STOPPED], [SAID], [ENDED], [{REASONS: '["end_turn"]'}], [SAID, STOPPED]],
    ids=str,
)
def test_a_model_that_asked_for_no_tool_settles_it_at_once(chats: list[dict[str, Any]]) -> None:
    found = reading(*invocation(answer=None, chats=chats))
    assert (found.invocation.flags & {"no_tool_spans"}, found.doubts.flags) == (frozenset(), {})
    assert scored(found.invocation) == 0.0


def test_the_only_model_call_answered_if_the_agent_states_why_the_model_stopped() -> None:
    found = reading(*invocation(agent=ENDED))
    assert (found.invocation.flags, scored(found.invocation)) == (frozenset(), 0.0)


@pytest.mark.parametrize(
    "spans",
    [
        invocation(agent=SAID),
        invocation(agent=ENDED, chats=[{}, {}]),
        invocation(agent=ENDED, chats=[]),
        invocation(answer=None, agent={OUTPUT: text("assistant", "", finish_reason="stop")}),
        invocation(agent={OUTPUT: text("assistant", "Done.", finish_reason="tool_calls")}),
        invocation(chats=[]),
        invocation(chats=[STOPPED, {}]),
    ],
    ids=[
        "no finish reason",
        "several model calls",
        "no model call",
        "no answer",
        "it asked for tools",
        "an agent alone",
        "one of two model calls is unknown",
    ],
)
def test_a_lack_of_evidence_leaves_a_doubt(spans: Any) -> None:
    found = reading(*spans)
    assert "tools" in found.doubts.flags
    assert scored(found.invocation) == "tools_not_recorded"
    assert scored(found.settled({"tools"})) == 0.0


LOST = {REASONS: ["tool_calls"]}


def crew() -> list[Any]:
    """An agent of an instrumentation that records no tool calls."""
    return [
        span("c", "crewai.workflow", {"crewai.crew.name": "c"}, scope=CREWAI, end=10),
        span("a", "a.agent", {"gen_ai.operation.name": "invoke_agent"}, scope=CREWAI, parent="c"),
        span("m", "chat m", {"gen_ai.operation.name": "chat", **SAID}, parent="a"),
    ]


CREWAI = "opentelemetry.instrumentation.crewai"


def haystack() -> list[Any]:
    """An agent whose tool calls are one span without their names."""
    kind = "haystack.component.type"
    return [
        span("a", "haystack.agent.run", end=10),
        span("m", "haystack.component.run", {kind: "OpenAIChatGenerator"}, parent="a"),
        span("t", "haystack.component.run", {kind: "ToolInvoker"}, parent="a", start=2, end=3),
    ]


@pytest.mark.parametrize(
    "spans",
    [
        invocation(chats=[LOST, STOPPED]),
        invocation(chats=[{REASONS: '["tool_use"]'}, {}]),
        invocation(chats=[LOST | SAID, STOPPED]),
        [
            *invocation(chats=[STOPPED]),
            span(
                "h",
                "handoff to billing",
                {"openinference.span.kind": "OTHER"},
                parent="agent of trace",
                start=1,
            ),
        ],
        crew(),
        haystack(),
    ],
    ids=[
        "a call was lost",
        "another call was lost",
        "a reply without it",
        "a handoff",
        "crewai",
        "haystack",
    ],
)
def test_tool_calls_that_were_made_and_are_not_recorded_are_never_settled(spans: Any) -> None:
    found = reading(*spans)
    assert "no_tool_spans" in found.invocation.flags
    assert "tools" not in found.doubts.flags
    assert scored(found.settled(RECORDS)) == "tools_not_recorded"


SMOLAGENTS = "openinference.instrumentation.smolagents"


@pytest.mark.parametrize(
    ("kind", "name", "scope", "is_shown"),
    [
        ("AGENT", "other.run", SMOLAGENTS, True),
        ("OTHER", "handoff to other", "openinference.instrumentation.openai_agents", False),
    ],
)
def test_an_agent_that_is_called_like_a_tool_is_shown_and_a_handoff_is_not(
    kind: str, name: str, scope: str, *, is_shown: bool
) -> None:
    """Agents with handoffs may have no tools."""
    root = {"openinference.span.kind": "AGENT", "agent.name": "a"}
    below = {"openinference.span.kind": kind}
    found = reading(
        span("a", "a.run", root, scope=scope, end=10),
        span("b", name, below, scope=scope, parent="a", start=1),
    )
    assert ("tools" in found.shown) == is_shown


def test_spans_of_tool_calls_show_tools_but_messages_that_ask_for_them_do_not() -> None:
    """Messages are gone when content is switched off."""
    asked = {"role": "assistant", "parts": [{"type": "tool_call", "name": "look", "arguments": {}}]}
    found = reading(*invocation(answer=None, chats=[{OUTPUT: json.dumps([asked])}]))
    assert [call.name for call in found.invocation.tool_calls] == ["look"]
    assert found.shown == {"arguments", "usage", "models"}
