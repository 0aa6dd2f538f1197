"""Special cases of OpenInference's instrumentations of LlamaIndex, smolagents, CrewAI and others,
with handwritten spans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation, ToolCall
from support.dialects import INSTALLED, read

LLAMA_INDEX, SMOLAGENTS = (
    "openinference.instrumentation.llama_index",
    "openinference.instrumentation.smolagents",
)
CREWAI, OTHER = "openinference.instrumentation.crewai", "openinference.instrumentation.agno"


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def run(
    id: str,
    name: str,
    kind: str,
    scope: str,
    more: Mapping[str, Any] | None = None,
    *,
    parent: str | None = None,
    start: float = 0,
    end: float = 10,
    error: str | None = None,
) -> Span:
    attributes = {"openinference.span.kind": kind, **(more or {})}
    return span(id, name, attributes, parent=parent, start=start, end=end, scope=scope, error=error)


def asking(name: str, arguments: str | None = None, text: str = "") -> dict[str, Any]:
    call = "llm.output_messages.0.message.tool_calls.0.tool_call.function."
    attributes = {"llm.output_messages.0.message.role": "assistant", call + "name": name}
    if text:
        attributes["llm.output_messages.0.message.contents.0.message_content.text"] = text
    return attributes | ({call + "arguments": arguments} if arguments is not None else {})


def answering(text: str) -> dict[str, Any]:
    return {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": text,
    }


def asked(text: str) -> dict[str, Any]:
    return {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": text,
    }


def turn(id: str, agent: str, start: float, *, end: float | None = None) -> Span:
    ev = (
        "AgentSetup(input=[ChatMessage(role=<MessageRole.USER: 'user'>,"
        f" text='current_agent_name=')], current_agent_name={agent})"
    )
    given = {
        "input.value": json.dumps({"ctx": "<Context object at 0x7f>", "ev": ev}),
        "output.value": "AgentOutput(response=ChatMes...",
    }
    return run(
        id,
        "AgentWorkflow.run_agent_step",
        "CHAIN",
        LLAMA_INDEX,
        given,
        parent="w",
        start=start,
        end=end or start + 1,
    )


def model(
    id: str,
    parent: str,
    start: float,
    more: Mapping[str, Any],
    *,
    scope: str = LLAMA_INDEX,
    name: str = "OpenAI.chat",
) -> Span:
    return run(id, name, "LLM", scope, more, parent=parent, start=start, end=start + 0.1)


WORKFLOW = run(
    "w",
    "AgentWorkflow.run",
    "CHAIN",
    LLAMA_INDEX,
    {"output.value": "StopEvent(result=AgentOutput(response=ChatM..."},
    end=20,
)
CONTEXT = "<workflows.context.context.Context object at 0x7fa365d10e50>"


def test_the_turns_of_a_llama_index_workflow_are_runs_of_their_agents() -> None:
    handoff = {
        "tool.name": "handoff",
        "input.value": json.dumps({"kwargs": {"to_agent": "b", "ctx": CONTEXT}}),
    }
    [read_one] = of(
        WORKFLOW,
        turn("t1", "'a'", 1),
        model("m1", "t1", 1.1, asked("question") | asking("look", "{}")),
        run("c1", "AgentWorkflow.call_tool", "CHAIN", LLAMA_INDEX, parent="w", start=2, end=3),
        run(
            "look",
            "FunctionTool.acall",
            "TOOL",
            LLAMA_INDEX,
            {"tool.name": "look"},
            parent="c1",
            start=2.1,
            end=2.2,
            error="boom",
        ),
        turn("t2", "'a'", 4),
        run("c2", "AgentWorkflow.call_tool", "CHAIN", LLAMA_INDEX, parent="w", start=5, end=6),
        run(
            "handoff",
            "FunctionTool.acall",
            "TOOL",
            LLAMA_INDEX,
            handoff,
            parent="c2",
            start=5.1,
            end=5.2,
        ),
        turn("t3", '"b\'s"', 7),
        model("m3", "t3", 7.1, answering("answer")),
    )
    assert (read_one.agent, read_one.user_input, read_one.final_response) == (
        "a",
        "question",
        "answer",
    )
    assert [
        (call.name, call.arguments, call.agent, call.run, call.kind) for call in read_one.tool_calls
    ] == [
        ("look", {}, "a", span_id("t1"), "function"),
        ("handoff", {"to_agent": "b"}, "a", span_id("t1"), "handoff"),
    ]
    assert [(sub.span_id, sub.agent, sub.parent, sub.via) for sub in read_one.sub_agents] == [
        (span_id("t3"), "b's", "a", "handoff")
    ]


def test_three_model_spans_of_llama_index_are_one_call_with_the_content_of_the_innermost() -> None:
    raw = {
        "input.value": json.dumps({"messages": ["ChatMessage(role=<MessageRole.USER: 'user'>)"]})
    }
    counted = {"llm.token_count.prompt": 7, "llm.token_count.completion": 2}
    [read_one] = of(
        WORKFLOW,
        turn("t1", "'a'", 1),
        model("prepare", "t1", 1, raw, name="OpenAI._prepare_chat_with_tools"),
        model("outer", "t1", 1.2, raw),
        model("inner", "outer", 1.2, raw | asked("question") | answering("answer") | counted),
    )
    assert (len(read_one.model_calls), read_one.input_tokens, read_one.output_tokens) == (1, 7, 2)
    assert (read_one.user_input, read_one.final_response) == ("question", "answer")


@pytest.mark.parametrize(
    ("output", "result", "error"),
    [
        ({"raw_output": {"n": 1}, "is_error": False}, {"n": 1}, None),
        ({"raw_output": '{"n": 1}', "is_error": False}, {"n": 1}, None),
        ({"raw_output": {"error": "boom"}}, {"error": "boom"}, "boom"),
        ({"raw_output": "no such tool", "is_error": True}, "no such tool", "no such tool"),
    ],
)
def test_a_llama_index_tool_returned_its_raw_output(
    output: dict[str, Any], result: Any, error: str | None
) -> None:
    written = json.dumps(
        {
            "blocks": [{"text": "shown"}],
            "tool_name": "look",
            "raw_input": {"args": [], "kwargs": {}},
            **output,
        }
    )
    tool = run(
        "t",
        "FunctionTool.acall",
        "TOOL",
        LLAMA_INDEX,
        {"tool.name": "look", "output.value": written},
        parent="w",
        start=1,
        end=2,
    )
    [read_one] = of(WORKFLOW, tool)
    assert [(call.result, call.error) for call in read_one.tool_calls] == [(result, error)]


def smolagents_run() -> list[Span]:
    task = {
        "input.value": json.dumps({"task": "refund", "stream": False, "additional_args": None}),
        "output.value": "done",
    }
    wrapped = {
        "input.value": json.dumps(
            {"task": "You're a helpful agent.\nTask:\nbill it", "reset": True}
        ),
        "output.value": "billed",
    }
    given = {
        "tool.name": "look",
        "input.value": json.dumps(
            {"args": [], "sanitize_inputs_outputs": True, "kwargs": {"n": 1}}
        ),
    }
    final = {
        "tool.name": "final_answer",
        "input.value": json.dumps(
            {"args": ["done"], "sanitize_inputs_outputs": True, "kwargs": {}}
        ),
    }
    return [
        run("boss", "boss.run", "AGENT", SMOLAGENTS, task),
        run("s1", "Step 1", "CHAIN", SMOLAGENTS, parent="boss", start=1, end=3),
        model(
            "m1",
            "s1",
            1.1,
            asked("New task:\nrefund") | asking("billing", '{"task": "bill it"}'),
            scope=SMOLAGENTS,
        ),
        run("look", "SimpleTool", "TOOL", SMOLAGENTS, given, parent="s1", start=1.3, end=1.4),
        run("sub", "billing.run", "AGENT", SMOLAGENTS, wrapped, parent="s1", start=2, end=2.9),
        run("s1.1", "Step 1", "CHAIN", SMOLAGENTS, parent="sub", start=2, end=2.8),
        run(
            "inner",
            "LookTool",
            "TOOL",
            SMOLAGENTS,
            {**given, "tool.name": "inner"},
            parent="s1.1",
            start=2.1,
            end=2.2,
        ),
        run("s2", "Step 2", "CHAIN", SMOLAGENTS, parent="boss", start=4, end=6),
        model("m2", "s2", 4.1, asking("final_answer", '{"answer": "done"}'), scope=SMOLAGENTS),
        run("final", "FinalAnswerTool", "TOOL", SMOLAGENTS, final, parent="s2", start=4.3, end=4.4),
    ]


def test_an_agent_that_another_manages_is_called_like_a_tool() -> None:
    [read_one] = of(*smolagents_run())
    assert (read_one.agent, read_one.user_input, read_one.final_response) == (
        "boss",
        "refund",
        "done",
    )
    assert [
        (call.name, call.kind, call.arguments, call.result, call.agent)
        for call in read_one.tool_calls
    ] == [
        ("billing", "agent", {"task": "bill it"}, "billed", "boss"),
        ("look", "function", {"n": 1}, None, "boss"),
        ("inner", "function", {"n": 1}, None, "billing"),
        ("final_answer", "final_answer", {"answer": "done"}, None, "boss"),
    ]
    assert [(sub.agent, sub.parent, sub.via) for sub in read_one.sub_agents] == [
        ("billing", "boss", "agent")
    ]


STREAMED = "ChatMessageStreamDelta(content='one')ToolCall(name='look')FinalAnswerStep(output='no')"


@pytest.mark.parametrize(
    ("scope", "answer"), [(SMOLAGENTS, "Refunded."), (OTHER, STREAMED)]
)  # fmt: skip
def test_the_events_of_a_streamed_run_of_smolagents_are_no_answer(scope: str, answer: str) -> None:
    asks = asking("final_answer", '{"answer": "Refunded."}')
    spans = [
        run("a", "clerk.run", "AGENT", scope, {"output.value": STREAMED}),
        run("m", "Model.generate_stream", "LLM", scope, asks, parent="a", start=1, end=2),
    ]
    assert [one.final_response for one in of(*spans)] == [answer]


def test_the_input_of_an_agent_called_by_code_is_unknown() -> None:
    read_one = of(*(item for item in smolagents_run() if item.span_id != span_id("m1")))[0]
    assert [
        (call.kind, call.arguments) for call in read_one.tool_calls if call.name == "billing"
    ] == [("agent", None)]


def test_steps_of_an_agent_that_raised_are_one_invocation_under_its_id() -> None:
    [read_one] = of(*(item for item in smolagents_run() if item.span_id != span_id("boss")))
    assert (read_one.span_id, read_one.agent, read_one.user_input, read_one.final_response) == (
        span_id("boss"),
        None,
        "refund",
        "done",
    )
    assert [call.name for call in read_one.tool_calls] == [
        "billing",
        "look",
        "inner",
        "final_answer",
    ]
    assert "missing_root" in read_one.flags


def test_an_agent_inside_a_tool_is_no_second_call() -> None:
    spans = [
        run("boss", "boss.run", "AGENT", SMOLAGENTS),
        run(
            "t", "AskTool", "TOOL", SMOLAGENTS, {"tool.name": "ask"}, parent="boss", start=1, end=3
        ),
        run("sub", "billing.run", "AGENT", SMOLAGENTS, parent="t", start=1.1, end=2),
    ]
    assert [(call.name, call.kind) for call in of(*spans)[0].tool_calls] == [("ask", "agent")]


def test_a_crew_answers_with_its_raw_output() -> None:
    task = {
        "raw": "task",
        "pydantic": None,
        "messages": [{"role": "assistant", "content": "Thought: ...\nFinal Answer: task"}],
    }
    crew = {
        "raw": "answer",
        "pydantic": None,
        "json_dict": None,
        "tasks_output": [task],
        "token_usage": {"prompt_tokens": 9},
    }
    spans = [
        run(
            "crew",
            "refunds.kickoff",
            "CHAIN",
            CREWAI,
            {"input.value": '{"order": "42"}', "output.value": json.dumps(crew)},
        ),
        run(
            "a",
            "clerk.Check the order._execute_core",
            "AGENT",
            CREWAI,
            {"graph.node.id": "clerk", "output.value": json.dumps(task)},
            parent="crew",
        ),
        run(
            "t",
            "look.run",
            "TOOL",
            CREWAI,
            {"tool.name": "look", "input.value": '{"n": 1}'},
            parent="a",
            start=1,
            end=2,
        ),
    ]
    [read_one] = of(*spans)
    assert (
        read_one.agent,
        read_one.user_input,
        read_one.final_response,
        read_one.input_tokens,
    ) == ("clerk", None, "answer", None)
    assert [(call.name, call.arguments, call.agent) for call in read_one.tool_calls] == [
        ("look", {"n": 1}, "clerk")
    ]
    assert of(spans[1])[0].final_response == "task"


def test_the_input_of_an_agent_without_a_crew_is_its_messages() -> None:
    given = {
        "graph.node.id": "clerk",
        "input.value": '{"messages": "question"}',
        "output.value": '{"raw": "answer", "pydantic": null}',
    }
    [read_one] = of(run("a", "clerk.kickoff", "AGENT", CREWAI, given))
    assert (read_one.agent, read_one.user_input, read_one.final_response) == (
        "clerk",
        "question",
        "answer",
    )


@pytest.mark.parametrize(
    ("written", "arguments"),
    [(None, {}), ("{}", {}), ('{"n": 1}', {"n": 1}), ("__REDACTED__", None)],
)
def test_a_call_without_arguments_has_empty_arguments(written: str | None, arguments: Any) -> None:
    [read_one] = of(
        run("a", "a", "AGENT", OTHER), model("m", "a", 1, asking("look", written), scope=OTHER)
    )
    assert read_one.tool_calls == (
        ToolCall("look", arguments, agent="a", run=span_id("a"), group=0),
    )


def test_the_span_of_a_handoff_holds_agents_and_no_arguments() -> None:
    names = {"input.value": "a", "output.value": "billing"}
    spans = [
        run("a", "a", "AGENT", OTHER),
        model("m", "a", 1, asking("transfer_to_billing", '{"why": "bill"}'), scope=OTHER),
        run("h", "handoff to billing", "TOOL", OTHER, names, parent="a", start=2, end=3),
    ]
    assert [
        (call.name, call.kind, call.arguments, call.result) for call in of(*spans)[0].tool_calls
    ] == [("transfer_to_billing", "handoff", {"why": "bill"}, None)]


def test_a_failed_workflow_fails_although_its_agents_succeeded() -> None:
    failed = run("w", "AgentWorkflow.run", "CHAIN", LLAMA_INDEX, end=20, error="timed out")
    assert [(one.agent, one.error) for one in of(failed, turn("t1", "'a'", 1))] == [("a", True)]


def test_turns_whose_workflow_never_arrived_are_one_invocation() -> None:
    [read_one] = of(
        turn("t1", "'a'", 1), model("m", "t1", 1.1, answering("handed over")), turn("t2", "'b'", 3)
    )
    assert (read_one.span_id, read_one.agent, read_one.duration_s) == (span_id("w"), "a", 3)
    assert ([sub.agent for sub in read_one.sub_agents], "missing_root" in read_one.flags) == (
        ["b"],
        True,
    )


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Thought: I can answer.\nAnswer: 42", "42"),
        ("Thought: I need a tool.\nAction: look\nAction Input: {}", None),
        ("The Answer: 42", "The Answer: 42"),
    ],
)
def test_the_answer_of_an_agent_that_reasons_in_text_follows_its_thoughts(
    text: str, answer: str | None
) -> None:
    assert (
        of(WORKFLOW, turn("t1", "'a'", 1), model("m", "t1", 1.1, answering(text)))[0].final_response
        == answer
    )


@pytest.mark.parametrize("name", ["Delegate work to coworker", "ask_question_to_coworker"])
def test_the_coworker_tools_of_a_crew_call_agents(name: str) -> None:
    tool = run(
        "t",
        f"{name}.run",
        "TOOL",
        CREWAI,
        {"tool.name": name, "input.value": '{"coworker": "b"}'},
        parent="a",
        start=1,
        end=2,
    )
    assert [
        (call.name, call.kind)
        for call in of(run("a", "a.kickoff", "AGENT", CREWAI), tool)[0].tool_calls
    ] == [(name, "agent")]


@pytest.mark.parametrize(
    ("name", "parent", "may"),
    [
        ("AgentWorkflow.run", None, True),
        ("AgentWorkflow.run", "http", True),
        ("AgentWorkflow.call_tool", None, True),
        ("AgentWorkflow.call_tool", "w", False),
    ],
)
def test_runs_may_be_entry_spans_anywhere_and_steps_only_without_a_parent(
    name: str, parent: str | None, may: bool
) -> None:
    assert INSTALLED.may_be_entry(run("x", name, "CHAIN", LLAMA_INDEX, parent=parent)) is may


def test_a_failed_model_call_names_the_model_of_its_parameters() -> None:
    parameters = {"llm.invocation_parameters": json.dumps({"model": "small", "tools": []})}
    [read_one] = of(
        run("a", "desk", "AGENT", OTHER),
        run("m", "call", "LLM", OTHER, parameters, parent="a", error="500"),
    )
    assert (read_one.model, read_one.error) == ("small", True)


JAVASCRIPT = "@arizeai/openinference-instrumentation-openai-agents"


def test_a_failed_run_of_openai_agents_for_javascript_with_a_handoff_is_one_invocation() -> None:
    """Its outermost span is never exported."""
    handoff = {"tool.name": "handoff_to_billing"}
    [read_one] = of(
        span("r", "POST /chat", end=11),
        run("c", "Refunds", "CHAIN", JAVASCRIPT, parent="never sent", error="500"),
        run("a", "desk", "AGENT", JAVASCRIPT, {"graph.node.id": "desk"}, parent="c", end=4),
        run("m", "response", "LLM", JAVASCRIPT, asking("transfer_to_billing"), parent="a", end=2),
        run("h", "handoff to billing", "TOOL", JAVASCRIPT, handoff, parent="a", start=3, end=4),
        run("b", "billing", "AGENT", JAVASCRIPT, {"graph.node.id": "billing"}, parent="c", start=5),
        run("n", "response", "LLM", JAVASCRIPT, parent="b", start=6, error="500"),
    )
    assert (read_one.agent, read_one.error, read_one.flags >= {"lost_parents"}) == (
        "desk",
        True,
        True,
    )
    assert [(call.name, call.kind) for call in read_one.tool_calls] == [
        ("transfer_to_billing", "handoff")
    ]
    assert [one.agent for one in read_one.sub_agents] == ["billing"]


def test_a_stream_that_the_program_reads_is_no_answer() -> None:
    stream = {"output.value": "<groq.Stream object at 0x7f7e8b118cd0>"}
    [found] = of(
        run("a", "answer", "AGENT", "shop"),
        model("m", "a", 1, asked("question") | stream, scope="openinference.instrumentation.groq"),
    )
    assert (found.final_response, found.flags) == (
        None,
        frozenset({"content_missing", "no_tool_spans"}),
    )


def test_in_langchain_for_javascript_a_graph_inside_a_tool_is_a_sub_agent() -> None:
    """All runs have the name of the outermost agent in their metadata."""
    scope = "@arizeai/openinference-instrumentation-langchain"
    node = {"lc_agent_name": "desk", "langgraph_node": "tools"}

    def chain(id: str, name: str, parent: str, metadata: Mapping[str, str]) -> Span:
        more = {"metadata": json.dumps(metadata)}
        return run(id, name, "CHAIN", scope, more, parent=parent, start=2, end=5)

    message = {"lc": 1, "id": ["ToolMessage"], "kwargs": {"tool_call_id": "c1", "content": "Yes."}}
    called = {
        "tool.name": "ask_expert",
        "input.value": "Is it insured?",
        "output.value": json.dumps({"output": message}),
        "metadata": json.dumps(node),
    }
    [found] = of(
        run("a", "desk", "CHAIN", scope, {"metadata": '{"lc_agent_name": "desk"}'}),
        chain("n", "tools", "a", node),
        run("t", "ask_expert", "TOOL", scope, called, parent="n", start=2, end=6),
        chain("e", "expert", "t", node),
        chain("m", "model_request", "e", node | {"langgraph_node": "model_request"}),
        chain("r", "RunnableLambda", "t", node),
    )
    assert (found.agent, [sub.agent for sub in found.sub_agents]) == ("desk", ["expert"])
    assert [(call.id, call.kind, call.result) for call in found.tool_calls] == [
        ("c1", "agent", "Yes.")
    ]


def test_the_object_that_instructor_asks_for_is_the_answer_and_its_tool_no_work() -> None:
    around = span(
        "a",
        "instructor.create",
        {
            "openinference.span.kind": "CHAIN",
            "instructor.response_model": "Answer",
            "output.value": '{"text": "seven"}',
        },
        start=0,
        end=9,
        scope="openinference.instrumentation.instructor",
    )
    reply = asking("Answer", '{"text": "seven"}')
    [read_one] = of(around, model("m", "a", 1, reply, scope="openinference.instrumentation.openai"))
    assert (read_one.agent, read_one.final_response) == (None, '{"text": "seven"}')
    assert [(call.name, call.kind) for call in read_one.tool_calls] == [("Answer", "final_answer")]
    assert read_one.flags.isdisjoint({"lost_model_calls"})
