"""Special cases of Pipecat that the captures do not have, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.pipecat import unwrap_result
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read

USER = {"role": "user", "content": "Where is A-1?"}
ANSWER = "It is shipped."


def asked(id: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call and its result, as prompts have them."""
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return (
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": '"done"'},
    )


def call(id: str, start: float, *prompt: Any, parent: str = "turn", output: str = "") -> Span:
    attributes = {"gen_ai.operation.name": "chat", "input": json.dumps([USER, *prompt])}
    if output:
        attributes["output"] = output
    return span(id, "llm", attributes, parent=parent, start=start, end=start + 1, scope="pipecat")


def of(*calls: Span) -> Invocation:
    stated = {"turn.number": 1, "conversation.id": "c"}
    turn = span("turn", "turn", stated, parent="all", start=0, end=99, scope="pipecat.turn")
    [found] = read(Trace("", trace_id("trace"), (turn, *calls)))
    return found


def test_each_call_belongs_to_the_model_call_before_the_prompt_that_has_it_first() -> None:
    first, second = asked("1", "find"), asked("2", "track")
    found = of(
        call("a", 1),
        call("b", 3, *first),
        call("c", 5, *first, *second, output=ANSWER),
    )
    calls = [(one.name, one.group, one.result) for one in found.tool_calls]
    assert calls == [("find", 0, "done"), ("track", 1, "done")]
    assert (found.final_response, found.flags) == (ANSWER, frozenset())


def test_text_beside_a_tool_call_is_no_answer() -> None:
    found = of(call("a", 1, output="One moment."), call("b", 3, *asked("1", "find")))
    assert [one.name for one in found.tool_calls] == ["find"]
    assert found.final_response is None


@pytest.mark.parametrize("answer", ["42", '["Bonn"]', '{"role": "user", "content": "Bonn"}'])
def test_an_answer_that_is_json_stays_text(answer: str) -> None:
    assert of(call("a", 1, output=answer)).final_response == answer


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ("The function `find` failed and returned no result.", True),
        ("The function `find` is not currently available.", True),
        ("The function `find` failed and returned no result. Or did it?", False),
        ({"state": "shipped"}, False),
        (None, False),
    ],
)
def test_what_the_framework_writes_instead_of_a_result_is_an_error(
    result: Any, error: bool
) -> None:
    assert unwrap_result(result) == (result, result if error else None)


def test_spans_of_realtime_models_are_reported_as_not_understood() -> None:
    stated = {"gen_ai.operation.name": "llm_response", "output": ANSWER}
    realtime = span("a", "llm_response", stated, scope="pipecat")
    classified = INSTALLED.classify(realtime)
    assert "pipecat" not in [dialect.name for dialect in classified[1]]
    assert INSTALLED.is_unread(realtime, classified)
