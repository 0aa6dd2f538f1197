"""Special cases of NVIDIA NeMo Agent Toolkit, with handwritten spans."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read


def traced(
    id: str,
    kind: str,
    step: str,
    start: float = 0,
    end: float = 9,
    *,
    parent: str | None = "f",
    function: str = "<workflow>",
    **values: str,
) -> Span:
    attributes = {
        "nat.span.kind": kind,
        "nat.function.name": function,
        "nat.subspan.name": step,
        "openinference.span.kind": "LLM" if kind == "LLM" else "CHAIN",
    } | {f"{key}.value": value for key, value in values.items()}
    return span(id, step, attributes, parent=parent, start=start, end=end, scope="nat")


def run(*spans: Span) -> Invocation:
    around = (
        traced("w", "WORKFLOW", "<workflow>", parent=None, input="Which?", output="seven"),
        traced("f", "FUNCTION", "<workflow>", parent="w", input="Which?", output="seven"),
    )
    [found] = read(Trace("", trace_id("trace"), (*around, *spans)))
    return found


def test_the_name_of_every_workflow_is_no_name_of_an_agent() -> None:
    found = run()
    assert (found.agent, found.user_input, found.final_response) == (None, "Which?", "seven")
    assert found.sub_agents == ()


def test_a_function_is_a_tool_and_a_step_inside_of_one_is_none() -> None:
    found = run(
        traced("t", "FUNCTION", "look", 1, 4, function="look", input='{"n": 1}', output="seven"),
        traced("s", "FUNCTION", "RunnableSequence", 2, 3, parent="t", function="look"),
    )
    assert [(call.name, call.arguments, call.result) for call in found.tool_calls] == [
        ("look", {"n": 1}, "seven")
    ]


@pytest.mark.parametrize("text", ["", "I look."])
def test_calls_stand_behind_the_text_of_a_model(text: str) -> None:
    calls = "[{'name': 'look', 'args': {'n': 1}, 'id': 'c1', 'type': 'tool_call'}]"
    found = run(
        traced("m", "LLM", "gpt", 1, 2, input="Which?", output=f"{text}\n\nTool calls: {calls}")
    )
    assert [(call.id, call.name, call.arguments) for call in found.tool_calls] == [
        ("c1", "look", {"n": 1})
    ]


def test_workflows_may_be_entry_spans() -> None:
    assert INSTALLED.may_be_entry(traced("w", "WORKFLOW", "<workflow>", parent=None))
    assert not INSTALLED.may_be_entry(traced("t", "FUNCTION", "look", function="look"))
