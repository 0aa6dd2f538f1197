"""Explanations of why a trace is still open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.traces import Assembler, Bounds, Recalled, TraceKey
from pathgauge.collector.core.traces.explain import Waiting, explain
from pathgauge.collector.core.traces.open_trace import OpenTrace
from pathgauge.collector.testing import log, span, span_id, trace_id

BOUNDS = Bounds(settle=6.0, idle=30.0, max_age=600.0)
AGENT = {"gen_ai.operation.name": "invoke_agent"}


def trace_of(*items: Span | LogRecord, at: Iterable[float] = ()) -> OpenTrace:
    """A trace whose records arrived at these times, by default 0; a span named `agent` is an
    anchor.
    """
    trace = OpenTrace(("team-a", "trace id"), 0.0, 0.0, due=6.0)
    for item, now in zip(items, at or [0.0] * len(items), strict=True):
        if isinstance(item, Span):
            trace.add_span(item, now, entry_agent=item.name == "agent")
        else:
            trace.add_log(item, now)
    return trace


ROOT = span("root", "agent", AGENT)
CASES: dict[str, tuple[Sequence[Span | LogRecord], Sequence[str]]] = {
    "complete": ([ROOT, span("tool", "tool", parent="root")], ["quiet: 2.0 of 6 s (settle)"]),
    "entered from another process": (
        [span("a", "agent", parent="caller", remote_parent=True)],
        ["quiet: 2.0 of 6 s (settle)"],
    ),
    "without agent": (
        [span("a", "GET /")],
        ["a span of an agent; without one, the trace is skipped", "quiet: 2.0 of 6 s (settle)"],
    ),
    "parents are missing": (
        [
            ROOT,
            span("b", "tool", parent="step"),
            span("c", "tool", parent="step"),
            span("d", "tool", parent="other"),
        ],
        [
            f"a parent that has not arrived: {span_id('step')}, {span_id('other')}",
            "quiet: 2.0 of 30 s (idle)",
        ],
    ),
    "many parents are missing": (
        [ROOT, *(span(f"child-{n}", "tool", parent=f"parent-{n}") for n in range(8))],
        [
            (
                "a parent that has not arrived:"
                f" {', '.join(span_id(f'parent-{n}') for n in range(5))} and 3 more"
            ),
            "quiet: 2.0 of 30 s (idle)",
        ],
    ),
    "a circle": (
        [span("a", "agent", parent="b"), span("b", "tool", parent="a")],
        [
            "a span without parent: the parents form a cycle",
            "quiet: 2.0 of 30 s (idle)",
        ],
    ),
    "log records alone": (
        [log("gen_ai.choice", span="a")],
        [
            "a span: only log records have arrived",
            "a span of an agent; without one, the trace is skipped",
            "quiet: 2.0 of 30 s (idle)",
        ],
    ),
    "an agent that still runs": (
        [span("a", "agent", AGENT, start=-1_700_000_000, end=-1_700_000_000)],
        [
            f"the end of an agent span: {span_id('a')}; without it there is no duration",
            "quiet: 2.0 of 6 s (settle)",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_reasons_of_an_open_trace(case: str) -> None:
    items, reasons = CASES[case]
    assert explain(trace_of(*items), BOUNDS, 2.0).waits_for == (
        *reasons,
        "or age: 2.0 of 600 s (max_age)",
    )


def test_the_numbers_of_an_open_trace() -> None:
    trace = trace_of(
        ROOT, span("tool", "tool", parent="root"), log("gen_ai.choice"), at=(0.0, 1.0, 4.0)
    )
    trace.rows = [7, 9]
    assert explain(trace, BOUNDS, 5.5) == Waiting(
        tenant="team-a",
        trace_id="trace id",
        age=5.5,
        silence=1.5,
        spans=2,
        log_records=1,
        journal_rows=2,
        damaged=False,
        read_before=False,
        looked_at_in=0.5,
        waits_for=("quiet: 1.5 of 6 s (settle)", "or age: 5.5 of 600 s (max_age)"),
    )


def test_a_spilled_trace_shows_times_only() -> None:
    trace = trace_of(ROOT)
    trace.rows, trace.damaged, trace.completed = [7], True, True
    trace.spill()
    told = explain(trace, BOUNDS, 2.0)
    assert (told.spans, told.log_records, told.journal_rows, told.damaged, told.read_before) == (
        None,
        None,
        1,
        True,
        True,
    )
    assert told.waits_for == (
        "its spans to be read back from the journal",
        "quiet: 2.0 of 6 s (settle) if it is complete, else of 30 s (idle)",
    )


def test_a_lagging_pipeline_is_the_first_reason() -> None:
    assert explain(trace_of(ROOT), BOUNDS, 6.5).waits_for[0] == "quiet: 6.5 of 6 s (settle)"
    assert (
        explain(trace_of(ROOT), BOUNDS, 9.0).waits_for[0] == "the pipeline, which is 3.0 s behind"
    )


def test_content_of_spans_is_not_shown() -> None:
    loud = span(
        "a",
        "LOUD",
        {"LOUD": "LOUD"},
        parent="b",
        error="LOUD",
        scope="LOUD",
        resource={"LOUD": "LOUD"},
        trace_state="LOUD=1",
    )
    assert "LOUD" not in repr(explain(trace_of(loud), BOUNDS, 2.0))


def test_the_oldest_open_traces_are_listed_and_read_ones_only_counted() -> None:
    core = Assembler(BOUNDS, InternalTelemetry(), lambda one: one.name == "agent")
    for number, trace in enumerate(("first", "second", "third")):
        list(core.feed([span("root", "agent", AGENT, trace=trace)], (), float(number)))
    core.expire(6.0)  # reads the first
    list(core.feed([span("late", "tool", parent="root", trace="first")], (), 6.5))
    assert [trace.key[1] for trace in core.oldest(2)] == [trace_id("second"), trace_id("third")]
    core.expire(7.0)
    assert [trace.key[1] for trace in core.oldest(9)] == [trace_id("third"), trace_id("first")]
    assert (core.open_traces, core.retained_traces, core.spilled_traces) == (2, 1, 0)


def test_spilled_open_traces_are_counted() -> None:
    rows = [
        span("root", "agent", {"input": "x" * 5000}, trace=f"trace {number}")
        for number in range(10)
    ]

    def recall(_: TraceKey, numbers: Sequence[int]) -> list[Recalled]:
        return [Recalled(0.0, [rows[number - 1]], ()) for number in numbers]

    core = Assembler(
        replace(BOUNDS, max_open_bytes=30_000),
        InternalTelemetry(),
        lambda one: one.name == "agent",
        recall,
    )
    for number, one in enumerate(rows, 1):
        list(core.feed([one], (), 0.0, number))
    spilled = sum(trace.spilled for trace in core.oldest(10))
    assert 0 < spilled == core.spilled_traces < 10
    core.expire(6.0)
    assert (core.open_traces, core.retained_traces, core.spilled_traces) == (0, 10, 0)
