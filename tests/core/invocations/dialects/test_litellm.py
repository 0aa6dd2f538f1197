"""Special cases of LiteLLM's callback, with handwritten spans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

QUESTION = {"role": "user", "content": "Where is A-1?"}
ARGUMENTS = '{"id": "A-1"}'
ASKED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": ARGUMENTS}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": '{"at": "home"}'}


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def calls_of(invocation: Invocation) -> list[tuple[str, Any, Any]]:
    return [(call.name, call.arguments, call.result) for call in invocation.tool_calls]


def around(id: str, attributes: Mapping[str, Any] | None = None, name: str = "POST /chat") -> Span:
    """The span of a web framework around a run."""
    own = {"http.request.method": "POST"}
    return span(id, name, {**own, **(attributes or {})}, end=20, scope="web")


def written(response_id: str, **more: Any) -> dict[str, Any]:
    """What a call writes onto a span."""
    return {
        "gen_ai.request.model": "small",
        "gen_ai.response.model": "small-1",
        "gen_ai.operation.name": "chat",
        "llm.request.type": "completion",
        "litellm.call_id": f"call of {response_id}",
        "gen_ai.response.id": response_id,
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        **more,
    }


def raw(
    id: str,
    at: float,
    response_id: str | None,
    message: Mapping[str, Any],
    prompt: list[Any] | None = None,
    *,
    parent: str = "root",
) -> Span:
    """The raw span of a call; without a response id, that of a streamed call."""
    choices = [{"finish_reason": "stop", "message": message}]
    attributes: dict[str, Any] = {
        "llm.openai.messages": repr(prompt or [QUESTION]),
        "llm.openai.choices": repr(choices),
        "llm.openai.id": response_id,
        "llm.openai.model": "small-1",
        "llm.openai.usage": repr({"prompt_tokens": 10, "completion_tokens": 1}),
    }
    if response_id is None:
        attributes = {}
    return span(
        id, "raw_gen_ai_request", attributes, parent=parent, start=at, end=at + 1, scope="litellm"
    )


ANSWER = {"role": "assistant", "content": "At home."}


@pytest.mark.parametrize("last", ["r1", "r2"])
def test_a_call_that_was_written_onto_the_span_around_it_is_counted_once(last: str) -> None:
    """The last one, or an earlier one if the span ended before."""
    [one] = of(
        around("root", written(last)),
        raw("m1", 1, "r1", ASKED),
        raw("m2", 3, "r2", ANSWER, [QUESTION, ASKED, RESULT]),
    )
    assert (one.span_id, one.user_input, one.final_response) == (
        span_id("root"),
        "Where is A-1?",
        "At home.",
    )
    assert calls_of(one) == [("find", {"id": "A-1"}, {"at": "home"})]
    assert (one.input_tokens, one.output_tokens, one.model) == (20, 2, "small-1")
    assert (one.error, one.flags) == (False, frozenset())


def failed(response_id: str, prompt: list[Any]) -> dict[str, Any]:
    """What a failed call writes beside the answer of the call before."""
    parts = [{"type": "text", "content": "stale"}]
    return {
        **written(response_id),
        "litellm.call_id": response_id,
        "error.type": "InternalServerError",
        "error.code": "500",
        "gen_ai.input.messages": json.dumps(prompt),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
    }


def test_a_failed_call_is_only_on_the_span_around_it() -> None:
    """Its prompt has a result; the answer beside it is of the call before."""
    [one] = of(around("root", failed("f1", [QUESTION, ASKED, RESULT])), raw("m1", 1, "r1", ASKED))
    assert calls_of(one) == [("find", {"id": "A-1"}, {"at": "home"})]
    assert (one.final_response, one.error, one.error_type) == (None, True, "InternalServerError")
    assert [(call.input_tokens, call.error) for call in one.model_calls] == [
        (10, None),
        (None, "InternalServerError"),
    ]


def test_a_failure_before_a_later_success_is_no_failure_of_the_run() -> None:
    [one] = of(around("root", failed("f1", [QUESTION]) | written("r1")), raw("m1", 3, "r1", ANSWER))
    assert (one.final_response, one.error, len(one.model_calls)) == ("At home.", False, 1)


def test_a_streamed_call_is_completed_by_the_span_around_it() -> None:
    output = [{"role": "assistant", "parts": [{"type": "text", "content": "At home."}]}]
    more = {
        "gen_ai.input.messages": json.dumps([QUESTION]),
        "gen_ai.output.messages": json.dumps(output),
    }
    [one] = of(around("root", written("r1", **more)), raw("m1", 1, None, {}))
    assert (one.user_input, one.final_response) == ("Where is A-1?", "At home.")
    assert (one.input_tokens, len(one.model_calls)) == (7, 1)


def test_which_of_several_streamed_calls_was_written_is_not_guessed() -> None:
    [one] = of(around("root", written("r1")), raw("m1", 1, None, {}), raw("m2", 3, None, {}))
    assert (one.input_tokens, one.output_tokens, one.model) == (None, None, None)
    assert one.flags >= {"content_missing", "no_tool_spans"}


def test_without_content_one_call_is_not_taken_for_the_whole_run() -> None:
    """Without content there are no raw spans, and one call overwrites the others."""
    [one] = of(around("web"), span("root", "answer", written("r1"), parent="web", scope="app"))
    assert (one.span_id, one.input_tokens, one.output_tokens) == (span_id("web"), None, None)
    assert one.model == "small-1"
    assert one.flags >= {"content_missing", "llm_detail_unreliable"}


def test_an_agent_by_hand_around_the_calls_keeps_its_name() -> None:
    agent = {"gen_ai.agent.name": "desk", **written("r1")}
    [one] = of(around("root", agent, "invoke_agent desk"), raw("m1", 1, "r1", ANSWER))
    assert (one.agent, one.final_response, one.input_tokens) == ("desk", "At home.", 10)


def test_a_tool_by_hand_around_a_call_stays_a_tool() -> None:
    tool = {"gen_ai.tool.name": "summarise", **written("r2")}
    [one] = of(
        span("root", "invoke_agent desk", {"gen_ai.agent.name": "desk"}, end=20),
        span("t", "execute_tool summarise", tool, parent="root", start=3, end=6),
        raw("m1", 1, "r1", ASKED),
        raw("m2", 4, "r2", ANSWER, parent="t"),
    )
    assert [call.name for call in one.tool_calls] == ["find", "summarise"]
    assert len(one.model_calls) == 2


def request(
    id: str,
    at: float,
    prompt: list[Any],
    output: list[Any],
    called: str = "completion",
    **more: Any,
) -> Span:
    """A span of the mode in which each call has its own, without the raw one."""
    attributes = written(
        f"response of {id}",
        **{
            "llm.request.type": called,
            "gen_ai.operation.name": called,
            "gen_ai.input.messages": json.dumps(prompt),
            "gen_ai.output.messages": json.dumps(output),
            **more,
        },
    )
    return span(
        id, "litellm_request", attributes, parent="root", start=at, end=at + 1, scope="litellm"
    )


SILENT = [{"role": "assistant", "parts": [], "finish_reason": "tool_calls"}]
SAID = [
    {
        "role": "assistant",
        "parts": [{"type": "text", "content": "At home."}],
        "finish_reason": "stop",
    }
]


@pytest.mark.parametrize(
    "called", ["completion", "acompletion", "aresponses", "anthropic_messages"]
)
def test_tool_calls_are_found_where_they_are_written(called: str) -> None:
    """They have no id; their results have one."""
    call = "gen_ai.completion.0.function_call."
    [one] = of(
        around("root"),
        request(
            "m1",
            1,
            [QUESTION],
            SILENT,
            called,
            **{call + "name": "find", call + "arguments": ARGUMENTS},
        ),
        request("m2", 3, [QUESTION, ASKED, RESULT], SAID, called),
    )
    assert calls_of(one) == [("find", {"id": "A-1"}, {"at": "home"})]
    assert (one.final_response, one.input_tokens, one.flags) == ("At home.", 14, frozenset())


def test_results_of_calls_without_ids_are_told_apart_by_their_order() -> None:
    def asks(*ids: str) -> dict[str, Any]:
        listed = [
            {"id": f"c{id}", "function": {"name": "find", "arguments": json.dumps({"id": id})}}
            for id in ids
        ]
        return {"role": "assistant", "tool_calls": listed}

    def answers(*ids: str) -> list[Any]:
        return [{"role": "tool", "tool_call_id": f"c{id}", "content": f"at {id}"} for id in ids]

    def written_calls(*ids: str) -> dict[str, Any]:
        return {
            f"gen_ai.completion.{index}.function_call.{key}": value
            for index, id in enumerate(ids)
            for key, value in (("name", "find"), ("arguments", json.dumps({"id": id})))
        }

    first = [QUESTION, asks("1", "2"), *answers("1", "2")]
    [one] = of(
        around("root"),
        request("m1", 1, [QUESTION], SILENT, **written_calls("1", "2")),
        request("m2", 3, first, SILENT, **written_calls("3")),
        request("m3", 5, [*first, asks("3"), *answers("3")], SAID),
    )
    assert calls_of(one) == [
        ("find", {"id": "1"}, "at 1"),
        ("find", {"id": "2"}, "at 2"),
        ("find", {"id": "3"}, "at 3"),
    ]


def test_embeddings_are_no_model_calls() -> None:
    vectors = {
        "llm.openai.input": "['text']",
        "llm.openai.data": "[{'embedding': [0.1]}]",
        "llm.openai.object": "list",
        "llm.openai.usage": "{'prompt_tokens': 5}",
    }
    [one] = of(
        around("root"),
        raw("m1", 1, "r1", ANSWER),
        request("e", 3, [], [], "aembedding"),
        span("v", "raw_gen_ai_request", vectors, parent="root", start=5, end=6, scope="litellm"),
    )
    assert (one.input_tokens, len(one.model_calls)) == (10, 1)


def test_the_raw_messages_of_anthropic_are_read() -> None:
    """Its input tokens leave out those that a cache holds."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 2}
    use = [{"type": "tool_use", "id": "u1", "name": "find", "input": {"id": "A-1"}}]
    result = [{"type": "tool_result", "tool_use_id": "u1", "content": '{"at": "home"}'}]

    def call(id: str, at: float, prompt: list[Any], content: list[Any]) -> Span:
        attributes = {
            "llm.anthropic.messages": repr(prompt),
            "llm.anthropic.content": repr(content),
            "llm.anthropic.role": "assistant",
            "llm.anthropic.id": id,
            "llm.anthropic.model": "big-1",
            "llm.anthropic.usage": repr(usage),
        }
        return span(id, "my call", attributes, parent="root", start=at, end=at + 1, scope="litellm")

    answered = [
        QUESTION,
        {"role": "assistant", "content": use},
        {"role": "user", "content": result},
    ]
    [one] = of(
        around("root"),
        call("m1", 1, [QUESTION], use),
        call("m2", 3, answered, [{"type": "text", "text": "At home."}]),
    )
    assert calls_of(one) == [("find", {"id": "A-1"}, {"at": "home"})]
    assert (one.user_input, one.final_response) == ("Where is A-1?", "At home.")
    assert (one.input_tokens, one.output_tokens, one.model) == (190, 4, "big-1")


def test_a_prompt_with_objects_is_not_the_text_of_the_user() -> None:
    one = raw("m1", 1, "r1", ANSWER)
    objects = "[Message(role='user', content='Where is A-1?')]"
    attributes = {**one.attributes, "llm.openai.messages": objects}
    [invocation] = of(
        around("root"),
        span("m1", "raw_gen_ai_request", attributes, parent="root", scope="litellm"),
    )
    assert invocation.user_input is None
    assert invocation.final_response == "At home."
    assert invocation.flags == {"content_missing"}


def test_removed_messages_are_not_recorded() -> None:
    hidden = {"role": "user", "content": "redacted-by-litellm"}
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "redacted-by-litellm"}]}]
    [one] = of(around("root"), request("m1", 1, [hidden], answer))
    assert (one.user_input, one.final_response) == (None, None)
    assert "content_missing" in one.flags
