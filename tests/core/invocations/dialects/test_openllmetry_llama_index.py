"""Special cases of LlamaIndex under OpenLLMetry that the captures do not have, with handwritten
spans.
"""

from __future__ import annotations

import json
from typing import Any

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "opentelemetry.instrumentation.llamaindex"
HELLO = {"role": "user", "blocks": [{"block_type": "text", "text": "Where is A-1?"}]}


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def timed(
    id: str,
    name: str,
    start: float,
    *,
    output: Any = None,
    parent: str | None = "run",
    **more: Any,
) -> Span:
    """A task, or a workflow. In names of attributes, `__` stands for a dot."""
    attributes = {key.replace("__", "."): value for key, value in more.items()}
    attributes |= {"traceloop.span.kind": name.rpartition(".")[2], "traceloop.entity.name": name}
    if output is not None:
        attributes["traceloop.entity.output"] = json.dumps(output)
    return span(id, name, attributes, parent=parent, start=start, end=start + 1, scope=SCOPE)


def step(id: str, start: float, **output: Any) -> Span:
    return timed(id, "BaseWorkflowAgent.task", start, output=output)


def setup(start: float = 1, agent: str = "desk") -> Span:
    return step(f"setup {start}", start, input=[HELLO], current_agent_name=agent)


def tool_call(start: float, **more: Any) -> Span:
    returned = {"tool_name": "look", "raw_output": "found", "is_error": False, **more}
    return timed(
        "call",
        "BaseWorkflowAgent.task",
        start,
        output={"tool_name": "look", "tool_id": "c1", "tool_output": returned},
        tool__name="look",
        tool__arguments='{"id": "A-1"}',
    )


def function(start: float, parent: str, output: Any = None) -> Span:
    return timed(
        "function",
        "FunctionTool.task",
        start,
        parent=parent,
        output=output,
        traceloop__entity__input='{"kwargs": {"id": "A-1"}}',
    )


def run(output: Any = None) -> Span:
    return timed("run", "FunctionAgent.workflow", 0, output=output, parent=None)


def test_without_any_model_call_the_first_step_has_the_words_of_the_user() -> None:
    said = {"role": "assistant", "blocks": [{"block_type": "text", "text": "Home."}]}
    [one] = of(run({"result": {"response": said}}), setup(), tool_call(3))
    assert (one.agent, one.user_input, one.final_response) == ("desk", "Where is A-1?", "Home.")
    assert [(call.id, call.result, call.agent) for call in one.tool_calls] == [
        ("c1", "found", "desk")
    ]


def test_a_failed_tool_says_so_in_its_output_only() -> None:
    [one] = of(run(), setup(), tool_call(3, raw_output="down", is_error=True))
    assert [(call.result, call.error) for call in one.tool_calls] == [("down", "down")]


def test_the_function_of_a_call_is_the_same_call() -> None:
    returned = {"tool_name": "look", "raw_output": "found", "is_error": False}
    [with_output] = of(run(), setup(), tool_call(3), function(3.1, "call", returned))
    [without] = of(run(), setup(), tool_call(3), function(3.1, "call"))
    assert len(with_output.tool_calls) == len(without.tool_calls) == 1


def test_a_function_that_nobody_else_shows_is_a_call() -> None:
    returned = {"tool_name": "look", "raw_output": '{"at": "home"}', "is_error": False}
    [one] = of(run(), setup(), function(3, "run", returned))
    assert [(call.name, call.arguments, call.result) for call in one.tool_calls] == [
        ("look", {"id": "A-1"}, {"at": "home"})
    ]


def test_embeddings_are_no_model_calls() -> None:
    embedded = timed("e", "Embedding.task", 2, gen_ai__operation__name="embeddings")
    [one] = of(run(), setup(), embedded)
    assert one.model_calls == ()


def test_steps_alone_are_a_run_that_never_arrived() -> None:
    [one] = of(setup(1), setup(2), tool_call(3))
    assert (one.span_id, one.agent, one.user_input) == (span_id("run"), "desk", "Where is A-1?")
    assert ([call.agent for call in one.tool_calls], one.sub_agents) == (["desk"], ())
    assert "missing_root" in one.flags


def test_a_failed_model_call_belongs_to_the_run_although_its_step_never_arrived() -> None:
    failed = span(
        "m",
        "openai.chat",
        {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"},
        parent="lost step",
        start=4,
        end=5,
        error="overloaded",
        scope="opentelemetry.instrumentation.openai.v1",
    )
    [one] = of(setup(1), tool_call(3), failed)
    assert (one.error, one.model, len(one.tool_calls)) == (True, "m-1", 1)


def test_the_name_of_a_workflow_without_agents_is_its_class() -> None:
    said = '[{"role": "assistant", "parts": [{"type": "text", "content": "Home."}]}]'
    model = timed(
        "m", "Claude.task", 1, gen_ai__operation__name="chat", gen_ai__output__messages=said
    )
    flow = timed("run", "OrderFlow.workflow", 0, parent=None)
    [one] = of(flow, model)
    assert (one.agent, one.final_response) == ("OrderFlow", "Home.")


def test_calls_that_the_messages_leave_out_are_in_the_output_of_the_model_call() -> None:
    asked = {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "look"}
    model = timed(
        "m",
        "Claude.task",
        2,
        gen_ai__operation__name="chat",
        gen_ai__output__messages='[{"role": "assistant", "parts": []}]',
        output={"message": {"role": "assistant", "blocks": [{**asked, "tool_kwargs": "{}"}]}},
    )
    [one] = of(run(), setup(), model)
    assert [(call.id, call.name, call.arguments, call.group) for call in one.tool_calls] == [
        ("c1", "look", {}, 0)
    ]
