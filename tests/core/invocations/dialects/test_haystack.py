"""Special cases of Haystack, with handwritten spans; users choose the scope."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

Attributes = dict[str, Any]


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def one(
    id: str,
    name: str,
    start: float,
    end: float,
    attributes: Attributes,
    *,
    parent: str | None = "a",
    error: str | None = None,
) -> Span:
    encoded = {
        f"haystack.{key}": json.dumps(value) if isinstance(value, dict) else value
        for key, value in attributes.items()
    }
    return span(
        id,
        f"haystack.{name}",
        encoded,
        parent=parent,
        start=start,
        end=end,
        scope="my_application",
        error=error,
    )


def agent(
    id: str = "a", start: float = 0, end: float = 20, *, parent: str | None = None, **more: Any
) -> Span:
    return one(
        id,
        "agent.run",
        start,
        end,
        {f"agent.{key}": value for key, value in more.items()},
        parent=parent,
    )


def component(
    id: str,
    type: str,
    start: float,
    output: Any = None,
    *,
    parent: str = "a",
    error: str | None = None,
    end: float = 0,
) -> Span:
    attributes = {"component.type": type, "component.name": type.lower()} | (
        {"component.output": output} if output else {}
    )
    return one(id, "component.run", start, end or start + 1, attributes, parent=parent, error=error)


def reply(text: str | None = None, *calls: tuple[str, str, Attributes]) -> Attributes:
    content: list[Attributes] = [{"text": text}] if text else []
    content += [
        {"tool_call": {"id": id, "tool_name": name, "arguments": arguments, "extra": None}}
        for id, name, arguments in calls
    ]
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return {
        "replies": [
            {
                "role": "assistant",
                "meta": {"model": "gpt", "usage": usage},
                "name": None,
                "content": content,
            }
        ]
    }


def results(*given: tuple[str, str, Any, bool]) -> Attributes:
    """Ids, names, results, and whether they are errors."""
    shown = [
        {
            "role": "tool",
            "content": [
                {
                    "tool_call_result": {
                        "result": result,
                        "origin": {"tool_name": name, "id": id},
                        "error": failed,
                    }
                }
            ],
        }
        for id, name, result, failed in given
    ]
    return {"tool_messages": shown, "state": {"data": {"messages": []}}}


def test_the_results_of_all_calls_are_in_one_span_and_told_apart_by_id() -> None:
    [read_one] = of(
        agent(),
        component(
            "m",
            "OpenAIChatGenerator",
            1,
            reply("Looking.", ("c1", "look", {"n": 1}), ("c2", "look", {"n": 2})),
        ),
        component(
            "t",
            "ToolInvoker",
            3,
            results(("c2", "look", "{'two': 2}", False), ("c1", "look", "No such order", True)),
        ),
    )
    assert [(call.id, call.result, call.error) for call in read_one.tool_calls] == [
        ("c1", "No such order", "No such order"),
        ("c2", {"two": 2}, None),
    ]
    assert [(call.start_ns, call.end_ns) for call in read_one.tool_calls] == [(None, None)] * 2
    assert (read_one.dialect, read_one.model, read_one.input_tokens, read_one.output_tokens) == (
        "haystack",
        "gpt",
        100,
        20,
    )


def test_ids_that_are_used_again_find_the_result_of_their_own_round() -> None:
    rounds = [
        component(f"{kind}{n}", type, 3 * n + offset, output)
        for n in (1, 2)
        for kind, type, offset, output in [
            (
                "m",
                "AnthropicChatGenerator",
                0,
                reply(None, ("c", "look", {"n": n}), ("d", "look", {})),
            ),
            (
                "t",
                "ToolInvoker",
                1,
                results(("c", "look", f"round {n}", False), ("d", "look", "", False)),
            ),
        ]
    ]
    [read_one] = of(agent(), *rounds)
    assert [call.result for call in read_one.tool_calls if call.id == "c"] == ["round 1", "round 2"]


def test_a_call_that_was_alone_in_its_span_has_its_times_and_its_failure() -> None:
    [read_one] = of(
        agent(),
        component("m", "OpenAIChatGenerator", 1, reply(None, ("c1", "look", {}))),
        component("t", "ToolInvoker", 3, error="kaboom"),
    )
    [call] = read_one.tool_calls
    assert (call.error, call.result, call.arguments, call.start_ns is not None) == (
        "kaboom",
        None,
        {},
        True,
    )


def test_a_failure_of_several_calls_is_not_assigned_to_one_of_them() -> None:
    asked = reply(None, ("c1", "look", {}), ("c2", "pay", {}))
    [read_one] = of(
        agent(),
        component("m", "OpenAIChatGenerator", 1, asked),
        component("t", "ToolInvoker", 3, error="kaboom"),
    )
    assert [(call.error, call.start_ns) for call in read_one.tool_calls] == [(None, None)] * 2


def test_an_agent_inside_the_span_of_tools_is_a_sub_agent() -> None:
    [read_one] = of(
        agent(),
        component("m", "OpenAIChatGenerator", 1, reply(None, ("c1", "ask", {}))),
        component("t", "ToolInvoker", 3, results(("c1", "ask", "inner", False)), end=8),
        agent("sub", 4, 7, parent="t"),
        component("m2", "OpenAIChatGenerator", 5, reply("inner"), parent="sub"),
        component("m3", "OpenAIChatGenerator", 9, reply("outer")),
    )
    assert (
        [call.kind for call in read_one.tool_calls],
        [sub.via for sub in read_one.sub_agents],
    ) == (["agent"], ["agent"])
    assert (read_one.final_response, read_one.input_tokens) == ("outer", 300)


def test_the_agent_of_a_pipeline_has_the_name_of_its_component() -> None:
    pipeline = one("p", "pipeline.run", 0, 30, {}, parent=None)
    named = one(
        "c",
        "component.run",
        1,
        29,
        {"component.type": "Agent", "component.name": "clerk"},
        parent="p",
    )
    [read_one] = of(
        pipeline,
        named,
        agent(
            "a",
            2,
            28,
            parent="c",
            input={"messages": [{"role": "user", "content": [{"text": "Hi"}]}]},
        ),
    )
    assert (read_one.span_id, read_one.agent, read_one.user_input, read_one.sub_agents) == (
        span_id("c"),
        "clerk",
        "Hi",
        (),
    )


def test_a_pipeline_without_agents_and_generators_is_no_invocation() -> None:
    embedding = component("e", "SentenceTransformersTextEmbedder", 1, parent="p")
    image = component("i", "OpenAIImageGenerator", 2, parent="p")
    assert of(one("p", "pipeline.run", 0, 5, {}, parent=None), embedding, image) == []


def step_tool(
    id: str, start: float, name: str, arguments: Attributes, output: Any, *, failed: bool = False
) -> Span:
    tags = {"tool.name": name, "agent.step.tool.input": arguments, "agent.step.tool.output": output}
    return one(
        id,
        "agent.step.tool",
        start,
        start + 1,
        tags | ({"tool.error": True} if failed else {}),
        parent="s",
    )


def test_from_3_on_parallel_calls_of_one_tool_are_told_apart_by_their_arguments() -> None:
    [read_one] = of(
        agent(),
        one("s", "agent.step", 1, 9, {"agent.step": 0}),
        one(
            "m",
            "agent.step.llm",
            1,
            2,
            {
                "agent.step.llm.output": reply(
                    None, ("c1", "look", {"n": 1}), ("c2", "look", {"n": 2})
                )
            },
            parent="s",
        ),
        step_tool("t2", 3, "look", {"n": 2}, {"two": 2}),
        step_tool("t1", 4, "look", {"n": 1}, "one"),
    )
    assert [(call.id, call.result) for call in read_one.tool_calls] == [
        ("c1", "one"),
        ("c2", {"two": 2}),
    ]


@pytest.mark.parametrize(("output", "error"), [({"error": "kaboom"}, "kaboom"), ("", "error")])
def test_from_3_on_a_tool_that_failed_returned_nothing(output: Any, error: str) -> None:
    [read_one] = of(
        agent(),
        one("s", "agent.step", 1, 9, {}),
        step_tool("t", 2, "look", {}, output, failed=True),
    )
    assert [(call.error, call.result) for call in read_one.tool_calls] == [(error, None)]


def test_without_content_the_calls_of_a_tool_invoker_are_unknown() -> None:
    [read_one] = of(
        agent(), component("m", "OpenAIChatGenerator", 1), component("t", "ToolInvoker", 3)
    )
    assert (read_one.tool_calls, "no_tool_spans" in read_one.flags) == ((), True)
