"""Whatever a trace consists of, reading it takes time in proportion to its size, and stops when its
CPU time is used up.
"""

from __future__ import annotations

import json

import pytest

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.core.reading_budget import ReadingBudget, TooSlowError
from pathgauge.collector.testing import span
from support.dialects import read
from support.hostile_traces import (
    ANSWERING,
    ARGUMENTS,
    ASKING,
    CONTENT,
    INPUT,
    NODES,
    OUTPUT,
    TREES,
    agent,
    operation,
    tool,
    trace_of,
    trace_with_content,
    trace_with_tree,
)
from support.proportion import in_proportion

SIZE = 2_560
"""Of a large trace; the small one is a sixteenth of it."""
MAX_UNSEEN = 200
"""Spans, messages or values between two looks at the clock."""

QUADRATIC_BEFORE = [
    *("messages that ask for a tool", "calls and as many results", "definitions of tools"),
    *("tools that were asked for with one id", "handoffs instead of tools", "events"),
]
TREES_BEFORE = [
    ("different agents", "below a chain"),
    ("different agents", "beside model calls"),
    ("tools with ids after tools without", "in a chain"),
]


def read_trace(trace: Trace) -> None:
    read(trace)


@pytest.mark.parametrize("content", QUADRATIC_BEFORE)
def test_content_is_read_in_proportion_to_its_size(content: str) -> None:
    assert in_proportion(lambda size: trace_with_content(content, size), read_trace, SIZE)


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "tree"), TREES_BEFORE)
def test_a_tree_of_spans_is_read_in_proportion_to_its_size(nodes: str, tree: str) -> None:
    assert in_proportion(lambda size: trace_with_tree(nodes, tree, size), read_trace, SIZE)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("content", CONTENT)
def test_any_content_is_read_in_proportion_to_its_size(content: str) -> None:
    assert in_proportion(lambda size: trace_with_content(content, size), read_trace, SIZE)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("nodes", NODES)
def test_any_tree_of_spans_is_read_in_proportion_to_its_size(nodes: str, tree: str) -> None:
    assert in_proportion(lambda size: trace_with_tree(nodes, tree, size), read_trace, SIZE)


def rounds(size: int) -> Trace:
    """Model spans of VoltAgent, each with a tool beside it."""
    attributes = {"span.type": "llm"}, {"span.type": "tool", "tool.name": "look"}
    names = "llm:generateText", "tool.execution:look"
    spans = [
        span(
            f"{name} {at}",
            name,
            one,
            parent="a",
            start=at + within,
            end=at + 0.5,
            scope="@voltagent/core",
        )
        for at in range(size)
        for name, one, within in zip(names, attributes, (0.0, 0.1), strict=True)
    ]
    agent_span = span("a", "a", {"agent.state": "completed"}, end=size, scope="@voltagent/core")
    return trace_of([agent_span, *spans], ())


def test_model_spans_of_several_rounds_are_read_in_proportion_to_their_number() -> None:
    assert in_proportion(rounds, read_trace, SIZE)


INTERRUPTED = [
    *("empty messages", "messages that ask for a tool", "results", "messages in text", "pairs"),
    *("messages of LangChain", "items of responses", "messages in objects", "events"),
    *("tools that were asked for", "handoffs instead of tools", "tools with schemas"),
    *("log records of a model call", "moved texts", "definitions of tools"),
]


def looks_at_the_clock(trace: Trace) -> int:
    """How often reading asks whether its time is used up."""
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return 0.0

    with ReadingBudget(1.0, clock).measured():
        read(trace)
    return looks


@pytest.mark.parametrize("content", INTERRUPTED)
def test_reading_looks_at_the_clock_for_all_content(content: str) -> None:
    assert looks_at_the_clock(trace_with_content(content, SIZE)) >= SIZE // MAX_UNSEEN


@pytest.mark.parametrize("tree", TREES)
def test_reading_looks_at_the_clock_for_all_spans(tree: str) -> None:
    trace = trace_with_tree("plain spans", tree, SIZE)
    assert looks_at_the_clock(trace) >= SIZE // MAX_UNSEEN


def test_reading_looks_at_the_clock_for_long_values() -> None:
    text = json.dumps(["x" * 1_000_000])
    few = looks_at_the_clock(trace_of([agent("a"), tool("t", "a", **{ARGUMENTS: "[]"})], ()))
    many = looks_at_the_clock(trace_of([agent("a"), tool("t", "a", **{ARGUMENTS: text})], ()))
    assert many > few


def test_of_a_long_conversation_only_the_last_turn_is_read() -> None:
    earlier = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}] * SIZE
    prompt = [*earlier, {"role": "user", "content": "Where is order 42?"}]
    said = json.dumps([{"role": "assistant", "content": "At home."}])
    first = operation("chat", **{INPUT: json.dumps(prompt), OUTPUT: said})
    last = operation("chat", **{INPUT: json.dumps([*prompt, ASKING, ANSWERING]), OUTPUT: said})
    calls = [
        span(f"m{at}", "chat m", one, parent="a", start=at) for at, one in ((1, first), (2, last))
    ]
    trace = trace_of([agent("a"), *calls], ())
    [found] = read(trace)
    assert found.user_input == "Where is order 42?"
    assert found.flags == frozenset(["lost_tool_calls"])
    assert looks_at_the_clock(trace) < len(earlier) // MAX_UNSEEN


def test_reading_stops_when_the_time_is_used_up() -> None:
    seconds = map(float, range(1_000))
    budget = ReadingBudget(3.0, lambda: next(seconds))
    with pytest.raises(TooSlowError) as caught, budget.measured():
        read(trace_with_content("empty messages", SIZE))
    assert str(caught.value) == "found 4.0 s of CPU time, expected at most 3"
