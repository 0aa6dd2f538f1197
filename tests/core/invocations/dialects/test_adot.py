"""Texts that the AWS Distribution for OpenTelemetry moved from spans to log records, with
handwritten telemetry.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.testing import log, span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "any.instrumentation"
ASKED = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"n": 1}}


def of(*items: Span | LogRecord) -> list[Invocation]:
    spans = tuple(item for item in items if isinstance(item, Span))
    return read(
        Trace(
            "",
            trace_id("trace"),
            spans,
            tuple(item for item in items if isinstance(item, LogRecord)),
        )
    )


def agent() -> Span:
    return span(
        "a",
        "invoke_agent a",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"},
        end=10,
        scope=SCOPE,
    )


def model(id: str, start: float, stayed: dict[str, Any] | None = None) -> Span:
    attributes = {"gen_ai.operation.name": "chat", **(stayed or {})}
    return span(id, "chat gpt", attributes, parent="a", start=start, end=start + 1, scope=SCOPE)


def moved(
    of_span: str,
    *,
    input: list[tuple[str, Any]] | None = None,
    output: list[tuple[str, Any]] | None = None,
) -> LogRecord:
    sides = {"input": input, "output": output}
    listed = {
        side: {"messages": [{"role": role, "content": text} for role, text in rows]}
        for side, rows in sides.items()
        if rows
    }
    return log(SCOPE, body=listed, span=of_span, scope=SCOPE)


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        ([("system", "be nice"), ("user", "question")], "question"),
        (
            [
                (
                    "user",
                    json.dumps(
                        [{"role": "user", "parts": [{"type": "text", "content": "question"}]}]
                    ),
                )
            ],
            "question",
        ),
        (
            [
                ("user", json.dumps([{"role": "user", "content": "question"}])),
                ("system", '[{"type": "text", "content": "be nice"}]'),
            ],
            "question",
        ),
        ([("user", {"content": '[{"text": "question"}]'})], "question"),
        ([("user", '{"order": 42}')], None),
        ([("user", "{}")], None),
    ],
)
def test_moved_texts_are_the_user_input(rows: list[tuple[str, Any]], asked: str | None) -> None:
    assert of(agent(), model("m", 1), moved("m", input=rows))[0].user_input == asked


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ([("assistant", "answer")], "answer"),
        ([("assistant", '{"raw": "of the provider"}'), ("assistant", "answer")], "answer"),
        ([("assistant", json.dumps([{"role": "assistant", "content": "answer"}]))], "answer"),
        (
            [("assistant", {"message": '[{"text": "answer"}]', "finish_reason": "end_turn"})],
            "answer",
        ),
        ([("assistant", '{"status": "structured"}')], '{"status": "structured"}'),
        ([("assistant", "answer"), ("assistant", "[TaskOutput(description='...')]")], "answer"),
        ([("assistant", "{}")], None),
    ],
)
def test_moved_texts_are_the_answer(rows: list[tuple[str, Any]], answer: str | None) -> None:
    assert of(agent(), model("m", 1), moved("m", output=rows))[0].final_response == answer


def test_calls_that_stayed_on_the_span_are_joined_with_the_texts_that_did_not() -> None:
    asking = {"llm.output_messages.0.message.role": "assistant"}
    asking |= {
        f"llm.output_messages.0.message.tool_calls.0.tool_call.{key}": value
        for key, value in (("id", "c1"), ("function.name", "look"))
    }
    asking["openinference.span.kind"] = "LLM"
    shown = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.1.message.role": "tool",
        "llm.input_messages.1.message.tool_call_id": "c1",
        "llm.output_messages.0.message.role": "assistant",
    }
    [read_one] = of(
        agent(),
        model("m1", 1, asking),
        moved("m1", input=[("user", "question")], output=[("assistant", "Looking.")]),
        model("m2", 3, shown),
        moved(
            "m2",
            input=[("user", "question"), ("tool", '{"found": true}')],
            output=[("assistant", "answer")],
        ),
    )
    assert (read_one.user_input, read_one.final_response) == ("question", "answer")
    assert [(call.id, call.name, call.arguments, call.result) for call in read_one.tool_calls] == [
        ("c1", "look", {}, {"found": True})
    ]


def test_calls_that_stayed_on_the_span_are_not_taken_from_its_raw_output_again() -> None:
    output = json.dumps([{"role": "assistant", "parts": [ASKED]}])
    [read_one] = of(
        agent(),
        model("m", 1, {"gen_ai.output.messages": output}),
        moved("m", output=[("assistant", output)]),
    )
    assert [call.id for call in read_one.tool_calls] == ["c1"]


def test_texts_on_the_span_precede_moved_ones() -> None:
    stayed = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "content": "answer"}])}
    assert (
        of(agent(), model("m", 1, stayed), moved("m", output=[("assistant", "raw")]))[
            0
        ].final_response
        == "answer"
    )


def test_results_without_a_matching_call_are_dropped() -> None:
    asking = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [ASKED]}])}
    answered = {"gen_ai.input.messages": json.dumps([{"role": "assistant", "parts": [ASKED]}])}
    rows = [("tool", "one"), ("tool", "two")]
    [read_one] = of(
        agent(), model("m1", 1, asking), model("m2", 3, answered), moved("m2", input=rows)
    )
    assert read_one.tool_calls[0].result is None


def test_other_log_records_hold_no_messages() -> None:
    body = {"output": {"messages": [{"role": "assistant", "content": "answer"}]}}
    other = log("something else", body=body, span="m", scope=SCOPE)
    assert of(agent(), model("m", 1), other, log("", body=body, span="m"))[0].final_response is None


def test_calls_of_earlier_answers_in_a_prompt_are_not_made_again_by_a_call_that_failed() -> None:
    use = json.dumps([{"toolUse": {"toolUseId": "c1", "name": "look", "input": {}}}])
    said = {"message": use, "finish_reason": "tool_use"}
    logs = (
        moved("m1", output=[("assistant", said)]),
        moved("m2", output=[("assistant", {"content": use})]),
    )
    [one] = of(agent(), model("m1", 1), model("m2", 3), *logs)
    assert [call.id for call in one.tool_calls] == ["c1"]
