"""The rules of the reader one by one, with handwritten traces. test_captures has real ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.testing import log, span, span_id, trace_id
from pathgauge.scorers.types import AgentRun, Invocation, ToolCall
from support.dialects import read


def of(*items: Span | LogRecord) -> list[Invocation]:
    spans = tuple(item for item in items if isinstance(item, Span))
    logs = tuple(item for item in items if isinstance(item, LogRecord))
    return read(Trace("", trace_id("trace"), spans, logs))


def agent(
    id: str = "agent",
    name: str = "a",
    *,
    parent: str | None = None,
    start: float = 0,
    end: float = 10,
    error: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> Span:
    return span(
        id,
        f"invoke_agent {name}",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **(more or {})},
        parent=parent,
        start=start,
        end=end,
        error=error,
    )


def chat(
    id: str,
    start: float,
    output: Any = None,
    *,
    parent: str | None = "agent",
    more: Mapping[str, Any] | None = None,
) -> Span:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 1,
    }
    if output is not None:
        attributes["gen_ai.output.messages"] = json.dumps([output])
    return span(
        id, "chat gpt", {**attributes, **(more or {})}, parent=parent, start=start, end=start + 0.5
    )


def tool(
    id: str,
    name: str,
    start: float,
    *,
    parent: str | None = "agent",
    error: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **(more or {})}
    return span(
        id,
        f"execute_tool {name}",
        attributes,
        parent=parent,
        start=start,
        end=start + 0.5,
        error=error,
    )


def asking(*calls: tuple[str, Mapping[str, Any]], text: str | None = None) -> dict[str, Any]:
    """An assistant message that asks for calls; their ids are c0, c1, ..."""
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    parts += [
        {"type": "tool_call", "id": f"c{i}", "name": name, "arguments": dict(args)}
        for i, (name, args) in enumerate(calls)
    ]
    return {"role": "assistant", "parts": parts, "finish_reason": "tool_call"}


def names(invocation: Invocation) -> list[str]:
    return [call.name for call in invocation.tool_calls]


def test_a_trace_without_agents_and_models_has_no_invocation() -> None:
    assert of(span("http", "GET /"), span("db", "SELECT", parent="http")) == []


def test_a_model_call_without_a_parent_is_no_invocation() -> None:
    assert of(chat("m", 0, parent=None)) == []


def test_model_calls_without_an_agent_belong_to_the_entry_of_the_process() -> None:
    [read_one] = of(
        span("http", "POST /chat", {"test.case.id": "s"}, end=3),
        chat("m", 0, asking(("look", {})), parent="http"),
    )
    assert (read_one.span_id, read_one.agent, read_one.scenario_id, names(read_one)) == (
        span_id("http"),
        None,
        "s",
        ["look"],
    )


def test_spans_whose_parent_never_arrived_form_an_invocation_under_its_id() -> None:
    [read_one] = of(
        chat("m", 1, asking(("look", {})), parent="lost"), tool("t", "look", 2, parent="lost")
    )
    assert (read_one.span_id, names(read_one), read_one.duration_s) == (
        span_id("lost"),
        ["look"],
        1.5,
    )
    assert sorted(read_one.flags) == ["content_missing", "missing_root"]


def test_several_turns_in_one_trace_are_several_invocations() -> None:
    read_all = of(
        span("http", "WS /", end=30),
        agent("one", parent="http"),
        agent("two", parent="http", start=20, end=25),
    )
    assert [one.span_id for one in read_all] == [span_id("one"), span_id("two")]


def test_two_spans_for_one_run_of_an_agent_are_one_run() -> None:
    [read_one] = of(
        agent("outer"),
        agent("inner", parent="outer", start=1, end=9),
        tool("t", "look", 2, parent="inner"),
    )
    assert (read_one.span_id, read_one.sub_agents, names(read_one)) == (
        span_id("outer"),
        (),
        ["look"],
    )


def test_two_spans_for_one_model_call_count_its_tokens_once() -> None:
    [read_one] = of(agent(), chat("m", 1), chat("client", 1.1, parent="m"))
    assert (read_one.input_tokens, read_one.output_tokens, len(read_one.model_calls)) == (10, 1, 1)


def test_two_spans_for_one_tool_call_are_one_call() -> None:
    mcp = span(
        "mcp",
        "tools/call look",
        {"mcp.method.name": "tools/call", "gen_ai.tool.name": "look"},
        parent="t",
        start=2.1,
        end=2.2,
    )
    [read_one] = of(agent(), tool("t", "look", 2), mcp)
    assert names(read_one) == ["look"]


def test_totals_of_an_agent_count_only_if_no_model_call_has_tokens() -> None:
    totals = {"gen_ai.usage.input_tokens": 99, "gen_ai.usage.output_tokens": 9}
    assert of(agent(more=totals), chat("m", 1))[0].input_tokens == 10
    bare = span("m", "chat gpt", {"gen_ai.operation.name": "chat"}, parent="agent", start=1)
    assert of(agent(more=totals), bare)[0].input_tokens == 99


def test_calls_come_in_the_order_in_which_the_model_asked_for_them() -> None:
    asked = asking(("slow", {"n": 1}), ("fast", {"n": 2}))
    [read_one] = of(
        agent(),
        chat("m", 0, asked),
        tool("t2", "fast", 1, more={"gen_ai.tool.call.id": "c1"}),
        tool("t1", "slow", 2, more={"gen_ai.tool.call.id": "c0"}),
        chat("m2", 3, asking(("again", {}))),
        tool("t3", "again", 4),
    )
    assert [(call.name, call.group) for call in read_one.tool_calls] == [
        ("slow", 0),
        ("fast", 0),
        ("again", 1),
    ]


def test_calls_without_ids_are_joined_by_name_and_occurrence() -> None:
    [read_one] = of(
        agent(),
        chat("m", 0, asking(("get", {"n": 1}), ("get", {"n": 2}))),
        tool("b", "get", 2, error="boom"),
        tool("a", "get", 1),
    )
    assert [(call.arguments, call.error) for call in read_one.tool_calls] == [
        ({"n": 1}, None),
        ({"n": 2}, "boom"),
    ]


def test_a_call_without_a_span_is_read_from_the_message() -> None:
    [read_one] = of(agent(), chat("m", 0, asking(("transfer_to_billing", {"why": "bill"}))))
    assert read_one.tool_calls == (
        ToolCall(
            "transfer_to_billing",
            {"why": "bill"},
            "c0",
            agent="a",
            run=span_id("agent"),
            kind="handoff",
            group=0,
        ),
    )


def test_a_result_is_read_from_the_next_model_input_where_the_tool_span_has_none() -> None:
    shown = json.dumps(
        [
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c0", "response": {"ok": 1}}],
            }
        ]
    )
    [read_one] = of(
        agent(),
        chat("m", 0, asking(("look", {}))),
        tool("t", "look", 1),
        chat("m2", 2, more={"gen_ai.input.messages": shown}),
    )
    assert read_one.tool_calls[0].result == {"ok": 1}


def test_arguments_of_the_model_precede_those_of_the_tool_span() -> None:
    run_with = {"gen_ai.tool.call.arguments": '{"amount": 100.0, "user": "injected"}'}
    [read_one] = of(
        agent(), chat("m", 0, asking(("pay", {"amount": 100}))), tool("t", "pay", 1, more=run_with)
    )
    assert read_one.tool_calls[0].arguments == {"amount": 100}


@pytest.mark.parametrize(
    ("attributes", "arguments", "flags"),
    [
        ({}, None, ["content_missing"]),
        ({"gen_ai.tool.call.arguments": "{}"}, {}, []),
        ({"gen_ai.tool.call.arguments": {"n": 1}}, {"n": 1}, []),
        ({"gen_ai.tool.call.arguments": "free text"}, "free text", []),
        ({"gen_ai.tool.call.arguments": '{"n": "cut'}, None, ["content_missing", "truncated"]),
        ({"gen_ai.tool.call.arguments": "__REDACTED__"}, None, ["content_missing", "redacted"]),
    ],
)
def test_arguments_that_were_not_recorded_are_not_empty_ones(
    attributes: dict[str, Any], arguments: Any, flags: list[str]
) -> None:
    [read_one] = of(agent(), tool("t", "look", 1, more=attributes))
    assert (read_one.tool_calls[0].arguments, sorted(read_one.flags)) == (arguments, flags)


def test_a_tool_that_reports_an_error_in_its_result_failed() -> None:
    [read_one] = of(
        agent(),
        tool(
            "t",
            "look",
            1,
            more={
                "gen_ai.tool.call.arguments": "{}",
                "gen_ai.tool.call.result": '{"error": "no such order"}',
            },
        ),
    )
    assert read_one.tool_calls[0].error == "no such order"


def test_a_failed_tool_alone_does_not_fail_the_turn() -> None:
    [read_one] = of(agent(), tool("t", "look", 1, error="boom"))
    assert (read_one.error, read_one.tool_calls[0].error) == (False, "boom")


def test_the_agent_that_answers_after_a_handoff_decides_on_failure() -> None:
    workflow = span(
        "agent", "invoke_workflow w", {"gen_ai.operation.name": "invoke_workflow"}, end=10
    )
    first = agent("first", "first", parent="agent", end=3)
    last = span(
        "last",
        "invoke_agent last",
        {"gen_ai.operation.name": "invoke_agent", "error.type": "Timeout"},
        parent="agent",
        start=4,
        end=9,
        error="late",
    )
    [read_one] = of(workflow, first, tool("t", "transfer_to_last", 2, parent="first"), last)
    assert (read_one.agent, read_one.error, read_one.error_type) == ("first", True, "Timeout")
    assert [(run.agent, run.via, run.parent) for run in read_one.sub_agents] == [
        ("last", "handoff", "first")
    ]


def test_an_agent_under_a_tool_is_a_sub_agent_whose_answer_is_not_the_turns() -> None:
    [read_one] = of(
        agent(),
        tool("t", "ask_billing", 1),
        agent("sub", "billing", parent="t", start=1.1, end=1.4),
        chat("m", 1.2, {"role": "assistant", "content": "inner"}, parent="sub"),
        chat("m2", 2, {"role": "assistant", "content": "outer"}),
    )
    assert (read_one.final_response, read_one.input_tokens, read_one.tool_calls[0].kind) == (
        "outer",
        20,
        "agent",
    )
    assert [(run.agent, run.via, run.parent) for run in read_one.sub_agents] == [
        ("billing", "agent", "a")
    ]
    assert isinstance(read_one.sub_agents[0], AgentRun)


def test_a_model_call_that_failed_gave_no_answer() -> None:
    failed = span(
        "m",
        "chat gpt",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.output.messages": '[{"role":"assistant","content":"half an ans"}]',
        },
        parent="agent",
        error="cut",
    )
    assert of(agent(), failed)[0].final_response is None


def test_what_was_said_before_the_question_is_no_answer() -> None:
    state = [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Where is it?"}]
    [found] = of(agent(more={"gen_ai.output.messages": json.dumps(state)}))
    assert found.final_response is None


def test_content_in_log_records_is_the_content_of_their_span() -> None:
    body = {
        "message": {"role": "assistant", "content": "from a log"},
        "index": 0,
        "finish_reason": "stop",
    }
    logs = [
        log("gen_ai.user.message", body={"content": "asked in a log"}, span="m", time=1),
        log("gen_ai.choice", body=body, span="m", time=2),
    ]
    [read_one] = of(agent(), chat("m", 1), *logs)
    assert (read_one.user_input, read_one.final_response) == ("asked in a log", "from a log")


def test_content_in_span_events_is_the_content_of_their_span() -> None:
    events = [
        (
            "gen_ai.content.prompt",
            {"gen_ai.prompt": '[{"role": "user", "content": "asked in an event"}]'},
        ),
        (
            "gen_ai.content.completion",
            {"gen_ai.completion": '[{"role": "assistant", "content": "from an event"}]'},
        ),
    ]
    model = span(
        "m", "chat gpt", {"gen_ai.operation.name": "chat"}, parent="agent", start=1, events=events
    )
    [read_one] = of(agent(), model)
    assert (read_one.user_input, read_one.final_response) == ("asked in an event", "from an event")


def test_message_events_on_the_span_itself_are_read_too() -> None:
    events = [
        ("gen_ai.user.message", {"content": "hello"}),
        ("gen_ai.choice", {"content": "hi there", "finish_reason": "stop"}),
    ]
    model = span(
        "m", "chat gpt", {"gen_ai.operation.name": "chat"}, parent="agent", start=1, events=events
    )
    [read_one] = of(agent(), model)
    assert (read_one.user_input, read_one.final_response) == ("hello", "hi there")


def test_calls_without_any_record_are_flagged_as_unknown() -> None:
    [read_one] = of(agent(), chat("m", 1, more={"gen_ai.response.finish_reasons": ["tool_calls"]}))
    assert "no_tool_spans" in read_one.flags


def test_a_subtree_without_its_parent_belongs_to_the_agent_during_which_it_ran() -> None:
    [read_one] = of(
        agent(),
        tool("t", "look", 2, parent="lost"),
        chat("m", 1, asking(("look", {"n": 1})), parent="lost too"),
    )
    assert (
        names(read_one),
        read_one.tool_calls[0].arguments,
        "orphan_spans" in read_one.flags,
    ) == (["look"], {"n": 1}, True)


def test_two_agents_under_one_lost_parent_are_two_invocations() -> None:
    read_all = of(agent("one", parent="lost"), agent("two", parent="lost", start=1, end=2))
    assert [one.span_id for one in read_all] == [span_id("one"), span_id("two")]


def test_cycles_of_parents_are_cut_and_read() -> None:
    [read_one] = of(
        agent("x", parent="y"),
        agent("y", "b", parent="x", start=1, end=2),
        tool("t", "look", 1.5, parent="y"),
    )
    assert (read_one.span_id, names(read_one)) == (span_id("x"), ["look"])


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (
            [
                agent(more={"test.case.id": "anchor"}),
                tool("t", "x", 1, more={"test.case.id": "child"}),
            ],
            "anchor",
        ),
        ([agent(more={"scenario.id": "later key", "test.case.id": "earlier key"})], "earlier key"),
        (
            [
                span("http", "POST /", {"test.case.id": "above"}, end=11),
                agent(parent="http"),
                tool("t", "x", 1, more={"test.case.id": "child"}),
            ],
            "above",
        ),
        ([agent(), tool("t", "x", 1, more={"test.case.id": "child"})], "child"),
        ([agent(), log("anything", {"test.case.id": "log"}, span="agent")], "log"),
        ([span("agent", "invoke_agent a", trace_state="other=1,pathgauge=c:state;r:7")], "state"),
        ([agent(more={"langfuse.trace.metadata.test.case.id": '"wrapped"'})], "wrapped"),
        ([agent(more={"metadata": '{"scenario_id": "in json"}'})], "in json"),
        ([span("agent", "invoke_agent a", resource={"test.case.id": "process"})], "process"),
        ([agent(more={"test.case.id": ""})], None),
        ([agent()], None),
    ],
)
def test_sources_of_the_scenario_id_in_their_order(
    items: list[Span | LogRecord], expected: str | None
) -> None:
    assert of(*items)[0].scenario_id == expected


def test_different_scenario_ids_in_one_source_are_a_conflict() -> None:
    [read_one] = of(
        agent(),
        tool("t", "x", 1, more={"test.case.id": "one"}),
        tool("u", "y", 2, more={"test.case.id": "two"}),
    )
    assert (read_one.scenario_id, "scenario_conflict" in read_one.flags) == (None, True)


def test_an_end_before_the_start_is_flagged_and_gives_no_duration() -> None:
    [read_one] = of(span("agent", "invoke_agent a", start=5, end=4))
    assert (read_one.duration_s, "clock_skew" in read_one.flags) == (None, True)


def test_an_adk_span_for_merged_calls_is_no_call() -> None:
    merged = span(
        "x",
        "execute_tool (merged)",
        {"gen_ai.tool.name": "(merged tools)", "gen_ai.operation.name": "execute_tool"},
        parent="agent",
        scope="gcp.vertex.agent",
    )
    assert names(of(agent(), merged, tool("t", "look", 1))[0]) == ["look"]


def test_an_agent_with_nothing_below_it_may_have_called_anything() -> None:
    assert "no_tool_spans" in of(agent())[0].flags


def test_calls_that_one_model_call_hides_are_unknown_although_others_are_shown() -> None:
    hidden = chat(
        "m2",
        2,
        more={
            "gen_ai.response.finish_reasons": ["tool_calls"],
            "gen_ai.output.messages": '[{"role": "assis',
        },
    )
    [read_one] = of(agent(), chat("m", 0, asking(("look", {}))), tool("t", "look", 1), hidden)
    assert "no_tool_spans" in read_one.flags


def test_one_id_for_all_calls_of_a_message_does_not_swap_them() -> None:
    asked = asking(("look", {"n": 1}), ("pay", {"n": 2}))
    for part in asked["parts"]:
        part["id"] = "call_0"
    spans = [
        tool("t1", "look", 1, more={"gen_ai.tool.call.id": "call_0"}),
        tool("t2", "pay", 2, more={"gen_ai.tool.call.id": "call_0"}),
    ]
    [read_one] = of(agent(), chat("m", 0, asked), *spans)
    assert [(call.name, call.arguments) for call in read_one.tool_calls] == [
        ("look", {"n": 1}),
        ("pay", {"n": 2}),
    ]


def test_ids_that_two_agents_use_at_the_same_time_stay_with_their_agent() -> None:
    spans = [agent(end=20)]
    for number, name in enumerate(("left", "right")):
        below = f"agent {name}"
        spans += [
            agent(below, name, parent="agent", start=1, end=9),
            chat(f"m {name}", 1 + number / 10, asking(("look", {"side": name})), parent=below),
            tool(f"t {name}", "look", 3 - number, parent=below, more={"gen_ai.tool.call.id": "c0"}),
        ]
    assert [(call.agent, call.arguments) for call in of(*spans)[0].tool_calls] == [
        ("left", {"side": "left"}),
        ("right", {"side": "right"}),
    ]


def test_the_same_choice_as_log_record_and_as_span_event_asks_once() -> None:
    choice = {
        "index": 0,
        "message": {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}],
        },
    }
    model = span(
        "m",
        "chat",
        {"gen_ai.operation.name": "chat"},
        parent="agent",
        events=[("gen_ai.choice", {"message": json.dumps(choice["message"])})],
    )
    assert names(of(agent(), model, log("gen_ai.choice", body=choice, span="m"))[0]) == ["look"]


def test_a_tool_span_beside_the_agent_that_asked_for_it_is_one_call() -> None:
    workflow = span("w", "invoke_workflow w", {"gen_ai.operation.name": "invoke_workflow"}, end=20)
    [read_one] = of(
        workflow,
        agent(parent="w"),
        chat("m", 0, asking(("look", {"n": 1}))),
        tool("t", "look", 1, parent="w"),
    )
    assert [(call.name, call.arguments) for call in read_one.tool_calls] == [("look", {"n": 1})]


def test_only_the_first_of_several_choices_was_carried_out() -> None:
    choices = [asking(("look", {})), asking(("pay", {}))]
    [read_one] = of(agent(), chat("m", 0, more={"gen_ai.output.messages": json.dumps(choices)}))
    assert names(read_one) == ["look"]


def test_a_model_call_that_failed_and_was_not_answered_fails_the_turn() -> None:
    outage = span(
        "m",
        "chat gpt",
        {"gen_ai.operation.name": "chat", "error.type": "RateLimit"},
        parent="agent",
        error="429",
    )
    assert [(one.error, one.error_type) for one in of(agent(), outage)] == [(True, "RateLimit")]


def test_a_failed_attempt_inside_a_model_call_that_succeeded_is_no_failure() -> None:
    attempts = [
        span(
            "try 1", "chat", {"gen_ai.operation.name": "chat"}, parent="m", start=1.1, error="reset"
        ),
        span("try 2", "chat", {"gen_ai.operation.name": "chat"}, parent="m", start=1.2),
    ]
    [read_one] = of(agent(), chat("m", 1, {"role": "assistant", "content": "answered"}), *attempts)
    assert (read_one.final_response, read_one.error, read_one.model_calls[0].error) == (
        "answered",
        False,
        None,
    )


def test_the_conventions_say_what_kind_of_transfer_a_tool_is() -> None:
    modes = {"gives_up": "pass_control", "asks": "return_to_caller"}
    [read_one] = of(
        agent(),
        *(
            tool(name, name, i, more={"gen_ai.transfer.mode": mode})
            for i, (name, mode) in enumerate(modes.items())
        ),
    )
    assert [call.kind for call in read_one.tool_calls] == ["handoff", "agent"]


def test_parallel_calls_of_one_tool_without_ids_are_told_apart_by_their_arguments() -> None:
    spans = [
        tool(
            f"t{n}",
            "get",
            3 - n,
            more={"gen_ai.tool.call.arguments": f'{{"n": {n}}}'},
            error=f"boom {n}",
        )
        for n in (1, 2)
    ]
    [read_one] = of(agent(), chat("m", 0, asking(("get", {"n": 1}), ("get", {"n": 2}))), *spans)
    assert [(call.arguments, call.error) for call in read_one.tool_calls] == [
        ({"n": 1}, "boom 1"),
        ({"n": 2}, "boom 2"),
    ]


def test_equal_calls_of_a_later_message_are_not_answered_by_the_first() -> None:
    first, second = asking(("get", {"n": 1})), asking(("get", {"n": 2}))
    strange = tool("t", "get", 1, more={"gen_ai.tool.call.arguments": '{"n": 2}'}, error="first")
    [read_one] = of(
        agent(), chat("m", 0, first), strange, chat("m2", 2, second), tool("t2", "get", 3)
    )
    assert [(call.arguments, call.error, call.group) for call in read_one.tool_calls] == [
        ({"n": 1}, None, 0),
        ({"n": 2}, "first", 0),
        ({"n": 2}, None, 1),
    ]


def test_a_tool_that_is_called_again_from_within_is_another_call() -> None:
    ids = [{"gen_ai.tool.call.id": "c0"}, {"gen_ai.tool.call.id": "c1"}]
    [read_one] = of(
        agent(), tool("t", "ask", 1, more=ids[0]), tool("t2", "ask", 1.1, parent="t", more=ids[1])
    )
    assert [(call.name, call.id) for call in read_one.tool_calls] == [("ask", "c0"), ("ask", "c1")]


def test_an_agents_span_without_a_name_right_inside_an_agents_is_the_same_run() -> None:
    inner = span(
        "inner",
        "agent run",
        {"gen_ai.operation.name": "invoke_agent"},
        parent="agent",
        start=1,
        end=9,
    )
    [read_one] = of(agent(), inner, tool("t", "look", 2, parent="inner"))
    assert (read_one.agent, read_one.sub_agents, names(read_one)) == ("a", (), ["look"])


def test_the_model_in_the_name_of_an_agents_span_is_not_the_agents_name() -> None:
    [read_one] = of(
        span(
            "agent",
            "invoke_agent gpt",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "gpt"},
        )
    )
    assert read_one.agent is None


def test_an_agent_span_with_model_details_stays_an_agent_and_is_flagged() -> None:
    overwritten = agent(more={"gen_ai.operation.name": "generate_content"})
    [read_one] = of(overwritten, tool("t", "look", 1))
    assert (read_one.agent, read_one.model_calls, "llm_detail_unreliable" in read_one.flags) == (
        "a",
        (),
        True,
    )


def test_a_model_call_that_failed_asked_for_no_calls() -> None:
    [read_one] = of(
        agent(),
        span(
            "m", "chat gpt", {"gen_ai.operation.name": "chat"}, parent="agent", start=1, error="429"
        ),
    )
    assert "no_tool_spans" not in read_one.flags


def pay(id: str, amount: int, start: float) -> Span:
    return tool(
        id,
        "pay",
        start,
        more={
            "gen_ai.tool.call.arguments": json.dumps({"x": amount}),
            "gen_ai.tool.call.result": f'{{"paid": {amount}}}',
        },
    )


def test_a_call_without_a_span_does_not_get_that_of_a_later_call_of_the_same_tool() -> None:
    [read_one] = of(
        agent(),
        chat("m1", 0, asking(("pay", {"x": 1}))),
        chat("m2", 2, asking(("pay", {"x": 2}))),
        pay("t", 2, 3),
    )
    assert [(call.arguments, call.result) for call in read_one.tool_calls] == [
        ({"x": 1}, None),
        ({"x": 2}, {"paid": 2}),
    ]


def test_a_span_whose_arguments_contradict_what_is_left_is_a_call_of_its_own() -> None:
    [read_one] = of(
        agent(),
        chat("m1", 0, asking(("pay", {"x": 1}))),
        chat("m2", 2, asking(("pay", {"x": 2}))),
        pay("t", 3, 3),
    )
    assert [(call.arguments, call.result) for call in read_one.tool_calls] == [
        ({"x": 1}, None),
        ({"x": 2}, None),
        ({"x": 3}, {"paid": 3}),
    ]


def test_equal_arguments_are_joined_before_any_span_takes_what_is_left() -> None:
    """Of several calls in one reply, some instrumentations record the last one alone."""
    [read_one] = of(
        agent(),
        chat("m1", 0, asking(("pay", {"x": 3}))),
        pay("t1", 1, 1),
        pay("t2", 2, 1.1),
        pay("t3", 3, 1.2),
    )
    assert [(call.id, call.arguments, call.result) for call in read_one.tool_calls] == [
        ("c0", {"x": 3}, {"paid": 3}),
        (None, {"x": 1}, {"paid": 1}),
        (None, {"x": 2}, {"paid": 2}),
    ]


def test_a_span_without_arguments_does_not_take_the_call_of_one_with_equal_ones() -> None:
    [read_one] = of(
        agent(),
        chat("m1", 0, asking(("pay", {"x": 1}), ("pay", {"x": 2}))),
        tool("t1", "pay", 1, error="refused"),
        pay("t2", 1, 1.1),
    )
    assert [(call.arguments, call.error, call.result) for call in read_one.tool_calls] == [
        ({"x": 1}, None, {"paid": 1}),
        ({"x": 2}, "refused", None),
    ]


def test_results_that_are_shown_by_name_alone_answer_calls_of_that_name_in_their_order() -> None:
    asked = {
        "role": "model",
        "parts": [
            {"function_call": {"name": "weather", "args": {"city": city}}}
            for city in ("Rome", "Oslo")
        ],
    }
    shown = {
        "role": "user",
        "parts": [
            {"function_response": {"name": "weather", "response": {"t": t}}} for t in (30, 3)
        ],
    }
    earlier = {
        "role": "user",
        "parts": [{"function_response": {"name": "weather", "response": {"t": 0}}}],
    }
    after = chat("m2", 2, more={"gen_ai.input.messages": json.dumps([earlier, asked, shown])})
    [read_one] = of(agent(), chat("m1", 0, asked), after)
    assert [(call.arguments, call.result) for call in read_one.tool_calls] == [
        ({"city": "Rome"}, {"t": 30}),
        ({"city": "Oslo"}, {"t": 3}),
    ]


def told(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


@pytest.mark.parametrize(
    ("later", "asked"),
    [
        ((told("assistant", "On its way."), told("user", "And A-2?")), "And A-2?"),
        ((told("user", "Today is Monday."),), "Where is A-1?"),
        ((told("assistant", "On its way."),), "Where is A-1?"),
        ((asking(("look", {})), told("user", "Go on.")), "Where is A-1?"),
    ],
    ids=["a later turn", "a remark", "an answer", "a call"],
)
def test_an_agent_that_states_the_question_of_an_earlier_turn_was_asked_that_of_the_last(
    later: tuple[Any, ...], asked: str
) -> None:
    first = told("user", "Where is A-1?")
    stated = {"gen_ai.input.messages": json.dumps([first])}
    prompt = {"gen_ai.input.messages": json.dumps([first, *later])}
    [read] = of(agent(more=stated), chat("m", 1, more=prompt))
    assert read.user_input == asked


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_workflow_with_the_error_of_a_tool_failed_only_with_the_agent(has_failed: bool) -> None:
    operation = {"gen_ai.operation.name": "invoke_workflow"}
    workflow = span("w", "invoke_workflow w", operation, end=10, error="No connection.")
    failed = tool("t", "look", 1, error="No connection.")
    below = agent(parent="w", error="It broke." if has_failed else None)
    [read] = of(workflow, below, failed)
    assert read.error is has_failed
