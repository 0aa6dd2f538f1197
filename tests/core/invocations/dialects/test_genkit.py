"""Special cases of Genkit that the captures do not have, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.genkit import function_name, read_messages
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read

ASKED = {"messages": [{"role": "user", "content": [{"text": "Where is A-1?"}]}]}


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def action(
    id: str,
    subtype: str | None,
    name: str,
    *,
    given: Any = None,
    returned: Any = None,
    start: float = 0,
    parent: str | None = "flow",
    more: dict[str, Any] | None = None,
    **options: Any,
) -> Span:
    """A span of Genkit. `given` and `returned` are written as JSON."""
    attributes = {"genkit:type": "action" if subtype else "util", "genkit:name": name}
    if subtype is not None:
        attributes["genkit:metadata:subtype"] = subtype
    for key, value in (("genkit:input", given), ("genkit:output", returned)):
        if value is not None:
            attributes[key] = json.dumps(value)
    return span(
        id,
        name,
        {**attributes, **(more or {})},
        parent=parent,
        start=start,
        end=start + 1,
        scope="genkit-tracer",
        **options,
    )


def said(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "model", "content": list(parts)}, "finishReason": "stop", **more}


def asks(name: str, **request: Any) -> dict[str, Any]:
    return said({"toolRequest": {"name": name, "input": {"id": "A-1"}, **request}})


def flow(returned: Any = "On its way.", given: Any = "Where is A-1?", **options: Any) -> Span:
    return action("flow", "flow", "desk", given=given, returned=returned, parent=None, **options)


def model(id: str, returned: Any, start: float, *, given: Any = ASKED, **options: Any) -> Span:
    options.setdefault("parent", "flow")
    return action(id, "model", "acme/m-1", given=given, returned=returned, start=start, **options)


def test_a_call_without_ref_is_joined_with_its_span() -> None:
    [one] = of(
        flow(),
        model("m", asks("look"), 1),
        action("t", "tool", "look", given={"id": "A-1"}, returned="found", start=2),
        model("n", said({"text": "On its way."}), 3),
    )
    assert [(c.name, c.arguments, c.result, c.group) for c in one.tool_calls] == [
        ("look", {"id": "A-1"}, "found", 0)
    ]
    assert (one.agent, one.dialect, one.flags) == ("desk", "genkit", frozenset())


def test_a_tool_of_a_server_is_the_one_that_the_model_knows() -> None:
    [one] = of(
        flow(),
        model("m", asks("look", ref="c1"), 1),
        action("t", "tool", "orders/look", given={"id": "A-1"}, returned="found", start=2),
    )
    assert [(call.name, call.result) for call in one.tool_calls] == [("look", "found")]


@pytest.mark.parametrize("name", ["look", "orders/look", "a/b/look"])
def test_models_know_the_last_part_of_a_name(name: str) -> None:
    assert function_name(name) == "look"


def test_a_tool_that_may_return_media_has_its_result_inside() -> None:
    image = [{"media": {"url": "data:,"}}]
    [one] = of(
        flow(),
        model("m", said(), 1),
        action("t", "tool.v2", "look", given={}, returned={"output": {"at": "home"}}, start=2),
        action("u", "tool.v2", "draw", given={}, returned={"content": image}, start=3),
        action("v", "tool", "plain", given={}, returned={"output": "x"}, start=4),
    )
    assert [call.result for call in one.tool_calls] == [{"at": "home"}, image, {"output": "x"}]


def test_null_is_neither_a_text_nor_a_result() -> None:
    """Go writes it for every input and output that does not exist."""
    nothing = {"genkit:input": "null", "genkit:output": "null"}
    [one] = of(
        action("flow", "flow", "desk", parent=None, more=nothing),
        model("m", said({"text": "Hello."}), 1),
        action("t", "tool", "look", start=2, more=nothing),
    )
    assert (one.user_input, one.final_response) == ("Where is A-1?", "Hello.")
    assert [(call.arguments, call.result) for call in one.tool_calls] == [(None, None)]


def test_a_streamed_text_has_no_breaks() -> None:
    parts = [{"text": "On its "}, {"text": "way."}]
    [message] = read_messages({"role": "model", "content": parts}, "assistant")
    assert message.text == "On its way."
    [apart] = read_messages([{"role": "user", "content": [{"text": "a"}, {"media": {}}]}], "user")
    assert (apart.role, apart.text) == ("user", "a")


def test_a_run_outside_of_a_flow_is_the_outermost_round() -> None:
    [one] = of(
        action("round", None, "generate", parent=None),
        model("m", said({"text": "Hello."}), 0.2, parent="round"),
    )
    assert (one.span_id, one.agent) == (span_id("round"), None)
    assert (one.user_input, one.final_response) == ("Where is A-1?", "Hello.")


def test_a_chat_is_a_conversation() -> None:
    send = action("send", None, "send", parent=None, more={"genkit:sessionId": "s-1"})
    [one] = of(send, model("m", said({"text": "Hello."}), 0.2, parent="send"))
    assert one.conversation_id == "s-1"


def test_a_failed_model_is_known_without_its_plugin() -> None:
    [one] = of(flow(returned=None, error="quota"), model("m", None, 1, error="quota"))
    assert (one.model, one.error, one.final_response) == ("m-1", True, None)
    [plain] = of(flow(), action("m", "model", "m-2", given=ASKED, returned=said(), start=1))
    assert plain.model == "m-2"


@pytest.mark.parametrize("key", ["model", "modelVersion"])
def test_the_model_that_answered_is_in_the_raw_response(key: str) -> None:
    [one] = of(flow(), model("m", said({"text": "Hello."}, raw={key: "m-1-2026"}), 1))
    assert one.model == "m-1-2026"


def test_an_interrupt_is_no_failure() -> None:
    raised = [("exception", {"exception.type": "ToolInterruptError"})]
    [one] = of(
        flow(returned=None),
        model("m", asks("approve"), 1),
        action("t", "tool", "approve", given={"id": "A-1"}, start=2, error="no", events=raised),
    )
    assert ([call.error for call in one.tool_calls], one.error) == ([None], False)


def test_a_flow_that_returns_an_empty_text_answers_with_it() -> None:
    [one] = of(flow(returned=""), model("m", said({"text": "Hello."}), 1))
    assert (one.final_response, one.flags) == ("", frozenset())


def test_a_model_that_only_reasons_says_nothing() -> None:
    thought = {"reasoning": "Hm.", "metadata": {"signature": "x"}}
    [one] = of(
        action("round", None, "generate", parent=None),
        model("m", said(thought), 0.2, parent="round"),
    )
    assert one.final_response == ""


def test_rounds_without_their_flow_are_flagged() -> None:
    [one] = of(
        action("round", None, "generate"),
        model("m", said({"text": "Hello."}), 0.2, parent="round"),
    )
    assert one.flags == {"missing_root"}
    assert one.span_id == span_id("flow")


def test_messages_of_the_first_versions_are_read() -> None:
    [one] = of(
        flow(returned=None),
        model("m", {"candidates": [{"message": said({"text": "Hello."})["message"]}]}, 1),
    )
    assert one.final_response == "Hello."


def test_only_flows_may_be_entries() -> None:
    assert INSTALLED.may_be_entry(flow())
    assert not INSTALLED.may_be_entry(model("m", said(), 1))
