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


@pytest.mark.parametrize("type", ["AGENT", "TOOL"])
def test_a_method_has_the_name_of_its_object(type: str) -> None:
    attributes = {"mlflow.spanType": f'"{type}"', "mlflow.spanInputs": "{}", "name": '"clerk_2"'}
    [read_one] = of(
        agent(), span("b", "Some.run", attributes, parent="a", scope="mlflow.tracing.provider")
    )
    subs = [sub.agent for sub in read_one.sub_agents]
    assert subs + [call.name for call in read_one.tool_calls] == ["clerk_2"]


def test_a_call_of_a_tool_without_a_name_is_flagged() -> None:
    [read_one] = of(agent(), traced("t", "SimpleTool.__call__", "TOOL", inputs={"n": 1}))
    assert [call.name for call in read_one.tool_calls] == ["unknown"]
    assert read_one.flags == {"unknown_dialect"}


def test_spans_of_other_instrumentations_are_read_by_their_dialects() -> None:
    attributes = {
        "mlflow.spanType": "null",
        "openinference.span.kind": "AGENT",
        "input.value": "Hello",
        "output.value": "Hi",
    }
    [read_one] = of(span("a", "clerk", attributes, scope="openinference.instrumentation.agno"))
    assert (read_one.agent, read_one.user_input, read_one.final_response) == (
        "clerk",
        "Hello",
        "Hi",
    )


def test_an_answer_that_is_not_there_is_none() -> None:
    assert of(agent(inputs="Hello", outputs=None))[0].final_response is None


def test_the_answer_of_dspy_is_a_field_and_no_template() -> None:
    template = "[[ ## answer ## ]]\nseven"
    answer = {"trajectory": {}, "reasoning": "so", "answer": "seven"}
    [read_one] = of(
        agent("ReAct.forward", inputs={"question": "Which?"}, outputs=answer),
        traced("p", "Predict.forward", "LLM", 1, 4, outputs=answer),
        traced("m", "LM.__call__", "CHAT_MODEL", 2, 3, parent="p", outputs=[template]),
    )
    assert (read_one.user_input, read_one.final_response) == ("Which?", "seven")


def test_a_dspy_program_that_failed_has_no_answer() -> None:
    template = "[[ ## next_tool_name ## ]]\nlook"
    [read_one] = of(
        agent("ReAct.forward", inputs={"question": "Which?", "history": "messages=[]"}),
        traced("m", "LM.__call__", "CHAT_MODEL", 2, 3, outputs=[template]),
    )
    assert (read_one.user_input, read_one.final_response) == ("Which?", None)


def test_an_agent_of_autogen_that_answers_its_own_run_is_one_agent() -> None:
    [read_one] = of(agent("clerk.run"), traced("b", "clerk.on_messages", "AGENT"))
    assert (read_one.agent, read_one.sub_agents) == ("clerk", ())


def test_an_agent_of_autogen_may_answer_without_a_run() -> None:
    [read_one] = of(agent("clerk.on_messages", inputs={"messages": []}))
    assert read_one.agent == "clerk"


def test_the_preparation_of_a_model_call_is_none() -> None:
    tokens: dict[str, Any] = {"mlflow__chat__tokenUsage": {"input_tokens": 7, "output_tokens": 1}}
    [read_one] = of(
        agent("FunctionAgent.run", inputs={"user_msg": "Hello"}),
        traced("p", "OpenAI._prepare_chat_with_tools", "LLM", 1, 2, outputs={"messages": []}),
        traced("m", "OpenAI.achat", "LLM", 3, 4, outputs="Hi", **tokens),
    )
    assert (read_one.user_input, read_one.input_tokens) == ("Hello", 7)
    assert [call.span_id for call in read_one.model_calls] == [span_id("m")]


def test_an_empty_answer_is_not_that_of_a_module_inside() -> None:
    [read_one] = of(
        traced(
            "a", "Shop.forward", "CHAIN", parent=None, inputs={"question": "Which?"}, outputs=""
        ),
        traced("b", "ReAct.forward", "AGENT", 1, 4, outputs={"answer": "seven"}),
    )
    assert read_one.final_response == ""


@pytest.mark.parametrize("is_error", [False, True])
def test_the_result_of_a_tool_of_llama_index_is_what_it_returned(is_error: bool) -> None:
    output = {
        "blocks": [{"block_type": "text", "text": "seven"}],
        "tool_name": "look",
        "raw_input": {"args": [], "kwargs": {"n": 1}},
        "raw_output": "seven",
        "is_error": is_error,
    }
    [read_one] = of(agent(), traced("t", "look", "TOOL", inputs={"n": 1}, outputs=output))
    [call] = read_one.tool_calls
    assert (call.result, call.error) == ("seven", "seven" if is_error else None)
