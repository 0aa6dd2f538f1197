"""Special cases of DSPy that the captures do not have, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read

SCOPE = "openinference.instrumentation.dspy"
_FIRST = "[[ ## next_thought ## ]]\nHm."
ASKED = {"question": "Where is A-1?"}


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def timed(id: str, name: str, kind: str, start: float, parent: str | None, **values: Any) -> Span:
    """A span of a method. `given` and `returned` are written as JSON."""
    attributes = {"openinference.span.kind": kind}
    for key, part in (("input.value", "given"), ("output.value", "returned")):
        if values.get(part) is not None:
            attributes[key] = json.dumps(values[part])
    length = 20 if parent is None else 1
    return span(id, name, attributes, parent=parent, start=start, end=start + length, scope=SCOPE)


def program(given: Any = ASKED, returned: Any = None, name: str = "Desk.forward") -> Span:
    return timed("run", name, "CHAIN", 0, None, given=given, returned=returned)


def model(start: float = 1, returned: Any = (_FIRST,)) -> Span:
    prompt = "[[ ## question ## ]]\nWhere is A-1?\n\nRespond with [[ ## answer ## ]]."
    return span(
        "m",
        "LM.__call__",
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m-1",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": prompt,
            "output.value": json.dumps(list(returned)),
        },
        parent="run",
        start=start,
        end=start + 1,
        scope=SCOPE,
    )


@pytest.mark.parametrize(
    "given",
    [
        ASKED,
        {"input_args": ASKED},
        {"request": "Where is A-1?", "limit": 3, "history": "messages=[]"},
        {"question": "Where is A-1?", "past": "messages=[{'question': 'Hi.'}]"},
    ],
)
def test_the_only_text_among_the_inputs_is_what_the_user_asked(given: Any) -> None:
    [one] = of(program(given, {"answer": "Home."}), model())
    assert (one.user_input, one.final_response) == ("Where is A-1?", "Home.")
    assert (one.agent, one.model) == (None, "m-1")


def test_several_texts_are_not_guessed_from() -> None:
    given = {"question": "Where is A-1?", "context": "An order."}
    [one] = of(program(given, {"answer": "Home."}), model())
    assert one.user_input is None
    assert "content_missing" in one.flags


@pytest.mark.parametrize(
    ("returned", "answer"),
    [
        ({"trajectory": {"thought_0": "Hm."}, "reasoning": "So.", "answer": "Home."}, "Home."),
        ({"answer": "Home.", "history": {}, "termination_reason": "submit"}, "Home."),
        ({"answer": "Home.", "sure": True}, '{"answer":"Home.","sure":true}'),
        ({"reasoning": "So."}, None),
        ({"answer": ""}, ""),
        ("Home.", "Home."),
    ],
)
def test_the_outputs_of_the_signature_are_the_answer(returned: Any, answer: str | None) -> None:
    [one] = of(program(returned=returned), model())
    assert one.final_response == answer


def test_a_template_is_no_answer() -> None:
    said = model(returned=["[[ ## answer ## ]]\nHome.\n\n[[ ## completed ## ]]"])
    [one] = of(program(), said)
    assert one.final_response is None


def test_the_calls_of_a_model_are_written_as_objects_of_its_client() -> None:
    written = "Call(function=Function(arguments='{\"id\": \"A-1\"}', name='look'), id='c1')"
    asks = model(returned=[{"text": None, "tool_calls": [written, "Call(function="]}])
    given = {"kwargs": {"id": "A-1"}}
    tool = timed("t", "look.acall", "TOOL", 3, "run", given=given, returned="found")
    [one] = of(program(), asks, tool)
    assert [(call.id, call.name, call.arguments, call.result) for call in one.tool_calls] == [
        ("c1", "look", {"id": "A-1"}, "found")
    ]


@pytest.mark.parametrize("name", ["finish", "submit"])
def test_the_tools_that_end_a_run_are_no_work(name: str) -> None:
    end = timed("t", f"{name}.__call__", "TOOL", 3, "run", given={"kwargs": {}}, returned="Done.")
    [one] = of(program(), model(), end)
    assert [(call.name, call.kind) for call in one.tool_calls] == [(name, "final_answer")]


def test_modules_of_the_program_may_be_entries() -> None:
    inner = timed("p", "Predict.forward", "CHAIN", 1, "run")
    adapter = timed("a", "ChatAdapter.__call__", "CHAIN", 1, None)
    served = timed("d", "Desk.forward", "CHAIN", 1, "request")
    assert [INSTALLED.may_be_entry(one) for one in (program(), served, inner, adapter)] == [
        True,
        True,
        False,
        True,
    ]
