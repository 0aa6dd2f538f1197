"""Special cases of Mastra that the captures do not have, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

ASKED = [{"toolCallId": "c1", "toolName": "look", "args": {"id": "A-1"}}]


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def typed(
    id: str,
    kind: str,
    operation: str,
    during: tuple[float, float],
    parent: str | None,
    **more: Any,
) -> Span:
    """A span of Mastra. In names of attributes, `__` stands for a dot."""
    start, end = during
    attributes = {key.replace("__", "."): value for key, value in more.items()}
    attributes |= {"mastra.span.type": kind, "gen_ai.operation.name": operation}
    return span(
        id,
        f"{operation} {id}",
        attributes,
        parent=parent,
        start=start,
        end=end,
        scope="@mastra/otel-exporter",
    )


def agent(given: Any = "Where is A-1?", output: Any = None, **more: Any) -> Span:
    if output is not None:
        more["mastra__agent_run__output"] = json.dumps(output)
    return typed(
        "a",
        "agent_run",
        "invoke_agent",
        (0, 20),
        None,
        gen_ai__agent__name="desk",
        mastra__agent_run__input=given,
        **more,
    )


def step(id: str, start: float, *, calls: Any = (), text: str = "", **more: Any) -> list[Span]:
    """A step with its model call, whose own messages have the text only."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    output = json.dumps({"text": text, "toolCalls": calls})
    outer = f"step {id}"
    return [
        typed(
            outer,
            "model_step",
            "agent_step",
            (start, start + 3),
            "a",
            mastra__model_step__output=output,
        ),
        typed(
            id,
            "model_inference",
            "chat",
            (start, start + 1),
            outer,
            **{"gen_ai__output__messages": json.dumps(said), **more},
        ),
    ]


def tool(start: float = 2, parent: str = "step m") -> Span:
    return typed(
        "t",
        "tool_call",
        "execute_tool",
        (start, start + 1),
        parent,
        gen_ai__tool__name="look",
        gen_ai__tool__call__id="c1",
        gen_ai__tool__call__arguments='{"id": "A-1"}',
        gen_ai__tool__call__result="found",
    )


@pytest.mark.parametrize(
    "given",
    [
        "Where is A-1?",
        '[{"role": "user", "content": "Hi."}, {"role": "user", "content": "Where is A-1?"}]',
    ],
    ids=["a text", "messages"],
)
def test_an_agent_is_given_a_text_or_messages(given: str) -> None:
    [one] = of(agent(given, {"text": "Home."}), *step("m", 1, text="Home."))
    assert (one.dialect, one.user_input, one.final_response) == ("mastra", "Where is A-1?", "Home.")


def test_what_the_agent_returned_is_the_answer_even_if_it_is_empty() -> None:
    [one] = of(agent(output={"text": "", "files": []}), *step("m", 1, text="Let me see."))
    assert one.final_response == ""


def test_a_call_without_a_span_is_known_from_its_step_and_flagged() -> None:
    [whole] = of(agent(), *step("m", 1, calls=ASKED), tool(), *step("n", 5, text="Home."))
    [lost] = of(agent(), *step("m", 1, calls=ASKED), *step("n", 5, text="Home."))
    assert [(c.name, c.arguments, c.id, c.group) for c in whole.tool_calls] == [
        ("look", {"id": "A-1"}, "c1", 0)
    ]
    assert [(c.name, c.arguments, c.result) for c in lost.tool_calls] == [
        ("look", {"id": "A-1"}, None)
    ]
    assert whole.flags == frozenset()
    assert lost.flags == {"lost_tool_calls"}


def test_a_step_speaks_for_its_model_call_only_if_there_is_one() -> None:
    outer, first = step("m", 1, calls=ASKED)
    second = typed("n", "model_inference", "chat", (1.5, 2), "step m")
    assert of(agent(), outer, first, second)[0].tool_calls == ()


def test_what_the_model_call_itself_has_counts_before_its_step() -> None:
    asked = {"type": "tool_call", "id": "c9", "name": "find", "arguments": {}}
    own = json.dumps([{"role": "assistant", "parts": [asked]}])
    [one] = of(agent(), *step("m", 1, calls=ASKED, gen_ai__output__messages=own))
    assert [call.id for call in one.tool_calls] == ["c9"]
    outer, inner = step("m", 1, text="Home.")
    silent = typed("step m", "model_step", "agent_step", (1, 4), "a")
    for around in (outer, silent):
        assert of(agent(), around, inner)[0].final_response == "Home."


@pytest.mark.parametrize("reasons", ['["error"]', ["error"], "error"])
def test_a_failed_model_call_has_status_ok_and_a_finish_reason(reasons: Any) -> None:
    more = {"gen_ai__response__finish_reasons": reasons}
    [one] = of(agent(), *step("m", 1, gen_ai__usage__output_tokens=3), *step("n", 5, **more))
    assert [call.error for call in one.model_calls] == [None, "error"]
    assert one.output_tokens == 3


def test_the_generation_of_earlier_versions_is_the_model_call() -> None:
    generation = typed(
        "g",
        "model_generation",
        "chat",
        (1, 9),
        "a",
        gen_ai__request__model="m-1",
        gen_ai__usage__input_tokens=7,
    )
    inner = typed("s", "model_step", "model_step", (2, 3), "g")
    [one] = of(agent(), generation, inner)
    assert ([call.model for call in one.model_calls], one.input_tokens) == (["m-1"], 7)


def test_the_input_of_a_workflow_is_read() -> None:
    run = typed(
        "w",
        "workflow_run",
        "invoke_workflow",
        (0, 30),
        None,
        mastra__workflow_run__input='{"question": "Where is A-1?"}',
        mastra__workflow_run__output='"Home."',
        mastra__metadata__resourceId="u-1",
        mastra__metadata__threadId="t-1",
    )
    [one] = of(run, *step("m", 1))
    assert (one.agent, one.user_input, one.final_response) == ("w", "Where is A-1?", "Home.")
    assert (one.user_id, one.conversation_id) == ("u-1", "t-1")
