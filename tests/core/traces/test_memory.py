"""Spilled traces are read like any others, and every journal row is released in the end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.traces import (
    AT_ONCE_BYTES,
    Assembler,
    Bounds,
    TraceSnapshot,
)
from pathgauge.collector.testing import span, trace_id
from support.assembler_life import Journal, Life
from support.examples import examples

BOUNDS = Bounds(settle=6, idle=30, max_age=600, late_ttl=300)
TIGHT = Bounds(settle=6, idle=30, max_age=600, late_ttl=300, max_open_bytes=2500)
"""Memory for two spans."""
FEW = Bounds(settle=6, idle=30, max_age=600, late_ttl=300, max_open_bytes=20_000)
"""Memory for three spans with `LONG`, and for the rows of some traces."""
LONG = {"text": "x" * 4000}


def agent(trace: str = "trace", **options: object) -> Span:
    return span("agent", "agent", trace=trace, **options)  # type: ignore[arg-type]


def tool(name: str = "tool", trace: str = "trace") -> Span:
    return span(name, name, trace=trace, parent="agent")


def test_the_quietest_traces_are_spilled_and_read_unchanged() -> None:
    life = Life(TIGHT, Journal())
    for number in range(10):
        life.feed(agent(str(number)), tool(trace=str(number)), at=number / 10)
    assert (life.assembler.open_traces, life.telemetry.traces_spilled.total() > 0) == (10, True)
    read = life.expire(20)
    assert [trace.spans for trace in read] == [
        (agent(str(number)), tool(trace=str(number))) for number in range(10)
    ]
    assert [trace.truncated for trace in read] == [False] * 10


def test_senders_must_retry_if_rows_alone_use_up_the_memory() -> None:
    life = Life(TIGHT, Journal())
    while not life.assembler.full:
        life.feed(agent(str(life.assembler.open_traces)), at=0)
    assert 3 <= life.assembler.open_traces <= 4


@pytest.mark.parametrize("rooted", [False, True])
def test_expired_traces_are_loaded_from_the_journal_one_at_a_time(rooted: bool) -> None:
    life = Life(FEW, Journal())
    for number in range(10):
        life.feed(
            span("one", "one", LONG, trace=str(number), parent=None if rooted else "root"), at=0
        )
    held = life.held_when_read()
    assert len(life.expire(6)) == (10 if rooted else 0)
    assert (len(held) >= 6, max([*held, life.assembler.open_bytes]) <= FEW.max_open_bytes) == (
        True,
        True,
    )


def test_a_request_for_many_spilled_traces_loads_them_one_at_a_time() -> None:
    life = Life(FEW, Journal())
    for number in range(8):
        life.feed(span("agent", "agent", LONG, trace=str(number)), at=0)
    held = life.held_when_read()
    life.feed(
        *(tool(name, trace=str(number)) for name in ("first", "second") for number in range(8)),
        at=1,
    )
    assert (len(held) >= 5, max([*held, life.assembler.open_bytes]) <= FEW.max_open_bytes) == (
        True,
        True,
    )
    assert [len(trace.spans) for trace in life.expire(10)] == [3] * 8
    assert life.telemetry.spans_dropped.items() == []


def test_traces_that_become_too_big_are_yielded_one_at_a_time() -> None:
    journal = Journal()
    assembler = Assembler(
        replace(TIGHT, max_trace_spans=1), InternalTelemetry(), lambda one: True, journal.recall
    )
    for number in range(5):
        assert (
            list(
                assembler.feed([agent(str(number))], (), 0, journal.append([agent(str(number))], 0))
            )
            == []
        )
    reads: list[None] = []
    journal.when_read = lambda: reads.append(None)
    more = [tool(trace=str(number)) for number in range(5)]
    seen = [
        (len(trace.spans), len(reads))
        for trace in assembler.feed(more, (), 1, journal.append(more, 1))
    ]
    assert ([spans for spans, _ in seen], seen[0][1] <= 1, assembler.open_traces) == (
        [2] * 5,
        True,
        0,
    )


def test_large_traces_are_returned_few_at_a_time() -> None:
    life = Life(BOUNDS, Journal())
    for number in range(7):
        life.feed(
            span("agent", "agent", {"text": "x" * (AT_ONCE_BYTES // 3)}, trace=str(number)), at=0
        )
    assert [len(life.assembler.expire(6)) for _ in range(3)] == [3, 3, 1]


def test_a_span_of_a_spilled_trace_joins_the_others() -> None:
    life = Life(TIGHT, Journal())
    life.feed(tool(), at=0)
    life.feed(agent("other"), tool(trace="other"), at=1)
    life.feed(agent("third"), tool(trace="third"), at=2)
    life.feed(agent(), at=3)
    [first] = [trace for trace in life.expire(30) if trace.trace_id == trace_id("trace")]
    assert (first.spans, life.telemetry.spans_dropped.items()) == ((agent(), tool()), [])


def test_a_late_span_opens_a_trace_again_that_was_read_and_spilled() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(), at=0)
    assert [trace.spans for trace in life.expire(10)] == [(agent(),)]
    life.feed(tool(), at=100)
    assert [trace.spans for trace in life.expire(110)] == [(agent(), tool())]


def test_a_late_duplicate_changes_nothing_and_its_row_is_released() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(), at=0)
    life.expire(10)
    life.feed(agent(), at=20)
    assert (life.expire(100), life.telemetry.spans_dropped.items(), life.released) == (
        [],
        [(("duplicate",), 1)],
        {2},
    )


def test_a_row_is_released_with_the_last_of_its_traces() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent("a"), agent("b"), at=0)
    life.expire(10)
    life.feed(tool(trace="b"), at=100)
    life.expire(110)
    life.expire(320)
    assert life.released == set()
    life.expire(500)
    assert life.released == {1, 2}


def test_a_trace_with_an_unreadable_row_is_truncated() -> None:
    journal = Journal()
    life = Life(BOUNDS, journal)
    life.feed(agent(), at=0)
    life.expire(10)
    life.feed(tool(), at=20)
    assert len(life.expire(30)) == 1
    del journal.rows[1]
    life.feed(tool("second"), at=40)
    assert [(trace.spans, trace.truncated) for trace in life.expire(80)] == [
        ((tool("second"), tool()), True)
    ]


def test_after_a_restart_open_traces_are_read_and_read_ones_wait_for_late_spans() -> None:
    journal = Journal()
    first = Life(BOUNDS, journal)
    first.feed(agent("read"), at=0)
    first.expire(10)
    first.feed(agent("open"), at=11)
    second = Life(BOUNDS, journal)
    for snapshot in first.snapshots():
        second.assembler.restore(snapshot, 12)
    assert [(trace.trace_id, trace.spans) for trace in second.expire(20)] == [
        (trace_id("open"), (agent("open"),))
    ]
    second.feed(tool(trace="read"), at=21)
    assert [trace.spans for trace in second.expire(30)] == [(agent("read"), tool(trace="read"))]
    assert (
        second.telemetry.spans_assembled.total(),
        second.telemetry.traces_completed.items(),
    ) == (
        1,
        [(("root_ended",), 1)],
    )


def test_forgotten_traces_stay_forgotten_after_a_restart() -> None:
    journal = Journal()
    journal.append([agent()], 0)
    life = Life(BOUNDS, journal)
    life.assembler.restore(
        TraceSnapshot(("", trace_id("trace")), (1,), 0, 0, closed_at=10), now=400
    )
    assert (life.assembler.deadline(), life.assembler.released()) == (None, [1])
    life.feed(tool(), at=401)
    assert life.telemetry.spans_dropped.items() == [(("late",), 1)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_that_a_forgotten_trace_shares_with_an_open_one_stays_after_a_restart(
    order: int,
) -> None:
    journal = Journal()
    journal.append([agent("forgotten"), tool(trace="open"), agent("forgotten too")], 0)
    forgotten = [
        TraceSnapshot(("", trace_id(name)), (1,), 0, 0, closed_at=10)
        for name in ("forgotten", "forgotten too")
    ]
    life = Life(BOUNDS, journal)
    for snapshot in [*forgotten, TraceSnapshot(("", trace_id("open")), (1,), 0, 0)][::order]:
        life.assembler.restore(snapshot, now=400)
    assert life.assembler.released() == []
    life.feed(agent("open"), at=401)
    assert [(trace.spans, trace.truncated) for trace in life.expire(410)] == [
        ((agent("open"), tool(trace="open")), False)
    ]
    life.expire(800)
    assert life.released == {1, 2}


@pytest.mark.parametrize("purged", [False, True])
def test_late_records_are_reported_once_per_commit_and_not_for_purged_traces(
    purged: bool,
) -> None:
    life, key = Life(BOUNDS, Journal()), ("", trace_id("trace"))
    life.feed(agent(), at=0)
    life.expire(10)
    life.expire(310)
    assert life.assembler.given_up() == []
    life.feed(tool(), tool("other"), at=320)
    if purged:
        life.assembler.discard([key])
    life.feed(tool("third"), at=321)
    assert (life.assembler.given_up(), life.assembler.given_up()) == ([] if purged else [key], [])


def test_an_open_trace_that_is_purged_is_counted_as_skipped_and_one_that_was_read_is_not() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent("read"), at=0)
    life.expire(10)
    life.feed(tool(trace="open"), at=11)
    life.assembler.discard([("", trace_id(trace)) for trace in ("read", "open", "unknown")])
    telemetry = life.telemetry
    assert telemetry.traces_opened.total() == 2
    assert telemetry.traces_completed.items() == [(("root_ended",), 1), (("purged",), 1)]
    assert telemetry.traces_skipped.items() == [(("purged",), 1)]


ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["agent", "one", "two", "three"]),
        st.floats(0, 40, width=16),
    ),
    max_size=25,
)


@settings(max_examples=examples(200), deadline=None)
@given(ARRIVALS, st.integers(0, 25))
def test_neither_spilling_nor_a_restart_changes_what_is_read(
    arrivals: list[tuple[str, str, float]], restart_after: int
) -> None:
    """The result must be that of an assembler with unlimited memory."""

    def run(
        bounds: Bounds, *, restarts: bool
    ) -> tuple[dict[str, tuple[Span, ...]], set[int], int, Life]:
        journal, now, counted = Journal(), 0.0, 0
        newest: dict[str, tuple[Span, ...]] = {}
        released: set[int] = set()
        life = Life(bounds, journal)
        for number, (trace, name, pause) in enumerate(arrivals):
            now += pause
            newest.update((read.trace_id, read.spans) for read in life.expire(now))
            one = agent(trace) if name == "agent" else tool(name, trace)
            newest.update((read.trace_id, read.spans) for read in life.feed(one, at=now))
            if restarts and number == restart_after:
                released, counted = life.released, life.telemetry.spans_assembled.total()
                before, life = life, Life(bounds, journal)
                for snapshot in before.snapshots():
                    life.assembler.restore(snapshot, now)
        newest.update((read.trace_id, read.spans) for read in life.expire(now + 100_000))
        return (
            newest,
            released | life.released,
            counted + life.telemetry.spans_assembled.total(),
            life,
        )

    truth, rows, spans, _ = run(BOUNDS, restarts=False)
    assert run(TIGHT, restarts=False)[:3] == (truth, rows, spans)
    again, all_rows, all_spans, life = run(TIGHT, restarts=True)
    if all(
        pause < 20 for _, _, pause in arrivals
    ):  # else what was forgotten before the restart may come back as a new trace
        assert (again, all_rows, all_spans) == (truth, rows, spans)
    assert life.assembler.open_traces == 0
