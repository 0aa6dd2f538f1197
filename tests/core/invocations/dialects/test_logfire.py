"""Special cases of Logfire that the captures do not have, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read

ASKED = [{"role": "user", "content": "Where is A-1?"}]


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def templated(
    id: str, template: str, start: float, end: float, parent: str | None, **more: Any
) -> Span:
    """A span of Logfire. What is no text is written as JSON, and `__` stands for a dot."""
    texts = {
        key.replace("__", "."): value if isinstance(value, str) else json.dumps(value)
        for key, value in more.items()
    }
    attributes = {"logfire.msg_template": template, **texts}
    scope = "logfire.openai_agents"
    return span(id, template, attributes, parent=parent, start=start, end=end, scope=scope)


def run(**more: Any) -> list[Span]:
    return [
        templated("w", "OpenAI Agents trace: {name}", 0, 20, None, name="orders", **more),
        templated("a", "Agent run: {name!r}", 1, 19, "w", name="desk"),
    ]


def model(id: str, start: float, said: Any, given: Any = ASKED) -> Span:
    template = "Chat completion with {gen_ai.request.model!r}"
    message = [{"role": "assistant", "content": said}]
    return templated(id, template, start, start + 1, "a", input=given, output=message)


def tool(given: Any, returned: Any) -> Span:
    return templated("t", "Function: {name}", 4, 5, "a", name="look", input=given, output=returned)


def test_a_model_call_without_an_operation_is_one() -> None:
    [one] = of(*run(group_id="g-1"), model("m", 2, "Home."))
    assert (one.dialect, one.agent, one.conversation_id) == ("logfire", "desk", "g-1")
    assert (one.user_input, one.final_response) == ("Where is A-1?", "Home.")
    assert (len(one.model_calls), one.flags) == (1, frozenset())


def test_null_stands_for_nothing() -> None:
    call = tool("null", "null")
    [one] = of(*run(group_id="null"), model("m", 2, "Home."), call)
    assert one.conversation_id is None
    assert [(call.arguments, call.result) for call in one.tool_calls] == [(None, None)]
    failed = templated("m", "Chat completion", 2, 3, "a", input="null", output="null")
    [silent] = of(*run(), failed)
    assert (silent.user_input, silent.final_response) == (None, None)


def test_scrubbed_texts_are_neither_words_nor_results() -> None:
    scrubbed = "[Scrubbed due to 'password']"
    given = [{"role": "user", "content": scrubbed}]
    call = tool({"id": "A-1"}, scrubbed)
    said = model("m", 2, scrubbed, given)
    [one] = of(*run(), said, call)
    assert (one.user_input, one.final_response) == (None, None)
    assert [(call.arguments, call.result) for call in one.tool_calls] == [({"id": "A-1"}, None)]
    assert "content_missing" in one.flags


def test_a_span_that_was_scrubbed_is_flagged() -> None:
    call = templated(
        "t",
        "Function: {name}",
        4,
        5,
        "a",
        name="look",
        input={"token": "[Scrubbed due to 'token']"},
        logfire__scrubbed=[{"path": ["attributes", "input", "token"]}],
    )
    [one] = of(*run(), model("m", 2, "Home."), call)
    assert one.flags == {"redacted"}


@pytest.mark.parametrize("template", ["Turn {turn} for agent x", "Guardrail {name!r}", "Task: x"])
def test_other_spans_only_connect(template: str) -> None:
    step = templated("s", template, 2, 9, "a", name="other", input="x", output="y")
    inner = templated("m", "Responses API", 3, 4, "s", raw_input=ASKED)
    [one] = of(*run(), step, inner)
    assert (one.agent, one.user_input, one.sub_agents) == ("desk", "Where is A-1?", ())
    assert (one.tool_calls, len(one.model_calls)) == ((), 1)


def test_speech_is_no_model_call() -> None:
    speech = templated("s", "Text → Speech", 2, 3, "a", gen_ai__request__model="tts-1", input="x")
    [one] = of(*run(), speech)
    assert one.model_calls == ()


def test_a_template_counts_before_the_name_of_the_span() -> None:
    attributes = {"logfire.msg_template": "Agent run: {name!r}", "name": "desk"}
    renamed = span("a", "run", attributes, end=9, scope="logfire.openai_agents")
    assert INSTALLED.classify(renamed)[0] == "agent"


def test_traces_and_agents_may_be_entries() -> None:
    assert all(map(INSTALLED.may_be_entry, run()))
    assert not INSTALLED.may_be_entry(model("m", 1, "Home."))


def test_the_metadata_of_a_trace_may_have_the_scenario_id() -> None:
    [one] = of(*run(metadata={"pathgauge.scenario.id": "c"}), model("m", 2, "Home."))
    assert one.scenario_id == "c"
