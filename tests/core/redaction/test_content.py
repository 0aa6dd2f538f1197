"""Captures of real frameworks without secrets or without content: what is left, and what can still
be scored.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.core.redaction import Redactor, Rules
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.collector.testing import log, span
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from pathgauge.scorers.types import ExpectedCall, Invocation, ReferenceTurn
from support.dialects import INSTALLED, read
from support.planted import VALUES, everywhere, logs, spans
from support.repository import CAPTURES
from support.thinning import thinned

CASES = sorted(
    path.parent.relative_to(CAPTURES).as_posix() for path in CAPTURES.glob("*/*/invocations.json")
)

MASKING = Redactor(Rules(), {}, b"salt", INSTALLED)
WITHOUT = Redactor(Rules(content=False), {}, b"salt", INSTALLED)
CONTENT = (
    "arguments",
    "result",
    "input_messages",
    "output_messages",
    "step_input",
    "step_output",
    "agent_input",
    "agent_output",
    "final_response",
    "tool_definitions",
)


def invocations(spans: tuple[Span, ...], logs: tuple[LogRecord, ...]) -> list[Invocation]:
    traces = dict.fromkeys(one.trace_id for one in spans)
    return [
        invocation
        for trace_id in traces
        for invocation in read(
            Trace(
                "",
                trace_id,
                tuple(s for s in spans if s.trace_id == trace_id),
                tuple(r for r in logs if r.trace_id == trace_id),
            )
        )
    ]


def structure(invocation: Invocation) -> tuple[Any, ...]:
    calls = [(call.name, call.kind, call.id, call.group) for call in invocation.tool_calls]
    names = (
        invocation.agent,
        invocation.model,
        invocation.dialect,
        [run.agent for run in invocation.sub_agents],
    )
    place = (
        invocation.scenario_id,
        invocation.conversation_id,
        invocation.user_id,
        invocation.turn,
        invocation.run_id,
    )
    return (
        calls,
        names,
        place,
        invocation.input_tokens,
        invocation.output_tokens,
        invocation.error,
        invocation.error_type,
    )


def texts(value: Any) -> set[str]:
    """All texts in a value that could be content: long ones, and not names."""
    if isinstance(value, dict):
        return {text for item in value.values() for text in texts(item)}
    if isinstance(value, list):
        return {text for item in value for text in texts(item)}
    return {value} if isinstance(value, str) and len(value) > 12 and " " in value else set()


def content(captured: tuple[Span, ...]) -> set[str]:
    """The texts at all places at which the dialects say that content lives."""
    places = INSTALLED.plan(frozenset(INSTALLED.dialects)).fields
    values = (first([one], getattr(places, field)) for one in captured for field in CONTENT)
    return {text for value in values for text in texts(decoded(value))}


@pytest.mark.parametrize("case", CASES[::6])
def test_masking_secrets_changes_no_tool_name_and_no_count(case: str) -> None:
    files = read_path(CAPTURES / case)
    masked = invocations(MASKING.spans(files.spans).records, MASKING.logs(files.logs).records)
    assert list(map(structure, masked)) == list(
        map(structure, invocations(tuple(files.spans), tuple(files.logs)))
    )


@pytest.mark.parametrize("case", thinned(CASES, 48))
def test_without_content_there_are_still_all_names_and_counts_and_no_text(case: str) -> None:
    files = read_path(CAPTURES / case)
    bare, logs = WITHOUT.spans(files.spans), WITHOUT.logs(files.logs)
    before = invocations(tuple(files.spans), tuple(files.logs))
    after = invocations(bare.records, logs.records)
    assert [_without_ids(one) for one in map(structure, after)] == [
        _without_ids(one) for one in map(structure, before)
    ]
    assert {(one.user_input, one.final_response) for one in after} == {(None, None)}
    assert {call.arguments for one in after for call in one.tool_calls} <= {None}
    assert {call.result for one in after for call in one.tool_calls} <= {None}
    stored = bare.body + logs.body
    names = {span.name for span in files.spans} | {
        name for one in before for call in one.tool_calls for name in (call.name,)
    }
    # OpenLLMetry names the span of a task of CrewAI after its description.
    names |= {span.name.removesuffix(".task") for span in files.spans}
    assert [text for text in content(tuple(files.spans)) - names if text.encode() in stored] == []


def test_calls_in_a_member_of_an_output_are_kept_although_nothing_else_of_it_is() -> None:
    """Of a reply of Genkit without tokens and without a model."""
    call = {"toolRequest": {"name": "lookup_order", "ref": "c1", "input": {"order_id": "A-1042"}}}
    attributes = {
        "genkit:type": "action",
        "genkit:metadata:subtype": "model",
        "genkit:name": "acme/m1",
        "genkit:output": orjson.dumps({"message": {"role": "model", "content": [call]}}).decode(),
    }
    spans = (
        span("a", "flow", {"genkit:metadata:subtype": "flow"}, trace="t", scope="genkit-tracer"),
        span("b", "acme/m1", attributes, parent="a", trace="t", scope="genkit-tracer"),
    )
    kept = WITHOUT.spans(spans).records
    [before], [after] = invocations(spans, ()), invocations(kept, ())
    assert [call.name for call in before.tool_calls] == ["lookup_order"]
    assert structure(after) == structure(before)


def _without_ids(structure: tuple[Any, ...]) -> tuple[Any, ...]:
    """Some instrumentations tell ids of calls in content alone."""
    return ([(name, kind) for name, kind, *_ in structure[0]], *structure[1:])


@pytest.mark.parametrize("hidden", VALUES)
def test_without_content_no_byte_of_it_is_left(hidden: str) -> None:
    secret = "Marie Curie was here"
    planted = everywhere(secret, VALUES[hidden](secret))
    sent = [
        one
        for one in spans(planted)
        if secret not in one.name + one.scope.name and "user.id" not in one.attributes
    ]
    records = [one for one in logs(planted) if secret not in one.event_name]
    assert sent
    assert secret.encode() not in WITHOUT.spans(sent).body + WITHOUT.logs(records).body


def test_without_content_names_are_neither_objects_nor_what_a_bridge_logged() -> None:
    attributes = {
        "gen_ai.request.model": {"deep": "hunter2"},
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.agent.name": [{"a": 1}],
    }
    events = [
        ("The user said hunter2", {}),
        ("exception", {"exception.type": "E"}),
        ("[REDACTED]", {}),
    ]
    [one] = WITHOUT.spans([span("a", "chat", attributes, events=events)]).records
    assert one.attributes == {
        "pathgauge.redacted": True,
        "gen_ai.response.finish_reasons": ["stop"],
    }
    assert [event.name for event in one.events] == ["[REDACTED]", "exception", "[REDACTED]"]


def test_arguments_and_answers_that_were_removed_are_not_scored() -> None:
    called = span(
        "a", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    )
    tool = span(
        "t",
        "execute_tool pay",
        {"gen_ai.tool.name": "pay", "gen_ai.tool.call.arguments": '{"n": 1}'},
        parent="a",
    )
    [invocation] = invocations(WITHOUT.spans([called, tool]).records, ())
    assert invocation.flags >= {"redacted", "content_missing"}
    reference = ReferenceTurn(tool_calls=(ExpectedCall("pay", {"n": 1}),), response="Done.")
    scores = [
        ToolTrajectoryAvgScore().score(invocation, reference),
        ResponseMatchScore().score(invocation, reference),
    ]
    assert [(score.value, score.reason) for score in scores] == [
        (None, "args_not_recorded"),
        (None, "response_not_recorded"),
    ]


def test_an_invocation_with_a_masked_answer_is_flagged() -> None:
    answer = [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Write to help@example.com"}],
            "finish_reason": "stop",
        }
    ]
    agent = span(
        "a",
        "invoke_agent a",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": answer},
    )
    [invocation] = invocations(MASKING.spans([agent]).records, ())
    assert (invocation.final_response, "redacted" in invocation.flags) == ("Write to [email]", True)


def test_an_invocation_with_masked_log_records_is_flagged() -> None:
    agent = span("a", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"})
    model = span("m", "chat m", {"gen_ai.operation.name": "chat"}, parent="a")
    said = log("gen_ai.user.message", body={"content": "I am bob@example.com"}, span="m")
    [invocation] = invocations((agent, model), MASKING.logs([said]).records)
    assert (invocation.user_input, "redacted" in invocation.flags) == ("I am [email]", True)


def test_a_redacted_span_outside_of_the_agents_work_is_not_flagged() -> None:
    agent = span("a", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"})
    request = span("h", "GET", {"url.full": "https://x/?mail=bob@example.com"}, parent="a")
    [invocation] = invocations(MASKING.spans([agent, request]).records, ())
    assert "redacted" not in invocation.flags
