"""Special cases of Vercel's AI SDK, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def op(
    id: str,
    operation: str,
    start: float = 0,
    end: float = 1,
    *,
    parent: str | None = "root",
    error: str | None = None,
    **more: Any,
) -> Span:
    attributes = {"ai.operationId": operation} | {
        "ai." + key.replace("__", "."): value for key, value in more.items()
    }
    return span(
        id, operation, attributes, parent=parent, start=start, end=end, scope="ai", error=error
    )


def root(operation: str = "ai.generateText", **more: Any) -> Span:
    return op("root", operation, 0, 9, parent=None, **more)


CALLS = json.dumps(
    [{"toolCallId": f"c{n}", "toolName": "look", "input": json.dumps({"n": n})} for n in (1, 2)]
)


def test_tools_that_start_in_the_same_millisecond_have_the_order_of_the_model() -> None:
    [read_one] = of(
        root(telemetry__functionId="clerk"),
        op(
            "m",
            "ai.generateText.doGenerate",
            1,
            2,
            response__text="Looking.",
            response__toolCalls=CALLS,
            response__finishReason="tool-calls",
        ),
        op(
            "t2",
            "ai.toolCall",
            3,
            4,
            toolCall__name="look",
            toolCall__id="c2",
            toolCall__args='{"n":2}',
            toolCall__result="{}",
        ),
        op(
            "t1",
            "ai.toolCall",
            3,
            5,
            toolCall__name="look",
            toolCall__id="c1",
            toolCall__args='{"n":1}',
            toolCall__result='"one"',
        ),
    )
    assert [(call.id, call.arguments, call.result) for call in read_one.tool_calls] == [
        ("c1", {"n": 1}, "one"),
        ("c2", {"n": 2}, {}),
    ]
    assert (read_one.dialect, read_one.agent, read_one.final_response) == ("vercel", "clerk", None)


@pytest.mark.parametrize("text", ['{"city": "Paris"}', "[1] is the source", "plain"])
def test_an_answer_is_kept_as_it_was_written(text: str) -> None:
    assert of(root(response__text=text))[0].final_response == text
    assert (
        of(root(), op("m", "ai.generateText.doGenerate", response__text=text))[0].final_response
        == text
    )
    assert of(root("ai.generateObject", response__object=text))[0].final_response == text


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ({"system": "s", "prompt": "Hello"}, "Hello"),
        ({"prompt": [{"role": "user", "content": "Hello"}]}, "Hello"),
        (
            {
                "messages": [
                    {"role": "user", "content": "before"},
                    {"role": "user", "content": [{"type": "text", "text": "now"}]},
                ]
            },
            "now",
        ),
        ({}, None),
    ],
)
def test_user_input_is_a_text_or_the_last_message(prompt: dict[str, Any], said: str | None) -> None:
    assert of(root(prompt=json.dumps(prompt)))[0].user_input == said


@pytest.mark.parametrize(
    ("output", "result", "error"),
    [
        ({"type": "json", "value": {"ok": 1}}, {"ok": 1}, None),
        ({"type": "text", "value": "fine"}, "fine", None),
        ({"type": "content", "value": [{"type": "text", "text": "fine"}]}, "fine", None),
        ({"type": "error-text", "value": "kaboom"}, "kaboom", "kaboom"),
        ({"type": "celsius", "value": 20}, {"type": "celsius", "value": 20}, None),
    ],
)
def test_a_result_is_unwrapped_from_its_type(
    output: dict[str, Any], result: Any, error: str | None
) -> None:
    shown = [
        {
            "role": "tool",
            "content": [
                {"type": "tool-result", "toolCallId": "c1", "toolName": "look", "output": output}
            ],
        }
    ]
    [read_one] = of(
        root(),
        op(
            "m",
            "ai.generateText.doGenerate",
            1,
            2,
            response__toolCalls='[{"toolCallId":"c1","toolName":"look","input":"{}"}]',
        ),
        op("m2", "ai.generateText.doGenerate", 3, 4, prompt__messages=json.dumps(shown)),
    )
    assert [(call.result, call.error) for call in read_one.tool_calls] == [(result, error)]


def test_usage_of_the_last_step_alone_is_not_taken_for_the_sum() -> None:
    assert of(root(usage__promptTokens=100, usage__completionTokens=20))[0].input_tokens is None
    assert of(root(usage__inputTokens=300, usage__outputTokens=20))[0].input_tokens == 300
    steps = [
        op(
            f"m{n}",
            "ai.generateText.doGenerate",
            n,
            n + 1,
            usage__promptTokens=100,
            usage__completionTokens=20,
        )
        for n in (1, 2)
    ]
    assert of(root(usage__promptTokens=100), *steps)[0].input_tokens == 200


def test_an_error_in_the_stream_fails_the_turn() -> None:
    cut = op(
        "m", "ai.streamText.doStream", response__text="half an ans", response__finishReason="error"
    )
    [read_one] = of(
        root("ai.streamText", response__text="half an ans", response__finishReason="error"), cut
    )
    assert (read_one.error, read_one.final_response) == (True, None)


def test_truncated_calls_are_flagged_as_unknown_and_give_no_answer() -> None:
    cut: dict[str, Any] = {
        "response__text": "Looking.",
        "response__toolCalls": CALLS[:30],
        "response__finishReason": "tool-calls",
    }
    [read_one] = of(
        root(),
        op("m", "ai.generateText.doGenerate", 1, 2, response__toolCalls=CALLS),
        op("t", "ai.toolCall", 3, 4, toolCall__name="look", toolCall__id="c1"),
        op("m2", "ai.generateText.doGenerate", 5, 6, **cut),
    )
    assert [call.id for call in read_one.tool_calls] == ["c1", "c2"]
    assert (read_one.final_response, sorted(read_one.flags)) == (
        None,
        ["content_missing", "no_tool_spans", "truncated"],
    )


def test_text_beside_calls_that_were_lost_is_no_answer() -> None:
    lost: dict[str, Any] = {"response__text": "Looking.", "response__finishReason": "tool-calls"}
    assert of(root(), op("m", "ai.generateText.doGenerate", **lost))[0].final_response is None


def test_calls_of_the_sdk_inside_a_tool_are_sub_agents() -> None:
    [read_one] = of(
        root(),
        op("t", "ai.toolCall", 1, 5, toolCall__name="ask"),
        op("sub", "ai.generateText", 2, 4, parent="t", telemetry__functionId="billing"),
    )
    assert [(call.name, call.kind) for call in read_one.tool_calls] == [("ask", "agent")]
    assert [(sub.agent, sub.via) for sub in read_one.sub_agents] == [("billing", "agent")]


@pytest.mark.parametrize(
    "wrapper", ["telemetry__metadata__", "settings__context__"], ids=["metadata", "context"]
)
def test_what_the_user_wrote_beside_names_user_conversation_and_scenario(wrapper: str) -> None:
    more: dict[str, Any] = {
        wrapper + "sessionId": "s1",
        wrapper + "userId": "u1",
        wrapper + "scenario_id": "sc1",
    }
    [read_one] = of(root(**more))
    assert (read_one.conversation_id, read_one.user_id, read_one.scenario_id) == ("s1", "u1", "sc1")


def test_in_7_the_model_in_the_name_of_a_span_is_not_its_agent() -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "gpt"}
    [nameless] = of(span("root", "invoke_agent gpt", attributes, scope="gen_ai"))
    [named] = of(
        span(
            "root", "invoke_agent gpt", {**attributes, "gen_ai.agent.name": "clerk"}, scope="gen_ai"
        )
    )
    assert [(one.dialect, one.agent) for one in (nameless, named)] == [
        ("vercel", None),
        ("vercel", "clerk"),
    ]


def test_a_call_without_a_function_id_right_inside_an_agent_is_its_own_work() -> None:
    outer = span(
        "outer",
        "invoke_agent clerk",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"},
        end=20,
    )
    [read_one] = of(
        outer,
        op("root", "ai.generateText", 1, 5, parent="outer"),
        op("m", "ai.generateText.doGenerate", 2, 3),
    )
    assert (read_one.span_id, read_one.agent, read_one.sub_agents) == (
        span_id("outer"),
        "clerk",
        (),
    )


def test_embeddings_are_no_agents_work() -> None:
    assert of(op("e", "ai.embed", parent=None), op("e2", "ai.embed.doEmbed", parent="e")) == []


@pytest.mark.parametrize(
    ("name", "may"),
    [("ai.streamText", True), ("ai.streamText.doStream", False), ("ai.toolCall", False)],
)
def test_only_calls_of_the_sdk_may_be_entry_spans(name: str, may: bool) -> None:
    assert INSTALLED.may_be_entry(op("x", name)) is may


EXCEPTION = ("exception", {"exception.type": "TypeError", "exception.message": "limit is 100"})


@pytest.mark.parametrize(("events", "error"), [((), None), ((EXCEPTION,), "limit is 100")])
def test_an_error_that_openinference_copied_from_another_span_is_none(
    events: tuple[Any, ...], error: str | None
) -> None:
    attributes = {"openinference.span.kind": "TOOL", "ai.operationId": "ai.toolCall"}
    stated = {"ai.toolCall.name": "look", "ai.toolCall.id": "c1", "ai.toolCall.args": "{}"}
    tool = span(
        "t",
        "ai.toolCall",
        attributes | stated,
        parent="root",
        start=2,
        end=3,
        scope="ai",
        error="limit is 100",
        events=events,
    )
    [one] = of(root(response__text="Done."), tool)
    assert [call.error for call in one.tool_calls] == [error]


def test_a_run_did_not_fail_because_openinference_copied_the_error_of_a_tool_to_it() -> None:
    attributes = {"openinference.span.kind": "AGENT", "ai.operationId": "ai.generateText"}
    run = span(
        "root",
        "ai.generateText",
        attributes | {"ai.response.text": "Only 50 were possible."},
        end=9,
        scope="ai",
        error="limit is 100",
    )
    [one] = of(run)
    assert (one.error, one.final_response, one.agent) == (False, "Only 50 were possible.", None)


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ("AI_NoSuchToolError: Model tried to call unavailable tool 'look'.", True),
        ("AI_InvalidToolInputError: Invalid input for tool look: ...", True),
        ("No such tool.", False),
    ],
)
def test_a_call_that_the_sdk_refused_has_failed(result: str, failed: bool) -> None:
    asked = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}
    answered = {"type": "tool_call_response", "id": "c1", "response": result}
    first = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [asked]}])}
    prompt = [{"role": "assistant", "parts": [asked]}, {"role": "tool", "parts": [answered]}]
    second = {"gen_ai.input.messages": json.dumps(prompt)}
    [one] = of(
        span("a", "invoke_agent m", {"gen_ai.operation.name": "invoke_agent"}, scope="gen_ai"),
        *(
            span(
                f"m{start}",
                "chat m",
                {"gen_ai.operation.name": "chat", **messages},
                parent="a",
                start=start,
                end=start + 0.1,
                scope="gen_ai",
            )
            for start, messages in ((0.1, first), (0.3, second))
        ),
    )
    [call] = one.tool_calls
    assert (call.result, call.error) == (result, result if failed else None)
