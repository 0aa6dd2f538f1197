"""What is read beside the usual parts of an invocation, if a scorer needs it: spans, the texts of
the model, and cached tokens.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge import Extras, SpanRecord
from pathgauge.collector.core.invocations import read
from pathgauge.collector.core.invocations.model_calls import MAX_TEXT
from pathgauge.collector.core.invocations.span_records import MAX_VALUE
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.collector.testing import EPOCH_S, span, span_id, trace_id
from pathgauge.scorers.authoring.extras import NO_EXTRAS
from pathgauge.scorers.types import Invocation, ModelCall
from support.dialects import INSTALLED
from support.repository import CAPTURES

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def read_spans(*spans: Span, extras: Extras) -> Invocation:
    (found,) = read(Trace("", trace_id("trace"), spans), INSTALLED, extras=extras)
    return found


def chat(*messages: Any, id: str = "chat", **attributes: Any) -> Span:
    output = {"gen_ai.output.messages": json.dumps(messages)} if messages else {}
    return span(id, "chat m", CHAT | output | attributes, parent="agent")


def message(*parts: dict[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    return {"role": "assistant", "parts": parts, "finish_reason": finish_reason}


ROOT = span("agent", "invoke_agent support", AGENT, end=9)
HELLO = {"type": "text", "content": "Hello"}
CALL = {"type": "tool_call", "id": "1", "name": "search", "arguments": {}}


def test_without_extras_no_spans_and_texts_are_kept() -> None:
    found = read_spans(ROOT, chat(message(HELLO)), extras=NO_EXTRAS)
    assert found.spans == ()
    assert [call.text for call in found.model_calls] == [None]


def test_spans_have_their_parents_times_status_and_the_attributes_that_are_asked_for() -> None:
    spans = (
        ROOT,
        span("tool", "execute_tool", {"db.system": "pg", "x": 1}, parent="agent", start=1, end=2),
        span("query", "SELECT", {"db.system": "pg"}, parent="tool", start=1.5, error="boom"),
    )
    found = read_spans(*spans, extras=Extras(frozenset({"db.system", "absent"})))
    start = EPOCH_S * 10**9
    assert found.spans == (
        SpanRecord(
            span_id("agent"), None, "invoke_agent support", "unset", start, start + 9 * 10**9
        ),
        SpanRecord(
            span_id("tool"),
            span_id("agent"),
            "execute_tool",
            "unset",
            start + 10**9,
            start + 2 * 10**9,
            {"db.system": "pg"},
        ),
        SpanRecord(
            span_id("query"),
            span_id("tool"),
            "SELECT",
            "error",
            start + 1_500_000_000,
            start + 10**9,
            {"db.system": "pg"},
        ),
    )
    assert [one.duration_s for one in found.spans] == [9.0, 1.0, None]


def test_the_entry_span_has_no_parent_even_below_another_service() -> None:
    web = span("web", "GET /", end=10)
    root = span("agent", "invoke_agent support", AGENT, parent="web", end=9)
    found = read_spans(web, root, chat(message(HELLO)), extras=Extras(frozenset()))
    assert [(one.name, one.parent_id) for one in found.spans] == [
        ("invoke_agent support", None),
        ("chat m", span_id("agent")),
    ]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("x" * MAX_VALUE, "x" * MAX_VALUE),
        ("x" * (MAX_VALUE + 1), None),
        (True, True),
        (1.5, 1.5),
        ([1, "a"], [1, "a"]),
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        (b"ab", "b'ab'"),
        (["x" * MAX_VALUE], None),
        ([[]] * 300, None),
    ],
    ids=repr,
)
def test_only_short_values_are_kept(value: Any, kept: Any) -> None:
    root = span("agent", "invoke_agent support", AGENT | {"a": value, "b": 1})
    (found,) = read_spans(root, extras=Extras(frozenset({"a"}))).spans
    expected = ({}, ("a",)) if kept is None else ({"a": kept}, ())
    assert (found.attributes, found.too_long) == expected


def test_a_long_name_is_cut() -> None:
    root = span("agent", "invoke_agent " + "x" * 2_000, AGENT)
    assert len(read_spans(root, extras=Extras(frozenset())).spans[0].name) == 1_000


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([message(HELLO)], "Hello"),
        ([message(HELLO, CALL, finish_reason="tool_call")], "Hello"),
        ([message(CALL, finish_reason="tool_call")], ""),
        ([message(HELLO), message({"type": "text", "content": "another choice"})], "Hello"),
        ([message(HELLO, finish_reason=""), message(HELLO)], "HelloHello"),
        ([message({"type": "text", "content": "x" * (MAX_TEXT + 1)})], "x" * MAX_TEXT),
        ([message({"type": "reasoning", "content": "hm"}, HELLO)], "Hello"),
        ([], None),
    ],
)
def test_the_text_of_a_model_call_is_what_it_said_also_beside_tool_calls(
    messages: list[Any], text: str | None
) -> None:
    found = read_spans(ROOT, chat(*messages), extras=Extras(model_texts=True))
    assert [call.text for call in found.model_calls] == [text]


def cached(capture: str) -> set[tuple[int | None, int | None, int | None]]:
    """Input, cached and written tokens of the model calls of a capture."""
    files = read_path(CAPTURES / capture)
    traces: dict[str, list[Span]] = {}
    for one in files.spans:
        traces.setdefault(one.trace_id, []).append(one)
    calls: list[ModelCall] = []
    for trace, spans in traces.items():
        logs = tuple(log for log in files.logs if log.trace_id == trace)
        for found in read(Trace("", trace, tuple(spans), logs), INSTALLED):
            calls += found.model_calls
    return {(call.input_tokens, call.cached_tokens, call.cache_write_tokens) for call in calls}


@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        ("strands-1.62-native/refund", (100, 30, None)),
        ("vercel-ai-6-native/refund", (100, 30, 0)),
        ("vercel-ai-7-native/refund", (100, 30, 0)),
        ("google-adk-2.9-native/refund", (100, 30, None)),
        ("langgraph-mlflow-3.17/refund", (100, 30, None)),
        ("langgraph-langfuse-5/refund", (100, 30, None)),
        ("llama-index-openinference/refund", (100, 30, None)),
        ("haystack-2-native/refund", (100, 30, None)),
    ],
)
def test_cached_tokens_are_read_from_every_dialect_that_has_them(
    capture: str, expected: tuple[int | None, int | None, int | None]
) -> None:
    assert expected in cached(capture)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.usage.cache_read.input_tokens": 3}, (3, None)),
        ({"gen_ai.usage.cache_creation.input_tokens": 4}, (None, 4)),
        ({"gen_ai.usage.cache_write.input_tokens": 4}, (None, 4)),
        (
            {
                "gen_ai.usage.cache_read_input_tokens": 3,
                "gen_ai.usage.cache_creation_input_tokens": 4,
            },
            (3, 4),
        ),
    ],
)
def test_cached_tokens_of_the_conventions(
    attributes: dict[str, Any], expected: tuple[int | None, int | None]
) -> None:
    found = read_spans(ROOT, chat(**attributes), extras=NO_EXTRAS)
    (call,) = found.model_calls
    assert (call.cached_tokens, call.cache_write_tokens) == expected
