"""What spans represent by their position in the tree: steps that are agents or workflows, duplicate
spans, wrong parents.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Resource, Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

LANGCHAIN = "openinference.instrumentation.langchain"


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def run(
    id: str,
    name: str,
    kind: str,
    at: tuple[float, float],
    parent: str | None,
    *,
    error: str | None = None,
    **metadata: Any,
) -> Span:
    """A span of OpenInference for LangChain; `metadata` is that of the run."""
    attributes: dict[str, Any] = {"openinference.span.kind": kind, "metadata": json.dumps(metadata)}
    if kind == "TOOL":
        attributes["tool.name"] = name
    if kind == "LLM":
        attributes |= {"llm.token_count.prompt": 10, "llm.token_count.completion": 1}
    return span(
        id, name, attributes, parent=parent, start=at[0], end=at[1], scope=LANGCHAIN, error=error
    )


def agent(name: str) -> dict[str, str]:
    return {"lc_agent_name": name}


def node(name: str, of_agent: str | None = None) -> dict[str, str]:
    return {"langgraph_node": name, **(agent(of_agent) if of_agent else {})}


def test_the_outermost_run_that_names_an_agent_is_the_agent() -> None:
    [read_one] = of(
        run("g", "my run", "CHAIN", (0, 9), None, **agent("desk")),
        run("n", "model", "CHAIN", (1, 3), "g", **node("model", "desk")),
        run("m", "ChatOpenAI", "LLM", (1, 2), "n", **node("model", "desk")),
    )
    assert (read_one.agent, read_one.span_id, read_one.input_tokens, read_one.sub_agents) == (
        "desk",
        span_id("g"),
        10,
        (),
    )


def test_a_run_inside_that_names_another_agent_is_a_sub_agent() -> None:
    [read_one] = of(
        run("g", "desk", "CHAIN", (0, 9), None, **agent("desk")),
        run("t", "ask", "TOOL", (2, 6), "g", **node("tools", "desk")),
        run("h", "billing", "CHAIN", (3, 5), "t", **node("tools", "billing")),
        run("m", "ChatOpenAI", "LLM", (3, 4), "h", **node("model", "billing")),
    )
    assert [(one.agent, one.parent, one.via) for one in read_one.sub_agents] == [
        ("billing", "desk", "agent")
    ]
    assert [(call.name, call.kind) for call in read_one.tool_calls] == [("ask", "agent")]
    assert [(call.agent, call.run) for call in read_one.model_calls] == [("billing", span_id("h"))]


def test_a_graph_that_names_no_agent_is_a_workflow_called_by_its_run() -> None:
    [read_one] = of(
        run("g", "pipeline", "CHAIN", (0, 9), None),
        run("n", "agent", "AGENT", (1, 3), "g", **node("agent")),
        run("m", "ChatOpenAI", "LLM", (1, 2), "n", **node("agent")),
    )
    assert (read_one.agent, read_one.span_id) == ("pipeline", span_id("g"))


def test_the_agent_under_a_supervisor_is_told_by_the_path_of_its_nodes() -> None:
    path = {"langgraph_checkpoint_ns": "coordinator:1|agent:2"}
    [read_one] = of(
        run("g", "graph", "CHAIN", (0, 9), None),
        run("n", "coordinator", "CHAIN", (1, 3), "g", **node("coordinator")),
        run("m", "ChatOpenAI", "LLM", (1, 2), "n", **node("agent"), **path),
    )
    assert (read_one.agent, [call.agent for call in read_one.model_calls]) == (
        "coordinator",
        ["coordinator"],
    )


def test_nodes_whose_graph_never_arrived_are_one_invocation_and_no_agents() -> None:
    spans = [
        span_of
        for number in range(3)
        for span_of in (
            run(
                f"n{number}",
                "model",
                "CHAIN",
                (number, number + 0.5),
                "lost",
                **node("model", "desk"),
            ),
            run(
                f"m{number}",
                "ChatOpenAI",
                "LLM",
                (number, number + 0.4),
                f"n{number}",
                **node("model", "desk"),
            ),
        )
    ]
    [read_one] = of(*spans)
    assert (read_one.span_id, read_one.agent, read_one.flags >= {"missing_root"}) == (
        span_id("lost"),
        "desk",
        True,
    )
    assert len(read_one.model_calls) == 3


def test_a_tool_with_agent_in_its_name_is_a_tool() -> None:
    handoff = run("t", "transfer_to_billing_agent", "AGENT", (2, 3), "g", **node("tools", "desk"))
    named = span(
        "t",
        handoff.name,
        {**handoff.attributes, "tool.name": handoff.name},
        parent="g",
        start=2,
        end=3,
        scope=LANGCHAIN,
    )
    [read_one] = of(run("g", "desk", "CHAIN", (0, 9), None, **agent("desk")), named)
    assert [(call.name, call.kind) for call in read_one.tool_calls] == [
        ("transfer_to_billing_agent", "handoff")
    ]


@pytest.mark.parametrize(
    ("exception", "failed"), [("langgraph.errors.ParentCommand", False), ("ValueError", True)]
)
def test_an_exception_that_passes_control_on_is_no_failure(exception: str, failed: bool) -> None:
    graph = span(
        "g",
        "desk",
        {"openinference.span.kind": "CHAIN", "metadata": json.dumps(agent("desk"))},
        scope=LANGCHAIN,
        error="Command(...)",
        events=[("exception", {"exception.type": exception, "exception.message": "Command(...)"})],
    )
    [read_one] = of(graph, run("m", "ChatOpenAI", "LLM", (1, 2), "g"))
    assert read_one.error is failed


def langchain_span(
    id: str, name: str, operation: str, at: tuple[float, float], parent: str | None, **more: Any
) -> Span:
    """A span of OpenLLMetry for LangChain."""
    attributes = {
        "gen_ai.operation.name": operation,
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    return span(
        id,
        name,
        attributes,
        parent=parent,
        start=at[0],
        end=at[1],
        scope="opentelemetry.instrumentation.langchain",
    )


def test_an_agents_span_beside_its_work_is_put_around_it() -> None:
    nodes, task = (
        {"gen_ai__workflow__nodes": ["model"]},
        {"traceloop__span__kind": "task", "traceloop__entity__name": "billing"},
    )
    [read_one] = of(
        langchain_span(
            "a", "invoke_agent desk", "invoke_agent", (0, 9), None, gen_ai__agent__name="desk"
        ),
        langchain_span(
            "t", "execute_tool ask", "execute_tool", (1, 8), "a", gen_ai__tool__name="ask"
        ),
        langchain_span(
            "b",
            "invoke_agent billing",
            "invoke_agent",
            (2, 7),
            "t",
            gen_ai__agent__name="billing",
            **nodes,
        ),
        langchain_span("w", "execute_task billing", "execute_task", (3, 6), "t", **task),
        langchain_span("m", "chat", "chat", (4, 5), "w", gen_ai__usage__input_tokens=7),
    )
    assert [(one.agent, one.span_id) for one in read_one.sub_agents] == [("billing", span_id("b"))]
    assert [(call.agent, call.run) for call in read_one.model_calls] == [("billing", span_id("b"))]


def agents_span(
    id: str, name: str, kind: str, at: tuple[float, float], parent: str | None, **more: Any
) -> Span:
    """A span of OpenLLMetry for the OpenAI Agents SDK."""
    attributes = {
        "traceloop.span.kind": kind,
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    return span(
        id,
        name,
        attributes,
        parent=parent,
        start=at[0],
        end=at[1],
        scope="opentelemetry.instrumentation.openai_agents",
    )


@pytest.mark.parametrize(("ends", "via"), [(6, "agent"), (8, "handoff")])
def test_an_agent_beside_its_caller_belongs_below_the_call_during_which_it_ran(
    ends: float, via: str
) -> None:
    asks = (
        json.dumps([{"role": "assistant", "tool_calls": [{"name": "transfer_to_sales"}]}])
        if via == "handoff"
        else None
    )
    [read_one] = of(
        agents_span("w", "Agent Workflow", "workflow", (0, 10), None),
        agents_span("a", "desk.agent", "agent", (1, 9), "w", gen_ai__agent__name="desk"),
        agents_span(
            "m",
            "response",
            "llm",
            (1, 2),
            "a",
            gen_ai__operation__name="chat",
            **({"gen_ai__output__messages": asks} if asks else {}),
        ),
        agents_span("t", "ask.tool", "tool", (2, 7), "a", gen_ai__tool__name="ask"),
        agents_span("b", "billing.agent", "agent", (3, ends), "w", gen_ai__agent__name="billing"),
    )
    assert [(one.agent, one.via) for one in read_one.sub_agents] == [("billing", via)]


def test_an_mcp_client_inside_the_frameworks_tool_span_is_the_same_call() -> None:
    [read_one] = of(
        span(
            "a",
            "invoke_agent desk",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"},
            end=9,
        ),
        span(
            "t",
            "execute_tool find",
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"},
            parent="a",
            start=1,
            end=5,
        ),
        span("c", "tools/call find", {"mcp.method.name": "tools/call"}, parent="t", start=2, end=4),
        span("s", "tools/call", {"mcp.method.name": "tools/call"}, parent="c", start=2.5, end=3),
    )
    assert [call.name for call in read_one.tool_calls] == ["find"]


def test_an_mcp_server_does_not_know_the_prefix_by_which_the_framework_calls_its_tool() -> None:
    [read_one] = of(
        span(
            "a",
            "invoke_agent desk",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"},
            end=9,
        ),
        span(
            "t",
            "execute_tool docs_find",
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "docs_find"},
            parent="a",
            end=5,
        ),
        span(
            "c",
            "tools/call find",
            {"mcp.method.name": "tools/call", "gen_ai.tool.name": "find"},
            parent="t",
            start=2,
            end=4,
        ),
    )
    assert [call.name for call in read_one.tool_calls] == ["docs_find"]


def test_agents_of_one_name_that_run_at_the_same_time_are_several() -> None:
    workers = [
        langchain_span(
            f"b{n}",
            "invoke_agent worker",
            "invoke_agent",
            (n, 7),
            "a",
            gen_ai__agent__name="worker",
        )
        for n in range(3)
    ]
    [read_one] = of(
        langchain_span(
            "a", "invoke_agent desk", "invoke_agent", (0, 9), None, gen_ai__agent__name="desk"
        ),
        *workers,
    )
    assert [one.agent for one in read_one.sub_agents] == ["worker"] * 3


def test_calls_without_their_agent_span_do_not_belong_to_the_sub_agent_below() -> None:
    [read_one] = of(
        langchain_span("m", "chat", "chat", (0, 1), "lost"),
        langchain_span(
            "t", "execute_tool ask", "execute_tool", (1, 5), "lost", gen_ai__tool__name="ask"
        ),
        langchain_span(
            "b", "invoke_agent billing", "invoke_agent", (2, 4), "t", gen_ai__agent__name="billing"
        ),
        langchain_span("n", "chat", "chat", (2, 3), "b"),
    )
    assert (read_one.span_id, [one.agent for one in read_one.sub_agents]) == (
        span_id("lost"),
        ["billing"],
    )
    assert "missing_root" in read_one.flags


def failed_run(parent: str, at: tuple[float, float] = (1, 8)) -> list[Span]:
    return [
        run("g", "my run", "CHAIN", at, parent, **agent("desk")),
        run("m", "ChatOpenAI", "LLM", at, "g", **node("model", "desk")),
    ]


def request(id: str, at: tuple[float, float], service: str = "app") -> Span:
    return span(
        id,
        "POST /chat",
        {"eval.scenario.id": id},
        start=at[0],
        end=at[1],
        scope="web",
        resource={"service.name": service},
    )


def in_process(spans: list[Span], service: str = "app") -> list[Span]:
    resource = Resource({"service.name": service})
    return [Span(one.raw, resource, one.scope) for one in spans]


@pytest.mark.parametrize(
    ("requests", "scenario"),
    [
        ([request("around", (0, 9))], "around"),
        ([request("around", (0, 9)), request("later", (10, 20))], "around"),
        ([request("around", (0, 9)), request("also", (0.5, 9))], None),
        ([request("before", (0, 7))], None),
        ([request("elsewhere", (0, 9), "other")], None),
    ],
)
def test_a_run_whose_parent_never_arrived_has_the_scenario_of_the_one_request_around_it(
    requests: list[Span], scenario: str | None
) -> None:
    [read_one] = of(*requests, *in_process(failed_run("never sent")))
    assert (read_one.span_id, read_one.scenario_id) == (span_id("g"), scenario)
    assert read_one.flags >= {"lost_parents"}
