"""Special cases of Langfuse, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def observed(
    id: str,
    name: str,
    type: str,
    start: float = 0,
    end: float = 9,
    *,
    parent: str | None = "a",
    **more: Any,
) -> Span:
    """Metadata keys are given with `m_` before them."""
    attributes = {"langfuse.observation.type": type}
    for key, value in more.items():
        attributes[
            "langfuse.observation." + (f"metadata.{key[2:]}" if key.startswith("m_") else key)
        ] = value if isinstance(value, str) else json.dumps(value)
    return span(id, name, attributes, parent=parent, start=start, end=end, scope="langfuse-sdk")


def agent(**more: Any) -> Span:
    return observed("a", "clerk", "agent", parent=None, **more)


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            {
                "input": 70,
                "output": 15,
                "total": 120,
                "input_cache_read": 30,
                "output_reasoning": 5,
            },
            (100, 20),
        ),
        (
            {
                "input": 70,
                "output": 20,
                "cache_read_input_tokens": 30,
                "cache_creation_input_tokens": 10,
            },
            (110, 20),
        ),
        (
            {
                "input": 70,
                "output": 20,
                "cache_creation_input_tokens": 10,
                "cache_creation_ephemeral_5m_input_tokens": 10,
            },
            (80, 20),
        ),
        ({"input": 70, "input_priority": 70, "output": 20}, (70, 20)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 30},
            },
            (100, 20),
        ),
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 30},
                "output_tokens": 20,
            },
            (100, 20),
        ),
        ({"input": 0, "output": 20}, (0, 20)),
        ({"total": 90}, (None, None)),
        ("broken", (None, None)),
    ],
)
def test_token_buckets_are_summed_without_duplicates(
    usage: Any, counts: tuple[int | None, int | None]
) -> None:
    [read_one] = of(agent(), observed("m", "llm", "generation", 1, 2, usage_details=usage))
    assert (read_one.input_tokens, read_one.output_tokens) == counts


def test_functions_have_arguments_and_results() -> None:
    [read_one] = of(
        agent(input={"args": ["Hello"], "kwargs": {}}, output="done"),
        observed(
            "m",
            "llm",
            "generation",
            1,
            2,
            input={"args": [[{"role": "user", "content": "Hello"}]], "kwargs": {"n": 1}},
            output="ok",
        ),
        observed(
            "t1", "look", "tool", 3, 4, input={"args": [], "kwargs": {"n": 1}}, output={"found": 7}
        ),
        observed(
            "t2",
            "pay",
            "tool",
            5,
            6,
            input={"args": ["42"], "kwargs": {}},
            level="ERROR",
            status_message="no money",
        ),
    )
    assert (read_one.user_input, read_one.final_response) == ("Hello", "done")
    assert [
        (call.name, call.arguments, call.result, call.error) for call in read_one.tool_calls
    ] == [
        ("look", {"n": 1}, {"found": 7}, None),
        ("pay", '["42"]', None, "no money"),
    ]


def test_definitions_of_tools_among_the_messages_are_no_results() -> None:
    definition = {
        "role": "tool",
        "content": {"type": "function", "function": {"name": "look", "parameters": {}}},
    }
    asked = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"name": "look", "args": {"n": 1}, "id": "c1", "type": "tool_call"}],
    }
    shown = [
        {"role": "user", "content": "Hello"},
        asked,
        {"role": "tool", "content": "7", "tool_call_id": "c1"},
        definition,
        definition,
    ]
    [read_one] = of(
        agent(),
        observed("m", "llm", "generation", 1, 2, input=[shown[0], definition], output=asked),
        observed(
            "m2",
            "llm",
            "generation",
            3,
            4,
            input=shown,
            output={"role": "assistant", "content": "Seven."},
        ),
    )
    assert [(call.id, call.result) for call in read_one.tool_calls] == [("c1", "7")]
    assert (read_one.user_input, read_one.final_response) == ("Hello", "Seven.")


@pytest.mark.parametrize("encode", [json.dumps, str], ids=["since 5", "before 5"])
def test_nodes_of_a_graph_are_no_agents_although_their_type_says_so(encode: Any) -> None:
    graph = {
        "m_lc_agent_name": encode("my_agent"),
        "m_thread_id": encode("t1"),
        "m_user_id": encode("u1"),
    }
    node = graph | {"m_langgraph_node": encode("call_agent"), "m_langgraph_step": "1"}
    [read_one] = of(
        observed("a", "my_agent", "agent", parent=None, m_is_langchain_root="true", **graph),
        observed("n", "call_agent", "agent", 1, 5, **node),
        observed("m", "ChatOpenAI", "generation", 2, 3, parent="n", **node),
        observed("t", "look", "tool", 5, 6, m_tool_call_id=encode("c1"), input={"n": 1}, **graph),
    )
    assert (read_one.agent, read_one.sub_agents, read_one.conversation_id, read_one.user_id) == (
        "my_agent",
        (),
        "t1",
        "u1",
    )
    assert [(call.name, call.id, call.agent) for call in read_one.tool_calls] == [
        ("look", "c1", "my_agent")
    ]


def test_parsers_of_a_chain_are_no_agents_although_their_type_says_so() -> None:
    parts = [
        observed(name, name, "agent", 1, 2, m_tags=["seq:step:1"])
        for name in ("AgentOutputParser", "RunnableAgent")
    ]
    [read_one] = of(
        observed("a", "AgentExecutor", "agent", parent=None, m_is_langchain_root="true"), *parts
    )
    assert (read_one.agent, read_one.sub_agents) == ("AgentExecutor", ())


def test_a_span_with_only_the_attributes_of_its_trace_is_no_observation() -> None:
    assert (
        of(
            span(
                "db",
                "SELECT",
                {"langfuse.trace.metadata.lc_agent_name": '"clerk"', "session.id": "s1"},
            )
        )
        == []
    )


@pytest.mark.parametrize(
    ("parent", "attributes", "may"),
    [
        (None, {}, True),
        ("x", {"langfuse.internal.is_app_root": True}, True),
        ("x", {"langfuse.observation.metadata.lc_agent_name": '"clerk"'}, True),
        (
            "x",
            {
                "langfuse.observation.metadata.lc_agent_name": '"clerk"',
                "langfuse.observation.metadata.langgraph_node": '"model"',
            },
            False,
        ),
        ("x", {}, False),
    ],
)
def test_roots_of_applications_and_of_graphs_may_be_entry_spans(
    parent: str | None, attributes: dict[str, Any], may: bool
) -> None:
    assert (
        INSTALLED.may_be_entry(span("a", "x", attributes, parent=parent, scope="langfuse-sdk"))
        is may
    )
