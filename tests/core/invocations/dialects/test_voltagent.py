"""Special cases of VoltAgent that the captures do not have, with handwritten spans."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "@voltagent/core"


def of(*spans: Span) -> Invocation:
    [one] = read(Trace("", trace_id("trace"), spans))
    return one


def written(id: str, name: str, parent: str | None, **more: Any) -> Span:
    """A span of VoltAgent. In names of attributes, `__` stands for a dot."""
    times = {key: more.pop(key) for key in ("start", "end", "error") if key in more}
    attributes = {key.replace("__", "."): value for key, value in more.items()}
    return span(id, name, attributes, parent=parent, scope=SCOPE, **{"end": 20, **times})


def agent(id: str = "a", parent: str | None = None, **more: Any) -> Span:
    named = {"entity__name": "desk", "agent__state": "completed", "input": "Where is A-1?"}
    return written(id, "desk", parent, **{"output": "Home.", **named, **more})


def model(id: str = "m", parent: str = "a", **more: Any) -> Span:
    stated = {"span__type": "llm", "llm__operation": "generateText", "llm__model": "m-1"}
    times = {"start": 1, "end": 19}
    return written(id, "llm:generateText", parent, **{**times, **stated, **more})


def tool(id: str, start: float, parent: str = "a", name: str = "look", **more: Any) -> Span:
    stated = {"span__type": "tool", "tool__name": name, "tool__call__id": id, "input": "{}"}
    times = {"start": start, "end": start + 1}
    return written(id, f"tool.execution:{name}", parent, **{**times, **stated, **more})


@pytest.mark.parametrize(
    ("spans", "tokens"),
    [
        ((agent(usage__prompt_tokens=300), model(llm__usage__prompt_tokens=300)), 300),
        (
            (agent(usage__prompt_tokens=300), model(llm__usage__prompt_tokens=200), tool("t", 5)),
            300,
        ),
        ((agent(), model(llm__usage__prompt_tokens=200), tool("t", 5)), None),
    ],
    ids=["one round", "several rounds", "no total"],
)
def test_the_tokens_of_the_last_round_are_not_those_of_all(
    spans: tuple[Span, ...], tokens: int | None
) -> None:
    assert of(*spans).input_tokens == tokens


@pytest.mark.parametrize(("total", "tokens"), [(70, 370), (None, None)])
def test_the_tokens_of_an_agent_that_is_called_are_counted_with_those_of_its_caller(
    total: int | None, tokens: int | None
) -> None:
    called = agent("b", "d", subagent__name="billing", usage__prompt_tokens=total, start=4, end=9)
    one = of(
        agent(usage__prompt_tokens=300),
        model(),
        tool("d", 3, name="delegate_task", end=10),
        called,
        model("n", "b", start=5, end=8),
        tool("t", 6, "b"),
    )
    assert ([run.agent for run in one.sub_agents], one.input_tokens) == (["billing"], tokens)


def test_calls_of_an_agent_and_of_one_that_it_calls_are_in_the_order_in_which_they_started() -> (
    None
):
    one = of(
        agent(),
        model(),
        tool("d", 3, name="delegate_task", end=10),
        agent("b", "d", subagent__name="billing", start=4, end=9),
        model("n", "b", start=5, end=8),
        tool("t", 6, "b"),
        tool("u", 12),
    )
    assert [(call.id, call.agent) for call in one.tool_calls] == [
        ("d", "desk"),
        ("t", "billing"),
        ("u", "desk"),
    ]


def test_what_names_a_conversation_is_no_answer_and_no_model_call() -> None:
    title = {"llm__operation": "generateTitle", "llm__usage__prompt_tokens": 9, "end": 3}
    one = of(agent(output=""), model(llm__usage__prompt_tokens=300), model("n", "a", **title))
    assert (len(one.model_calls), one.input_tokens, one.final_response) == (1, 300, "")


@pytest.mark.parametrize(
    ("error", "names"), [(None, ["look"]), ("no such tool", ["callTool", "look"])]
)
def test_a_router_that_succeeded_has_called_another_tool(
    error: str | None, names: list[str]
) -> None:
    one = of(agent(), model(), tool("c", 3, name="callTool", error=error), tool("t", 3.5))
    assert [call.name for call in one.tool_calls] == names


@pytest.mark.parametrize(
    ("output", "answer"),
    [("Sent.", "Sent."), ('{"answer": "Sent."}', "Sent."), ('{"id": 1, "state": "ok"}', "Home.")],
)
def test_the_answer_of_a_workflow_is_its_text_or_that_of_its_last_agent(
    output: str, answer: str
) -> None:
    run = written("w", "workflow.x", None, workflow__state="completed", output=output, end=30)
    one = of(run, agent("a", "w"), model())
    assert (one.agent, one.final_response) == ("desk", answer)
