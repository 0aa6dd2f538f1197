"""Special cases of Agno under OpenLLMetry and OpenInference, with handwritten spans."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "opentelemetry.instrumentation.agno"
NOTHING_ELSE = "updated_session_state=None images=None videos=None audios=None files=None"


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def run(name: str = "desk", *, parent: str | None = None, id: str = "a") -> Span:
    attributes = {"traceloop.span.kind": "agent", "gen_ai.agent.name": name}
    return span(id, f"{name}.agent", attributes, parent=parent, start=1, end=8, scope=SCOPE)


def tool(output: str, parent: str = "a") -> Span:
    attributes = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "find",
        "gen_ai.tool.name": "find",
        "traceloop.entity.input": '{"id": "A-1"}',
        "traceloop.entity.output": output,
    }
    return span("t", "find.tool", attributes, parent=parent, start=2, end=3, scope=SCOPE)


@pytest.mark.parametrize(
    ("result", "error", "expected"),
    [
        ("{'at': 'home', 'to': None}", "None", ({"at": "home", "to": None}, None)),
        ("'it\\'s \"home\" error=None'", "None", ('it\'s "home" error=None', None)),
        ("'line\\nline'", "None", ("line\nline", None)),
        ("None", "'no \\'A-1\\''", (None, "no 'A-1'")),
        ("None", "None", (None, None)),
        ("id='A-1' at='home'", "None", ("id='A-1' at='home'", None)),
        ("<generator object f.<locals>.find at 0x557fa640a5f0>", "None", (None, None)),
    ],
)
def test_the_result_of_a_tool_is_read_from_the_text_of_the_execution(
    result: str, error: str, expected: tuple[Any, str | None]
) -> None:
    status = "success" if error == "None" else "failure"
    [found] = of(run(), tool(f"status='{status}' result={result} error={error} {NOTHING_ELSE}"))
    [call] = found.tool_calls
    assert (call.arguments, (call.result, call.error)) == ({"id": "A-1"}, expected)


def test_a_state_beside_the_result_does_not_hide_it() -> None:
    text = (
        "status='success' result=7 error=None updated_session_state={'seen': ['A-1']} images=None"
    )
    assert of(run(), tool(text))[0].tool_calls[0].result == "7"


def test_a_text_that_is_no_execution_is_the_result() -> None:
    [found] = of(run(), tool("status='success' was never stated"))
    assert found.tool_calls[0].result == "status='success' was never stated"


def test_a_team_answers_for_its_members() -> None:
    attributes = {
        "traceloop.span.kind": "workflow",
        "agno.team.name": "support",
        "traceloop.entity.input": "Where is A-1?",
        "traceloop.entity.output": "At home.",
    }
    [found] = of(
        span("team", "support.team", attributes, end=10, scope=SCOPE),
        run("billing", parent="team"),
    )
    assert (found.agent, found.final_response) == ("support", "At home.")
    assert [sub.agent for sub in found.sub_agents] == ["billing"]
