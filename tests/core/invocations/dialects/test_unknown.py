"""Spans that no dialect understands: what is read of them, and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span
from pathgauge.scorers.types import Invocation, ToolCall
from support.dialects import INSTALLED, read

ASKED = [{"role": "user", "content": "Where is order 42?"}]
CALLS = [{"id": "c1", "function": {"name": "find_order", "arguments": '{"id": 42}'}}]


def step(name: str, parent: str | None = None, start: float = 0, **attributes: Any) -> Span:
    keys = {
        f"acme.{key}": value if isinstance(value, str | int) else json.dumps(value)
        for key, value in attributes.items()
    }
    return span(
        name, name, keys, parent=parent, start=start, end=start + 1, trace="t", scope="acme"
    )


def run(**tool: Any) -> list[Span]:
    return [
        step("run", kind="agent", agent_name="support", session_id="s1"),
        step(
            "ask",
            "run",
            1,
            kind="llm",
            prompt={"messages": ASKED},
            completion={"role": "assistant", "tool_calls": CALLS},
            model="m1",
            usage={"prompt_tokens": 10, "completion_tokens": 2},
        ),
        step("find", "run", 2, kind="tool", tool_name="find_order", **tool),
        step(
            "answer",
            "run",
            3,
            kind="llm",
            prompt={"messages": ASKED},
            completion={"role": "assistant", "content": "In Paris."},
            model="m1",
            usage={"prompt_tokens": 20, "completion_tokens": 3},
        ),
    ]


def only(spans: list[Span]) -> Invocation:
    [found] = read(Trace("", spans[0].trace_id, tuple(spans)))
    return found


def test_messages_calls_and_tokens_are_recognised_by_their_structure() -> None:
    found = only(run(arguments={"id": 42}, result={"city": "Paris"}))
    assert (found.agent, found.user_input, found.final_response, found.conversation_id) == (
        "support",
        "Where is order 42?",
        "In Paris.",
        "s1",
    )
    assert (found.model, found.input_tokens, found.output_tokens) == ("m1", 30, 5)
    [call] = found.tool_calls
    assert (call.id, call.name, call.arguments, call.result) == (
        "c1",
        "find_order",
        {"id": 42},
        {"city": "Paris"},
    )
    assert (found.dialect, sorted(found.flags)) == ("unknown", ["unknown_dialect"])


def _call(spans: list[Span]) -> ToolCall:
    [call] = only(spans).tool_calls
    return call


@pytest.mark.parametrize(
    "tool",
    [
        {"result": {"city": "Paris"}, "output": {"city": "Rome"}},
        {"result": {"result": "Paris"}},
        {"result": "ToolOutput(content='Paris')"},
    ],
    ids=["two that differ", "what may be wrapped", "the repr of an object"],
)
def test_a_result_that_is_ambiguous_is_left_out(tool: dict[str, Any]) -> None:
    call = _call(run(arguments={"id": 42}, **tool))
    assert (call.arguments, call.result) == ({"id": 42}, None)


def test_spans_beside_agents_that_a_dialect_understands_are_not_read() -> None:
    known = span("a", "invoke_agent a", {"gen_ai.agent.name": "a"}, trace="t", scope="pydantic-ai")
    found = read(Trace("", known.trace_id, (known, *run())))
    assert [(one.agent, one.flags & {"unknown_dialect"}) for one in found] == [("a", frozenset())]


def test_what_states_tokens_around_model_calls_and_tools_is_a_run() -> None:
    spans = run(arguments={"id": 42}, result="Paris")
    spans[0] = step("run", kind="llm", usage={"prompt_tokens": 20, "completion_tokens": 3})
    assert (only(spans).input_tokens, len(only(spans).tool_calls)) == (30, 1)


def test_spans_of_another_subject_are_not_decoded() -> None:
    one = span("1", "GET /", {"user_agent.original": "Mozilla/5.0", "url.path": "/"}, scope="app")

    class Sealed(Span):
        @property
        def attributes(self) -> Any:
            raise AssertionError

    assert INSTALLED.classify(Sealed(one.raw, one.resource, one.scope)) == ("other", ())


@pytest.mark.parametrize(
    ("scope", "attributes", "expected"),
    [
        ("acme", {"llm.prompt": "Where?"}, True),
        ("acme", {"http.request.method": "POST", "url.full": "/v1/chat/completions"}, False),
        ("acme", {"db.system": "sqlite", "db.statement": "SELECT tool, input FROM agents"}, False),
        ("opentelemetry.instrumentation.httpx", {"llm.prompt": "Where?"}, False),
        ("@opentelemetry/instrumentation-http", {"tool.input": "{}"}, False),
        ("opentelemetry.instrumentation.acme_llm", {"llm.prompt": "Where?"}, True),
    ],
)
def test_requests_and_queries_of_the_application_are_no_unread_agents(
    scope: str, attributes: dict[str, Any], expected: bool
) -> None:
    one = span("a", "call", attributes, trace="t", scope=scope)
    assert INSTALLED.is_unread(one, INSTALLED.classify(one)) is expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("Where is order 42?", "Where is order 42?"),
        ("New task:\nWhere is order 42?", None),
        ("Where?\n\nAnswer in one sentence.", None),
    ],
)
def test_a_prompt_of_several_lines_may_be_a_template_so_that_the_words_of_the_user_are_unknown(
    asked: str, expected: str | None
) -> None:
    prompt = {"messages": [{"role": "user", "content": asked}]}
    model = step("ask", "run", 1, kind="llm", prompt=prompt, completion={"text": "In Paris."})
    found = only([step("run", kind="agent", agent_name="support"), model])
    assert (found.user_input, sorted(found.flags & {"unknown_dialect"})) == (
        expected,
        ["unknown_dialect"],
    )


def test_a_step_with_the_name_and_arguments_of_a_tool_is_a_call_whatever_its_class() -> None:
    call = _call(
        [
            step("run", kind="agent", agent_name="support"),
            step("BaseAgent.task", "run", 1, tool_name="find_order", tool_arguments={"id": 42}),
            step("FunctionTool.task", "BaseAgent.task", 1, input={"kwargs": {"id": 42}}),
        ]
    )
    assert (call.name, call.arguments) == ("find_order", {"id": 42})


def test_whether_a_person_is_asked_is_no_text_of_a_user() -> None:
    found = only([step("run", kind="agent", agent_name="support", human_input="False")])
    assert found.user_input is None


def conventional(operation: str, name: str, parent: str, start: float, **more: Any) -> Span:
    key = "gen_ai.agent.name" if operation == "invoke_agent" else "gen_ai.tool.name"
    attributes = {"gen_ai.operation.name": operation, key: name, **more}
    title = f"{operation} {name}"
    return span(name, title, attributes, parent=parent, start=start, end=start + 2, scope="house")


@pytest.mark.parametrize(
    ("name", "outer"),
    [("refund_workflow.run", ["top"]), ("refunds of today", ["find", "pay"])],
)
def test_agents_of_the_conventions_work_for_one_turn_below_a_span_that_is_called_a_workflow(
    name: str, outer: list[str]
) -> None:
    top = span("top", name, {"id": "r1"}, end=9, scope="house")
    agents = [
        conventional("invoke_agent", "find", "top", 1),
        conventional("invoke_agent", "pay", "top", 4),
    ]
    found = read(Trace("", top.trace_id, (top, *agents)))
    ids = {one.span_id: one.name for one in (top, *agents)}
    assert [ids[one.span_id].removeprefix("invoke_agent ") for one in found] == [
        name if one == "top" else one for one in outer
    ]


@pytest.mark.parametrize(
    ("result", "is_flagged"), [({"result": 7}, True), ({"total": 7}, False), ([7], False)]
)
def test_a_result_of_the_conventions_that_a_framework_may_have_wrapped_is_kept_and_has_a_flag(
    result: Any, is_flagged: bool
) -> None:
    written = {"gen_ai.tool.call.result": json.dumps(result)}
    agent = span("a", "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent"}, end=9)
    call = conventional("execute_tool", "sum", "a", 1, **written)
    [found] = read(Trace("", agent.trace_id, (agent, call)))
    assert found.tool_calls[0].result == result
    assert ("unknown_dialect" in found.flags) is is_flagged


@pytest.mark.parametrize(
    ("name", "is_flagged"), [("Orders-look_up", True), ("look-up", False), ("look_up", False)]
)
def test_a_name_of_the_conventions_that_may_begin_with_that_of_a_plugin_is_kept_and_has_a_flag(
    name: str, is_flagged: bool
) -> None:
    agent = span("a", "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent"}, end=9)
    call = conventional("execute_tool", name, "a", 1)
    [found] = read(Trace("", agent.trace_id, (agent, call)))
    assert found.tool_calls[0].name == name
    assert ("unknown_dialect" in found.flags) is is_flagged


def test_arguments_of_a_callable_and_of_a_wrapping_object_are_read() -> None:
    assert _call(run(input={"args": [], "kwargs": {"id": 42}})).arguments == {"id": 42}
    assert _call(run(input={"input": {"id": 42}, "options": None})).arguments == {"id": 42}


@pytest.mark.parametrize(
    ("name", "attributes"),
    [("crew.workflow", {"operation": "invoke_agent"}), ("chat", {"agent_name": "user"})],
)
def test_the_name_of_a_workflow_or_of_a_person_is_no_name_of_an_agent(
    name: str, attributes: dict[str, Any]
) -> None:
    top = step(name, kind="agent", **attributes)
    spans = [step("ask", name, 1, kind="llm", prompt={"messages": ASKED})]
    assert only([top, *spans]).agent is None


def test_what_a_tool_does_is_none_of_the_calls_that_a_model_span_sums_up() -> None:
    spans = run(arguments={"id": 42}, result="Paris")
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    said = {"role": "assistant", "content": "Paris"}
    inner = step(
        "inner", "find", 2.2, kind="llm", prompt={"messages": ASKED}, completion=said, usage=usage
    )
    find = step("find", "ask", 2, kind="tool", tool_name="find_order", arguments={"id": 42})
    found = only([*spans[:2], find, inner, spans[3]])
    assert (found.input_tokens, len(found.model_calls)) == (35, 3)


def test_a_span_that_only_mentions_a_tool_is_no_call() -> None:
    spans = run(call_id="c1")
    spans.append(step("reply", "answer", 3, tool_name="find_order", response_wait_ms=3))
    assert [(call.id, call.result) for call in only(spans).tool_calls] == [("c1", None)]


@pytest.mark.parametrize("key", ["system_prompt", "systemInput"])
def test_the_prompt_of_the_program_is_not_what_a_user_asked(key: str) -> None:
    spans = run(arguments={"id": 42}, result="Paris")
    prompt: dict[str, Any] = {key: "Be brief."}
    spans[0] = step("run", kind="agent", agent_name="support", **prompt)
    assert only(spans).user_input == "Where is order 42?"


def test_a_span_of_an_agent_with_the_name_of_a_tool_is_a_tool_call() -> None:
    spans = run(arguments={"id": 42}, result="Paris")
    spans[2] = step("ask_agent", "run", 2, kind="agent", tool_name="find_order", result="Paris")
    assert [call.name for call in only(spans).tool_calls] == ["find_order"]


@pytest.mark.parametrize("key", ["code.function.name", "spanFunctionName"])
def test_a_span_of_an_agent_with_the_name_of_a_function_of_the_code_is_no_tool(key: str) -> None:
    spans = run(arguments={"id": 42}, result="Paris")
    named: dict[str, Any] = {key: "answer_question"}
    spans[0] = step("run", input="Where is it?", output="In Paris.", kind="agent", **named)
    found = only(spans)
    assert (found.user_input, found.final_response) == ("Where is it?", "In Paris.")
    assert [call.name for call in found.tool_calls] == ["find_order"]


def test_a_method_of_a_class_of_the_framework_is_no_tool() -> None:
    spans = run(arguments={"id": 42}, result="Paris")
    method: dict[str, Any] = {"function.name": "ChatFormatter.format"}
    arguments = {"args": [], "kwargs": {"messages": ASKED}}
    spans.append(step("format", "run", 0.5, function_input=arguments, output=ASKED, **method))
    assert [call.name for call in only(spans).tool_calls] == ["find_order"]


def test_arguments_may_stand_beside_the_name_of_the_tool() -> None:
    call = _call(run(input={"action": "find_order", "params": {"id": 42}}, result="Paris"))
    assert call.arguments == {"id": 42}


@pytest.mark.parametrize(
    ("result", "read"),
    [
        ({"success": True, "error": None, "content": "Paris"}, None),
        ({"error": None, "city": "Paris"}, {"error": None, "city": "Paris"}),
    ],
)
def test_what_states_success_beside_no_error_is_around_a_result(result: Any, read: Any) -> None:
    assert _call(run(arguments={"id": 42}, result=result)).result == read


@pytest.mark.parametrize(("output", "failed"), [({}, True), ({"result": "Paris"}, False)])
def test_an_exception_is_a_failure_if_nothing_came_out(
    output: dict[str, str], failed: bool
) -> None:
    tool = span(
        "find",
        "find_order",
        {"acme.kind": "tool", "acme.tool_name": "find_order", "acme.arguments": "{}"}
        | {f"acme.{key}": value for key, value in output.items()},
        parent="run",
        trace="t",
        start=2,
        end=3,
        scope="acme",
        events=[("exception", {"exception.message": "no such order"})],
    )
    spans = run()
    spans[2] = tool
    assert _call(spans).error == ("no such order" if failed else None)


def test_without_the_name_of_the_first_agent_that_of_a_later_one_is_not_taken() -> None:
    spans = [
        step("pipeline", kind="workflow", input="Where is order 42?", output="In Paris."),
        step("agent run", "pipeline", 1, kind="agent", input="Where is order 42?", output="Ask."),
        step("desk", "pipeline", 3, kind="agent", agent_name="desk", output="In Paris."),
    ]
    assert only(spans).agent is None


def test_steps_that_are_written_beside_what_happened_in_them_are_no_runs() -> None:
    said: dict[str, Any] = {"kind": "chain", "agent_name": "support"}
    steps = [step(f"graph.chain {name}", "run", **said) for name in ("graph", "model")]
    spans = [step("run", route="/ask"), *steps, *run(arguments={"id": 42}, result="Paris")[1:]]
    found = only(spans)
    assert (found.user_input, len(found.model_calls)) == ("Where is order 42?", 2)


@pytest.mark.parametrize(
    ("written", "result"),
    [
        ({"type": "json", "value": {"city": "Paris"}}, {"city": "Paris"}),
        ({"type": "text", "value": "Paris"}, "Paris"),
        ({"type": "city", "value": "Paris"}, None),
        ([{"role": "unknown", "content": '{"city": "Paris"}'}], {"city": "Paris"}),
    ],
)
def test_a_result_is_read_without_its_type_and_without_the_message_around_it(
    written: Any, result: Any
) -> None:
    assert _call(run(input={"id": 42}, output=written)).result == result


@pytest.mark.parametrize(
    ("attributes", "arguments"),
    [
        ({"call.kwargs.id": 42, "call.kwargs.city": "Paris"}, {"id": 42, "city": "Paris"}),
        ({"call.arguments.id": 42}, {"id": 42}),
        ({"tool.parameters": {"id": 42}}, {"id": 42}),
        ({"tool.parameters": {"type": "object", "properties": {"id": {}}}}, None),
    ],
)
def test_arguments_may_be_attributes_of_their_own(
    attributes: dict[str, Any], arguments: Any
) -> None:
    spans = [
        step("run", kind="agent", agent_name="support"),
        step("ask", "run", 1, kind="llm", prompt={"messages": ASKED}, model="m1"),
        step("find", "run", 2, kind="tool", tool_name="find_order", **attributes),
    ]
    assert _call(spans).arguments == arguments


def test_what_a_function_returned_is_the_result() -> None:
    assert _call(run(**{"call.kwargs.id": 42, "call.return": "Paris"})).result == "Paris"


def test_a_call_inside_the_model_call_that_asked_for_it_is_not_carried_out() -> None:
    asked = step("asked", "ask", 1, kind="tool", tool_name="find_order", call_id="c1")
    spans = run(input={"id": 42}, output={"city": "Paris"})
    assert only([*spans, asked]).tool_calls == only(spans).tool_calls


def test_the_only_message_of_a_prompt_may_hold_the_whole_prompt() -> None:
    prompt = [{"role": "user", "content": json.dumps(ASKED)}]
    spans = [
        step("run", kind="agent", agent_name="support"),
        step("ask", "run", 1, kind="llm", prompt=prompt, model="m1", completion="In Paris."),
    ]
    assert only(spans).user_input == ASKED[0]["content"]


def test_the_repr_of_a_state_is_no_question() -> None:
    state = "{'messages': [HumanMessage(content='Where is order 42?')]}"
    spans = [
        step("run", kind="agent", agent_name="support", input=state),
        step("ask", "run", 1, kind="llm", prompt=state, model="m1", completion="In Paris."),
    ]
    assert only(spans).user_input is None


def test_what_calls_an_agent_with_a_tool_is_a_run() -> None:
    spans = [
        step("root", kind="record"),
        step("ask", "root", 1, kind="llm", prompt={"messages": ASKED}, model="m1"),
        step("call", "root", 2, kind="tool", tool_name="ask_billing", input={"id": 42}),
        step("billing", "call", 2.1, kind="agent", agent_name="billing"),
        step("think", "billing", 2.2, kind="llm", prompt={"messages": ASKED}, model="m1"),
    ]
    found = only(spans)
    assert (found.span_id, [one.agent for one in found.sub_agents]) == (
        spans[0].span_id,
        ["billing"],
    )
    assert [call.name for call in found.tool_calls] == ["ask_billing"]


def test_an_agent_that_calls_another_with_a_tool_keeps_its_name() -> None:
    spans = [
        step("run", kind="agent", agent_name="support"),
        step("ask", "run", 1, kind="llm", prompt={"messages": ASKED}, model="m1"),
        step("call", "run", 2, kind="tool", tool_name="ask_billing", input={"id": 42}),
        step("billing", "call", 2.1, kind="agent", agent_name="billing"),
    ]
    found = only(spans)
    assert (found.agent, [one.agent for one in found.sub_agents]) == ("support", ["billing"])


@pytest.mark.parametrize("key", ["result.isError", "output.is_error"])
def test_whether_a_result_is_an_error_is_no_result(key: str) -> None:
    assert _call(run(arguments={"id": 42}, **{key: "True"})).result is None
    assert _call(run(arguments={"id": 42}, result="Paris", **{key: "False"})).result == "Paris"


def test_the_schemas_of_arguments_are_no_arguments() -> None:
    schemas = {"id": {"type": "integer"}}
    assert _call(run(args=schemas, input={"id": 42})).arguments == {"id": 42}
    assert _call(run(args=schemas)).arguments == {"id": 42}  # as the model asked


def test_a_name_in_brackets_is_no_name_of_a_tool() -> None:
    spans = run(arguments={"id": 42}, result="Paris")
    around: dict[str, Any] = {"function.name": "<workflow>"}
    spans.append(step("around", "run", 0.5, input={"id": 1}, output="Paris", **around))
    assert [call.name for call in only(spans).tool_calls] == ["find_order"]


@pytest.mark.parametrize(
    ("said", "asked"),
    [({"step_name": "ToolCall"}, []), ({"prompt": "Where?", "output": "In Paris."}, ["Where?"])],
)
def test_a_method_of_a_class_for_agents_is_no_agent_if_nothing_is_said_in_it(
    said: dict[str, Any], asked: list[str]
) -> None:
    agent = step("BaseAgent.call", agent_kind=1, tool_count=0, **said)
    assert [one.user_input for one in read(Trace("", agent.trace_id, (agent,)))] == asked


def test_a_span_that_only_calls_itself_an_agent_has_a_flag() -> None:
    agent = span("a", "Agent: 'clerk' generate", {}, trace="t", scope="acme")
    assert only([agent, conventional("chat", "chat gpt", "a", 1)]).flags >= {"unknown_dialect"}
    request = span("a", "POST /agent", {"http.request.method": "POST"}, trace="t", scope="web")
    assert not only([request, conventional("chat", "chat gpt", "a", 1)]).flags >= {
        "unknown_dialect"
    }
