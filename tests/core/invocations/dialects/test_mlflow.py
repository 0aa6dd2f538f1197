"""Special cases of MLflow, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def traced(
    id: str,
    name: str,
    type: str,
    start: float = 0,
    end: float = 9,
    *,
    parent: str | None = "a",
    **more: Any,
) -> Span:
    """Every value is encoded; `inputs` and `outputs` are MLflow's, keys with `__` are written with
    dots.
    """
    keys = {"inputs": "mlflow.spanInputs", "outputs": "mlflow.spanOutputs"}
    attributes = {
        keys.get(key, key.replace("__", ".")): json.dumps(value)
        for key, value in {"mlflow__spanType": type, **more}.items()
    }
    return span(
        id, name, attributes, parent=parent, start=start, end=end, scope="mlflow.tracing.provider"
    )


def agent(name: str = "clerk", **more: Any) -> Span:
    return traced("a", name, "AGENT", parent=None, **more)


def test_every_value_is_decoded() -> None:
    more = {
        "mlflow__trace__session": "s1",
        "mlflow__trace__user": "u1",
        "pathgauge__scenario__id": "sc1",
    }
    [read_one] = of(
        agent(inputs={"question": "Hello"}, outputs="done", **more),
        traced(
            "m",
            "llm",
            "CHAT_MODEL",
            1,
            2,
            inputs={"messages": [{"role": "user", "content": "Hello"}]},
            mlflow__llm__model="gpt",
            mlflow__chat__tokenUsage={
                "input_tokens": 100,
                "output_tokens": 20,
                "cache_read_input_tokens": 30,
            },
        ),
        traced("t", "look", "TOOL", 3, 4, inputs={"n": 1}, outputs="seven", tool_call_id="c1"),
    )
    assert (read_one.dialect, read_one.agent, read_one.user_input, read_one.final_response) == (
        "mlflow",
        "clerk",
        "Hello",
        "done",
    )
    assert (read_one.conversation_id, read_one.user_id, read_one.scenario_id) == ("s1", "u1", "sc1")
    assert (read_one.model, read_one.input_tokens, read_one.output_tokens) == ("gpt", 100, 20)
    assert [(call.id, call.name, call.arguments, call.result) for call in read_one.tool_calls] == [
        ("c1", "look", {"n": 1}, "seven")
    ]


def test_a_tag_of_the_trace_names_the_scenario() -> None:
    root = span(
        "a",
        "clerk",
        {"mlflow.spanType": '"AGENT"', "mlflow.traceTag.pathgauge.scenario.id": "sc1"},
        scope="mlflow.tracing.provider",
    )
    assert of(root)[0].scenario_id == "sc1"


def test_the_children_of_a_root_that_was_lost_are_one_invocation() -> None:
    [read_one] = of(
        traced("t", "look", "TOOL", 1, 2, inputs={"n": 1}),
        traced("m", "llm", "LLM", 3, 4, outputs="seven"),
    )
    assert (read_one.span_id, read_one.agent, sorted(read_one.flags)) == (
        span_id("a"),
        None,
        ["content_missing", "missing_root"],
    )
    assert ([call.name for call in read_one.tool_calls], read_one.final_response) == (
        ["look"],
        "seven",
    )


def test_totals_of_an_agent_count_only_if_no_model_call_has_tokens() -> None:
    usage: dict[str, Any] = {"mlflow__chat__tokenUsage": {"input_tokens": 300, "output_tokens": 60}}
    assert of(agent(**usage))[0].input_tokens == 300
    assert of(agent(**usage), traced("m", "llm", "LLM", **usage))[0].input_tokens == 300


@pytest.mark.parametrize("name", ["Agent.run", "Crew.kickoff"])
def test_the_name_of_a_method_is_not_used_as_a_name(name: str) -> None:
    assert of(agent(name))[0].agent is None


def test_the_runner_of_agents_is_their_workflow_and_passes_control_on() -> None:
    call = {
        "type": "function_call",
        "name": "transfer_to_billing",
        "arguments": "{}",
        "call_id": "c1",
    }
    [read_one] = of(
        traced("a", "AgentRunner.run", "AGENT", parent=None, inputs="Hello", outputs="Billed."),
        traced("front", "front", "AGENT", 1, 4),
        traced(
            "m",
            "Response",
            "CHAT_MODEL",
            2,
            3,
            parent="front",
            outputs=[call],
            model="gpt",
            usage={"input_tokens": 9, "output_tokens": 1},
        ),
        traced(
            "h",
            "Handoff",
            "CHAIN",
            3,
            4,
            parent="front",
            inputs={"from_agent": "front"},
            outputs={"to_agent": "billing"},
        ),
        traced("billing", "billing", "AGENT", 5, 8),
    )
    assert (read_one.agent, read_one.user_input, read_one.final_response) == (
        "front",
        "Hello",
        "Billed.",
    )
    assert (read_one.model, read_one.input_tokens) == ("gpt", 9)
    assert [(call.name, call.kind, call.id) for call in read_one.tool_calls] == [
        ("transfer_to_billing", "handoff", "c1")
    ]
    assert read_one.tool_calls[0].start_ns is not None
    assert [(sub.agent, sub.via) for sub in read_one.sub_agents] == [("billing", "handoff")]


def test_with_names_of_the_conventions_the_metadata_still_tells_the_graph() -> None:
    def renamed(
        id: str, node: str | None, start: float, end: float, *, parent: str | None = "a"
    ) -> Span:
        metadata = {"lc_agent_name": "clerk", "thread_id": "t1"} | (
            {"langgraph_node": node} if node else {}
        )
        attributes = {"gen_ai.operation.name": "CHAIN", "metadata": json.dumps(metadata)}
        return span(
            id,
            "CHAIN",
            attributes,
            parent=parent,
            start=start,
            end=end,
            scope="mlflow.tracing.provider",
        )

    [read_one] = of(
        renamed("a", None, 0, 9, parent=None),
        renamed("n1", "model", 1, 3),
        renamed("n2", "tools", 4, 6),
    )
    assert (read_one.span_id, read_one.agent, read_one.conversation_id, read_one.sub_agents) == (
        span_id("a"),
        "clerk",
        "t1",
        (),
    )


@pytest.mark.parametrize(
    ("type", "parent", "may"),
    [("AGENT", "x", True), ("TOOL", "x", False), ("CHAIN", None, True), ("CHAIN", "x", False)],
)
def test_agents_and_roots_may_be_entry_spans(type: str, parent: str | None, may: bool) -> None:
    assert INSTALLED.may_be_entry(traced("a", "x", type, parent=parent)) is may
