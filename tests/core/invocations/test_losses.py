"""Invocations that lost spans on their way have no score for their tool calls, complete ones keep
theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pathgauge.collector.core.invocations.reader import readings
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn
from pathgauge.scorers.cost.usage import ModelCalls, ToolCalls
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from support.by_hand import INPUT, OUTPUT, invocation, reading, text
from support.dialects import INSTALLED

OUTPUT_TOKENS = "gen_ai.usage.output_tokens"


def calls(*names: str, ids: str = "c") -> dict[str, Any]:
    parts = [
        {"type": "tool_call", "name": name, "arguments": {}, "id": f"{ids}{number}"}
        for number, name in enumerate(names)
    ]
    return {"role": "assistant", "parts": parts}


def result(value: str, id: str = "c0") -> dict[str, Any]:
    return {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": id, "response": value}],
    }


USER = {"role": "user", "parts": [{"type": "text", "content": "Refund it."}]}


def chat(*prompt: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> dict[str, Any]:
    said = json.dumps([out]) if out is not None else text("assistant", "Done.")
    return {INPUT: json.dumps(prompt), OUTPUT: said}


FIRST = chat(USER, out=calls("look"))
SECOND = chat(USER, calls("look"), result("found"))


def without(spans: list[Span], *names: str) -> list[Span]:
    """The spans without those with these names, each time the first one."""
    kept = list(spans)
    for name in names:
        kept.remove(next(one for one in kept if one.name == name))
    return kept


def losses(spans: list[Span]) -> list[str]:
    return sorted(reading(*spans).invocation.telemetry_lost)


WHOLE = invocation("look", chats=[FIRST, SECOND])
STATED = invocation(
    "look",
    agent={OUTPUT_TOKENS: 12},
    chats=[{**FIRST, OUTPUT_TOKENS: 5}, {**SECOND, OUTPUT_TOKENS: 7}],
)
TWICE = invocation(
    "look",
    "look",
    chats=[
        chat(USER, out=calls("look", ids="a")),
        chat(USER, calls("look", ids="a"), result("1", "a0"), out=calls("look", ids="b")),
        chat(
            USER,
            calls("look", ids="a"),
            result("1", "a0"),
            calls("look", ids="b"),
            result("2", "b0"),
        ),
    ],
)


SAID = [{OUTPUT: json.dumps([calls("look", ids=ids)])} for ids in "ab"]
UNSEEN_TWICE = invocation("look", "look", chats=[*SAID, {OUTPUT: text("assistant", "Done.")}])


def unseen(answer: str = "Done.") -> list[Span]:
    """The model call after the tool call is missing."""
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.result": "found",
    }
    agent, first, *_ = invocation(chats=[FIRST], answer=answer)
    parent = "agent of trace"
    return [agent, first, span("t", "execute_tool look", tool, parent=parent, start=1, end=2)]


def given_up(*output: Mapping[str, Any], answer: str | None, later: bool) -> list[Span]:
    """A call that has neither a span nor a result, and perhaps another model call after it."""
    first = {INPUT: json.dumps([USER]), OUTPUT: json.dumps(output)}
    return invocation(chats=[first, chat(USER)] if later else [first], answer=answer)


SPOKEN = {
    "role": "assistant",
    "parts": [{"type": "text", "content": "Which color?"}, *calls("pick_color")["parts"]],
}
CUT = {INPUT: '[{"role": "user", "parts": [{"ty', OUTPUT: json.dumps([calls("look")])}


def nested(*, middle: bool = True, **more: Any) -> list[Span]:
    """A tool below a step of the framework; with a web server above that never arrives."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    spans = [
        span("agent", "invoke_agent a", agent, parent="server", end=10),
        span("chat", "chat m", {"gen_ai.operation.name": "chat", **FIRST}, parent="agent", end=1),
        span(
            "chat 2",
            "chat m",
            {"gen_ai.operation.name": "chat", **SECOND},
            parent="agent",
            start=5,
            end=6,
        ),
        span("tool", "execute_tool look", tool, parent="step", start=2, end=3, **more),
    ]
    return [*spans, span("step", "step", parent="agent", start=2, end=4)] if middle else spans


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        (without(WHOLE, "chat gpt", "execute_tool look"), ["lost_tool_calls"]),
        (without(TWICE, "execute_tool look"), ["lost_tool_calls"]),
        (without(UNSEEN_TWICE, "execute_tool look"), ["lost_tool_calls"]),
        (without(STATED, "chat gpt"), ["lost_model_calls"]),
        (unseen(), ["lost_model_calls"]),
        (given_up(calls("look"), answer="Done.", later=True), ["lost_tool_calls"]),
        (given_up(calls("look"), answer="Done.", later=False), ["lost_model_calls"]),
        (nested(middle=False), ["lost_parents"]),
    ],
    ids=[
        "the last prompt holds a call that is not recorded",
        "one of two calls of a tool has no span",
        "one of two calls of a tool has neither a span nor a result",
        "the agent states more tokens than its model calls",
        "no model call has seen the result before the answer",
        "the agent went on after a call without a trace",
        "the agent answered after a call without a trace",
        "a parent between agent and tool",
    ],
)
def test_lost_spans_are_recognized(spans: list[Span], expected: list[str]) -> None:
    found = reading(*spans).invocation
    assert sorted(found.telemetry_lost) == expected
    turn = reference_turn(*expected_calls("look"), response="Done.")
    for scorer in (ToolTrajectoryAvgScore(), ToolCalls(), ModelCalls()):
        assert scorer.score(found, turn).reason == "lost_telemetry"
    assert ResponseMatchScore().score(found, turn).value in (1.0, None)
    assert found.duration_s == 10.0


def resumed() -> list[Span]:
    """A run that continues after a call that an earlier one asked for."""
    given = {INPUT: json.dumps([USER, calls("approve"), result("yes")])}
    prompt = chat(USER, calls("approve"), result("yes"))
    return invocation(agent=given, chats=[prompt])


@pytest.mark.parametrize(
    "spans",
    [
        WHOLE,
        STATED,
        TWICE,
        UNSEEN_TWICE,
        invocation("look", chats=SAID, answer=None),
        nested(),
        invocation("look", chats=[FIRST, {}], answer=None),
        invocation(chats=[FIRST, SECOND]),
        invocation(chats=[chat(USER, out=calls("pick_color"))], answer=None),
        given_up(SPOKEN, answer="Which color?", later=False),
        given_up(calls("pick_color"), answer='[{"waits": "pick_color"}]', later=False),
        given_up(calls("transfer_to_billing"), answer="Done.", later=True),
        invocation(chats=[CUT, chat(USER)]),
        unseen("It was found."),
        invocation("look", chats=[FIRST, chat(USER, calls("look"), result("found"), USER)]),
        resumed(),
        invocation(agent={INPUT: ""}, chats=[chat(USER, calls("approve"), result("yes"))]),
        invocation(
            "look",
            agent={OUTPUT_TOKENS: 99},
            chats=[{**FIRST, OUTPUT_TOKENS: 5}, SECOND],
        ),
        nested(middle=False, remote_parent=True),
    ],
    ids=[
        "complete",
        "all tokens",
        "two calls of a tool",
        "two calls of a tool without results",
        "a call at the end that waits for an approval",
        "only the web server above is missing",
        "content is switched off",
        "tools without spans",
        "a call for the client at the end",
        "a call for the client, and what was said beside it",
        "a call that waits for approval",
        "a handoff",
        "a prompt that was cut off",
        "a call whose result is the answer",
        "a prompt without earlier messages",
        "a resumed run",
        "a resumed run whose input is not recorded",
        "a model call without tokens",
        "another process serves the tool",
    ],
)
def test_complete_telemetry_shows_no_loss(spans: list[Span]) -> None:
    assert losses(spans) == []


def test_a_call_that_waits_for_an_approval_is_one_of_both_runs() -> None:
    """What was asked for counts in the first, what was carried out in the second."""
    asked = invocation(chats=[chat(USER, out=calls("refund"))], answer=None)
    given = {INPUT: json.dumps([USER, calls("refund")])}
    done = invocation("refund", agent=given, chats=[chat(USER, calls("refund"), result("paid"))])
    found = [reading(*spans).invocation.tool_calls for spans in (asked, done)]
    assert [[call.name for call in of_run] for of_run in found] == [["refund"], ["refund"]]
    assert [[call.start_ns is None for call in of_run] for of_run in found] == [[True], [False]]


def test_tools_without_model_calls_are_a_loss_once_the_version_has_shown_model_calls() -> None:
    found = reading(*without(invocation("look"), "chat gpt", "chat gpt"))
    assert found.invocation.telemetry_lost == ()
    assert found.settled({"tools"}).telemetry_lost == ()
    assert found.settled({"tools", "models"}).telemetry_lost == ("lost_model_calls",)


def test_an_agent_alone_is_unknown_once_its_version_has_shown_model_calls() -> None:
    found = reading(*invocation(chats=[]))
    assert "no_tool_spans" not in found.settled({"tools"}).flags
    assert found.settled({"tools", "models"}).flags == {"no_tool_spans"}


def test_a_run_that_was_cut_off_from_its_caller_has_lost_parents() -> None:
    """The root of the trace is there, and the span between it and the agent is not."""
    root = span("root", "POST /", end=20)
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "billing"}
    spans = [root, span("agent", "invoke_agent billing", agent, parent="lost", end=10)]
    trace = Trace("", trace_id("trace"), tuple(spans))
    [found] = readings(trace, INSTALLED)
    assert found.invocation.telemetry_lost == ("lost_parents",)


def test_dropped_attributes_of_a_model_call_may_have_held_its_calls() -> None:
    def dropped(one: Span) -> Span:
        if one.name != "chat gpt":
            return one
        proto = type(one.proto).FromString(one.raw)
        proto.dropped_attributes_count = 3
        return Span(proto.SerializeToString(), one.resource, one.scope)

    for spans, expected in (
        (invocation(chats=[{}, SECOND]), ["lost_tool_calls"]),
        (invocation(chats=[{"gen_ai.response.finish_reasons": ["stop"]}]), []),
        (invocation("look", chats=[{}, SECOND]), []),
    ):
        assert losses(list(map(dropped, spans))) == expected


@pytest.mark.parametrize(
    ("prompt", "lost"),
    [
        ((USER, calls("look"), result("found")), []),
        ((USER, calls("look")), ["lost_tool_calls"]),
        ((), ["lost_tool_calls"]),
    ],
)
def test_a_call_without_span_and_result_is_lost_if_the_agent_went_on(
    prompt: tuple[Mapping[str, Any], ...], lost: list[str]
) -> None:
    """Its prompt would have the result."""
    assert losses(invocation(chats=[FIRST, chat(*prompt)])) == lost


def test_a_call_is_not_lost_if_the_run_ended_with_it() -> None:
    assert losses(invocation(chats=[FIRST], answer=None)) == []
