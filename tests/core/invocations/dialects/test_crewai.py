"""What a crew of CrewAI and its agents were asked, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

OPENINFERENCE = "openinference.instrumentation.crewai"
OPENLLMETRY = "opentelemetry.instrumentation.crewai.instrumentation"
WRAPPED = "\nCurrent Task: Refund A-1.\n\nThis is the expected criteria for your final answer: ..."


def of(*spans: Span) -> Invocation:
    [one] = read(Trace("", trace_id("trace"), spans))
    return one


def model(parent: str) -> Span:
    """The model call with CrewAI's own prompt."""
    said = [{"role": "user", "parts": [{"type": "text", "content": WRAPPED}]}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(said)}
    return span("m", "chat", attributes, parent=parent, start=2, end=3, scope="model")


def kickoff(description: Any, inputs: Any = None) -> list[Span]:
    """A crew under OpenInference with one agent."""
    attributes = {"openinference.span.kind": "CHAIN", "crew_inputs": ""}
    attributes["crew_tasks"] = json.dumps([{"description": description}, {"description": "no"}])
    if inputs is not None:
        attributes["crew_inputs"] = attributes["input.value"] = json.dumps(inputs)
    agent = {"openinference.span.kind": "AGENT", "graph.node.id": "clerk", "task_id": "t"}
    return [
        span("crew", "Crew_1.kickoff", attributes, scope=OPENINFERENCE),
        span("a", "clerk._execute_core", agent, parent="crew", start=1, scope=OPENINFERENCE),
        model("a"),
    ]


@pytest.mark.parametrize(
    ("description", "inputs", "asked"),
    [
        ("Refund A-1.", None, "Refund A-1."),
        ("Refund {id}.", {"id": "A-1", "messages": "other"}, "Refund A-1."),
        ("{n} of {n}: {flag}, {list}, {no-2}", {"n": 1, "flag": True, "list": ["a"], "no-2": None},
         "1 of 1: True, ['a'], None"),
        ('As {"id": 1}', {"id": 2}, 'As {"id": 1}'),
        ("{{id}", {"id": "{id}"}, "{{id}"),
        ("Refund {id}.", None, WRAPPED),
        ("Refund {id}.", {"other": 1}, WRAPPED),
        ("{id}" * 1_000, {"id": "x" * 1_000}, WRAPPED),
        ({"id": 1}, None, WRAPPED),
    ],
)  # fmt: skip
def test_a_crew_is_asked_its_first_task_with_its_inputs(
    description: Any, inputs: Any, asked: str
) -> None:
    assert of(*kickoff(description, inputs)).user_input == asked


def test_an_agent_of_a_crew_is_asked_its_own_task() -> None:
    crew, agent, call = kickoff("Find {id}.")
    output = json.dumps({"description": "Refund A-1.", "raw": "Done.", "pydantic": None})
    with_output = span(
        "a",
        agent.name,
        {**agent.attributes, "output.value": output},
        parent="crew",
        start=1,
        scope=OPENINFERENCE,
    )
    assert of(crew, with_output, call).user_input == "Refund A-1."


@pytest.mark.parametrize(
    ("description", "asked"), [("Find A-1.", "Find A-1."), ("Find {id}.", "Find A-2.")]
)
def test_with_openllmetry_the_task_around_an_agent_has_the_inputs(
    description: str, asked: str
) -> None:
    tasks = {"crewai.crew.tasks": json.dumps([{"description": description}])}
    task = {"crewai.task.description": "Find A-2.", "traceloop.span.kind": "task"}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
    spans = [
        span("crew", "crewai.workflow", tasks, scope=OPENLLMETRY),
        span("t", "Find A-2..task", task, parent="crew", start=0.5, scope=OPENLLMETRY),
        span("a", "clerk.agent", agent, parent="t", start=1, scope=OPENLLMETRY),
        model("a"),
    ]
    assert of(*spans).user_input == asked
