"""Special cases of Microsoft Agent Framework: workflows of agents."""

from __future__ import annotations

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import span, span_id, trace_id
from support.dialects import INSTALLED, read

SCOPE = "agent_framework"


def test_the_agents_of_a_workflow_are_one_invocation() -> None:
    run = span(
        "run",
        "workflow.run",
        {"workflow.name": "refunds", "gen_ai.conversation.id": "conv"},
        end=9,
        scope=SCOPE,
    )
    spans = [run]
    for start, name in enumerate(["finder", "billing"]):
        spans.append(
            span(
                f"step {name}",
                f"executor.process {name}",
                {"executor.id": name},
                parent="run",
                start=start,
                scope=SCOPE,
            )
        )
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        spans.append(
            span(
                name,
                f"invoke_agent {name}",
                attributes,
                parent=f"step {name}",
                start=start,
                scope=SCOPE,
            )
        )
    [one] = read(Trace("", trace_id("trace"), tuple(spans)))
    assert (one.span_id, one.dialect, one.agent, one.conversation_id) == (
        span_id("run"),
        "agent-framework",
        "finder",
        "conv",
    )
    assert [sub.agent for sub in one.sub_agents] == ["billing"]
    assert INSTALLED.may_be_entry(run)


def test_a_workflow_without_agents_has_its_own_name() -> None:
    run = span("run", "workflow.run", {"workflow.name": "refunds"}, scope=SCOPE)
    model = span("m", "chat gpt", {"gen_ai.operation.name": "chat"}, parent="run", scope=SCOPE)
    assert [one.agent for one in read(Trace("", trace_id("trace"), (run, model)))] == ["refunds"]


def test_spans_of_that_name_in_other_scopes_are_no_workflow() -> None:
    run = span("run", "workflow.run", scope="temporal")
    assert (read(Trace("", trace_id("trace"), (run,))), INSTALLED.may_be_entry(run)) == ([], False)
