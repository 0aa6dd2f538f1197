"""DSPy under OpenTelemetry: cases that the captures do not have, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "opentelemetry.instrumentation.genai.dspy"
PROMPT = [("system", "Your input fields are: ..."), ("user", "[[ ## question ## ]]\nWhere is A-1?")]
TEMPLATE = "[[ ## reasoning ## ]]\nr\n\n[[ ## answer ## ]]\nShipped."
CALL = "ChatCompletionMessageToolCall(function=Function(arguments='{}', name='stock'), id='c1')"


def written(*messages: tuple[str, str]) -> str:
    return json.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    )


def run(
    asked: str, answered: str | None, model: str = TEMPLATE, reason: str = "stop"
) -> Invocation:
    of_agent: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "dspy.ReAct",
        "gen_ai.input.messages": written(("user", asked)),
    }
    if answered is not None:
        of_agent["gen_ai.output.messages"] = written(("assistant", answered))
    of_model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": written(*PROMPT),
        "gen_ai.output.messages": written(("assistant", model)),
        "gen_ai.response.finish_reasons": [reason],
    }
    agent = span("run", "invoke_agent dspy.ReAct", of_agent, start=0, end=9, scope=SCOPE)
    chat = span("m", "chat m-1", of_model, parent="run", start=1, end=2, scope=SCOPE)
    [found] = read(Trace("", trace_id("trace"), (agent, chat)))
    return found


def test_what_a_model_fills_into_a_template_is_no_answer() -> None:
    assert run("Where is A-1?", "Shipped.").final_response == "Shipped."
    assert run("Where is A-1?", "").final_response == ""
    nothing = run("Where is A-1?", None)
    assert (nothing.final_response, sorted(nothing.flags)) == (None, ["content_missing"])


@pytest.mark.parametrize(
    ("asked", "question"),
    [
        ('{"question": "Where is A-1?", "customer": 7}', "Where is A-1?"),
        ('{"question": "Where is A-1?", "customer": "Jo"}', None),
        ("{'question': 'And A-2?', 'history': History(messages=[{'answer': 'No.'}])}", "And A-2?"),
        ("{'question': 'And A-2?', 'history': ", "{'question': 'And A-2?', 'history': "),
        ('{"id": "A-1"}', '{"id": "A-1"}'),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_the_only_text_among_several_inputs_is_the_question(
    asked: str, question: str | None
) -> None:
    assert run(asked, "Shipped.").user_input == question


def test_calls_are_read_from_the_repr_of_an_output() -> None:
    found = run("Stock?", "7", f"{{'text': None, 'tool_calls': [{CALL}]}}", "tool_calls")
    assert [(call.id, call.name) for call in found.tool_calls] == [("c1", "stock")]


@pytest.mark.parametrize("model", ["{'text': None, 'tool_calls': 7}", "{'text': None", "{'text': "])
def test_an_output_that_is_no_repr_has_no_calls(model: str) -> None:
    assert run("Stock?", "7", model).tool_calls == ()
