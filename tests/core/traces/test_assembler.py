"""When a trace is read: completion, late spans, duplicates, limits."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.core.traces import AT_ONCE, SPAN_OVERHEAD, Assembler, Bounds
from pathgauge.collector.testing import log, span, span_id
from support.dialects import INSTALLED

BOUNDS = Bounds(settle=6, idle=30, max_age=600, late_ttl=300)

ROOT = span("root", "invoke_agent billing", start=0, end=5)
CHAT = span("chat", "chat gpt", parent="root", start=1, end=2)
TOOL = span("tool", "execute_tool lookup", parent="root", start=2, end=3)


def assembler(bounds: Bounds = BOUNDS) -> tuple[Assembler, InternalTelemetry]:
    telemetry = InternalTelemetry()
    return Assembler(bounds, telemetry, INSTALLED.may_be_entry), telemetry


def feed(core: Assembler, now: float, *spans: Span) -> list[Trace]:
    return list(core.feed(spans, (), now))


def told(traces: Iterable[Trace]) -> list[tuple[str, list[str]]]:
    """Why each trace was read, and the names of its spans in order."""
    return [(trace.closed_by, [span.name for span in trace.spans]) for trace in traces]


def test_a_trace_with_its_root_is_read_when_it_has_been_quiet_for_settle() -> None:
    core, _ = assembler()
    feed(core, 0, CHAT)
    feed(core, 3, ROOT)
    assert core.expire(8.999) == []
    assert told(core.expire(9)) == [("root_ended", ["invoke_agent billing", "chat gpt"])]


def test_many_readable_traces_are_returned_in_parts() -> None:
    core, _ = assembler()
    feed(
        core,
        0,
        *(span("root", "invoke_agent billing", trace=str(number)) for number in range(AT_ONCE + 1)),
    )
    first, left = core.expire(6), core.deadline()
    assert (len(first), left, len(core.expire(6)), core.open_traces) == (AT_ONCE, 6, 1, 0)


def test_a_span_at_the_moment_of_closing_belongs_to_the_trace() -> None:
    core, _ = assembler()
    feed(core, 0, ROOT)
    feed(core, 6, CHAT)
    assert core.expire(6) == []
    assert told(core.expire(12)) == [("root_ended", ["invoke_agent billing", "chat gpt"])]


def test_a_log_record_keeps_its_trace_open() -> None:
    core, _ = assembler()
    feed(core, 0, ROOT)
    list(core.feed((), [log("gen_ai.choice", span="root")], 4))
    assert core.expire(9) == []
    [trace] = core.expire(10)
    assert (len(trace.spans), len(trace.logs)) == (1, 1)


def test_a_trace_without_its_root_waits_for_idle() -> None:
    core, _ = assembler()
    feed(core, 0, CHAT)
    assert core.expire(29.999) == []
    assert told(core.expire(30)) == [("idle", ["chat gpt"])]


def test_an_entry_from_another_process_needs_no_parent() -> None:
    core, _ = assembler()
    feed(core, 0, span("entry", "invoke_agent a", parent="caller", remote_parent=True))
    assert told(core.expire(6)) == [("root_ended", ["invoke_agent a"])]


def test_an_entry_from_another_process_waits_for_the_spans_of_its_caller() -> None:
    core, _ = assembler()
    feed(
        core,
        0,
        span("entry", "invoke_agent remote", parent="http", remote_parent=True),
        span("chat", "chat", parent="caller"),
    )
    assert core.expire(6) == []
    assert told(core.expire(30))[0][0] == "idle"


def test_a_trace_that_is_never_quiet_is_read_at_max_age() -> None:
    core, _ = assembler()
    for second in range(0, 600, 5):
        feed(core, second, span(f"s{second}", "chat", parent="never"))
        assert core.expire(second) == []
    [trace] = core.expire(600)
    assert (trace.closed_by, len(trace.spans)) == ("too_old", 120)


def test_an_invocation_below_a_root_is_read_before_its_busy_trace() -> None:
    core, _ = assembler()
    root = span("session", "POST /session", start=0, end=100)
    first = span("first", "invoke_agent a", parent="session", start=0, end=1)
    work = span("work", "chat", parent="first")
    feed(core, 0, root, work, first)
    read: list[Trace] = []
    for second in range(1, 20):
        feed(core, second, span(f"other{second}", "GET /", parent="session"))
        read += core.expire(second)
    assert [{s.span_id for s in trace.spans} for trace in read] == [
        {span_id("session"), span_id("first"), span_id("work")}
    ]


def test_the_turns_of_an_open_session_are_read_separately() -> None:
    core, _ = assembler()
    feed(core, 0, span("turn1", "invoke_agent a", parent="session", start=0, end=1))
    feed(core, 4, span("turn2", "invoke_agent a", parent="session", start=3, end=4))
    feed(core, 7, span("chat3", "chat", parent="turn3", start=6, end=7))
    assert [[s.span_id for s in trace.spans] for trace in core.expire(8)] == [[span_id("turn1")]]


def test_an_invocation_waits_for_the_missing_parent_of_a_span_that_ran_during_it() -> None:
    agent = span("agent", "invoke_agent a", start=0, end=10)
    inside = span("tool", "execute_tool refund", parent="step", start=2, end=3)
    after = span("other", "execute_tool refund", parent="step", start=11, end=12)
    core, _ = assembler()
    feed(core, 0, agent, inside)
    assert core.expire(29.999) == []
    [trace] = core.expire(30)
    assert {one.span_id for one in trace.spans} == {span_id("agent"), span_id("tool")}
    core, _ = assembler()
    feed(core, 0, agent, inside)
    feed(core, 2, span("step", "step", parent="agent", start=1, end=4))
    assert [len(trace.spans) for trace in core.expire(8)] == [3]
    core, _ = assembler()
    feed(core, 0, agent, after)
    assert [[one.span_id for one in trace.spans] for trace in core.expire(6)] == [
        [span_id("agent")]
    ]


def test_the_steps_of_a_running_workflow_wait_for_it() -> None:
    core, _ = assembler()
    feed(core, 0, span("a", "invoke_agent coordinator", parent="workflow", start=0, end=1))
    feed(core, 4, span("b", "invoke_agent billing", parent="workflow", start=3, end=4))
    feed(core, 7, span("chat", "chat", parent="c", start=6, end=7))
    assert core.expire(12) == []


def test_a_late_span_causes_a_second_reading() -> None:
    core, telemetry = assembler()
    feed(core, 0, ROOT)
    core.expire(6)
    feed(core, 100, CHAT)
    assert core.open_traces == 1
    assert told(core.expire(106)) == [("root_ended", ["invoke_agent billing", "chat gpt"])]
    assert telemetry.traces_completed.items() == [(("root_ended",), 1)]


def test_a_span_after_late_ttl_is_dropped_and_counted() -> None:
    core, telemetry = assembler()
    feed(core, 0, ROOT)
    core.expire(6)
    core.expire(306)
    feed(core, 306, CHAT)
    assert telemetry.spans_dropped.items() == [(("late",), 1)]
    assert (core.open_traces, core.open_bytes, core.deadline()) == (0, 0, None)


def test_equal_copies_change_nothing_and_do_not_keep_a_trace_open() -> None:
    core, telemetry = assembler()
    feed(core, 0, ROOT, ROOT)
    feed(core, 5, ROOT)
    list(core.feed((), [log("x", span="root"), log("x", span="root")], 0))
    [trace] = core.expire(6)
    assert (len(trace.spans), len(trace.logs)) == (1, 1)
    assert telemetry.spans_dropped.items() == [(("duplicate",), 2)]
    assert telemetry.logs_dropped.items() == [(("duplicate",), 1)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_copy_that_ended_later_is_kept_in_any_order(order: tuple[int, int]) -> None:
    copies = [
        span("root", "invoke_agent billing", end=5),
        span("root", "invoke_agent billing", {"more": 1}, end=6),
    ]
    core, telemetry = assembler()
    feed(core, 0, *(copies[i] for i in order))
    assert core.expire(6)[0].spans == (copies[1],)
    assert telemetry.spans_dropped.items() == [(("conflict",), 1)]


DIRECT = {"service.name": "billing"}
ENRICHED = {**DIRECT, "service.version": "2", "scenario.id": "refund"}


@pytest.mark.parametrize("order", [(0, 1, 0), (1, 0, 1)])
@pytest.mark.parametrize("pause", [0, 100])
def test_of_copies_from_two_exporters_the_better_described_one_is_kept_in_any_order(
    order: tuple[int, ...], pause: float
) -> None:
    copies = [
        span("root", "invoke_agent billing", resource=resource) for resource in (DIRECT, ENRICHED)
    ]
    core, telemetry = assembler()
    read: list[Trace] = []
    now = 0.0
    for at in order:
        feed(core, now, copies[at])
        now += pause
        read += core.expire(now)
    read += core.drain(now)
    assert [one.resource.attributes for one in read[-1].spans] == [ENRICHED]
    assert telemetry.spans_dropped.items() == [(("duplicate",), 2)]


def test_equal_ids_of_two_tenants_are_two_traces() -> None:
    core, _ = assembler()
    feed(core, 0, ROOT, span("root", "invoke_agent billing", tenant="b"))
    assert sorted(trace.tenant for trace in core.expire(6)) == ["", "b"]


def test_a_trace_with_too_many_spans_is_cut_at_once_and_its_rest_is_dropped() -> None:
    core, telemetry = assembler(Bounds(max_trace_spans=2))
    [trace] = feed(core, 0, ROOT, CHAT, TOOL, span("late", "chat", parent="root"))
    assert (trace.closed_by, trace.truncated, len(trace.spans)) == ("too_big", True, 3)
    assert telemetry.spans_dropped.items() == [(("trace_too_big",), 1)]
    assert core.open_bytes == 0


def test_a_trace_with_too_many_bytes_is_cut_too() -> None:
    core, _ = assembler(Bounds(max_trace_bytes=5000))
    big = span("big", "chat", {"gen_ai.input.messages": "x" * 5000}, parent="root")
    assert told(feed(core, 0, ROOT, big)) == [("too_big", ["invoke_agent billing", "chat"])]


def test_only_open_traces_count_towards_the_memory_limit() -> None:
    core, _ = assembler(Bounds(max_open_bytes=len(ROOT.raw) + SPAN_OVERHEAD))
    feed(core, 0, ROOT)
    assert [core.full] == [True]
    core.expire(6)
    assert [core.full] == [False]


def test_the_oldest_retained_traces_are_forgotten_when_their_memory_is_used_up() -> None:
    core, telemetry = assembler(Bounds(max_retained_bytes=2 * (len(ROOT.raw) + SPAN_OVERHEAD)))
    for trace in ("a", "b", "c"):
        feed(core, 0, span("root", "invoke_agent billing", start=0, end=5, trace=trace))
        core.expire(6)
    feed(core, 7, span("late", "chat", trace="a"), span("late", "chat", trace="b"))
    assert telemetry.spans_dropped.items() == [(("late",), 1)]
    assert core.open_traces == 1


def test_draining_reads_everything_and_marks_incomplete_traces() -> None:
    core, _ = assembler()
    feed(core, 0, ROOT, span("orphan", "chat", parent="gone", trace="other"))
    assert sorted(told(core.drain(1))) == [
        ("root_ended", ["invoke_agent billing"]),
        ("shutdown", ["chat"]),
    ]
    assert core.open_traces == 0


def test_calling_expire_only_at_deadlines_misses_nothing() -> None:
    core, _ = assembler()
    feed(core, 0, ROOT)
    feed(core, 1, span("orphan", "chat", parent="gone", trace="other"))
    read: list[tuple[float, str]] = []
    while (due := core.deadline()) is not None:
        read += [(due, trace.closed_by) for trace in core.expire(due)]
    assert read == [(6, "root_ended"), (31, "idle")]


def test_a_cycle_of_parents_does_not_block_the_reading() -> None:
    core, _ = assembler()
    feed(core, 0, span("a", "invoke_agent a", parent="b"), span("b", "invoke_agent b", parent="a"))
    assert core.expire(6) == []
    assert told(core.expire(30))[0][0] == "idle"


def test_every_accepted_span_is_assembled_or_dropped() -> None:
    core, telemetry = assembler(Bounds(max_trace_spans=2))
    longer = span("root", "invoke_agent billing", end=8)
    sent = [
        ROOT,
        ROOT,
        longer,
        CHAT,
        TOOL,
        span("more", "chat", parent="root"),
        span("root", "invoke_agent billing", end=9, trace="z"),
    ]
    feed(core, 0, *sent)
    assert len(sent) == telemetry.spans_assembled.total() + telemetry.spans_dropped.total()


def test_a_longer_copy_of_a_read_span_keeps_the_memory_accounting_correct() -> None:
    core, _ = assembler()
    feed(core, 0, ROOT)
    core.expire(6)
    feed(core, 10, span("root", "invoke_agent billing", {"more": "x" * 1000}, end=9))
    core.expire(16)
    assert core.open_bytes == 0
    core.expire(316)
    feed(core, 320, span("root", "invoke_agent billing", trace="next"))
    assert core.open_bytes > 0


def test_a_root_that_ended_before_its_children_does_not_complete_the_trace() -> None:
    core, _ = assembler()
    feed(core, 0, span("http", "POST /chat", end=0.1), span("chat", "chat", parent="agent"))
    assert core.expire(6) == []
    feed(core, 20, span("agent", "invoke_agent a", parent="http", end=19))
    assert told(core.expire(26)) == [("root_ended", ["invoke_agent a", "chat", "POST /chat"])]
