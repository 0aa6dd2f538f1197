"""Late records have a trace read again, but not at a cost that senders choose."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.core.traces import SPAN_OVERHEAD, Bounds
from pathgauge.collector.core.traces.completion import REREADING_BYTES_PER_S
from pathgauge.collector.core.traces.explain import explain
from pathgauge.collector.testing import log, span
from support.assembler_life import Journal, Life
from support.examples import examples

BOUNDS = Bounds(settle=6, idle=30, max_age=600, late_ttl=300)
MIB = 1 << 20

Reading: TypeAlias = tuple[float, Trace]
"""When a trace is read, and what of it."""


def agent(name: str = "agent", mib: float = 0.0, parent: str | None = None) -> Span:
    """An agent whose trace has so many MiB."""
    text = {"text": "x" * int(mib * MIB)} if mib else {}
    return span(name, f"agent {name}", text, parent=parent)


def late(number: int | str, parent: str = "agent") -> Span:
    return span(f"late {number}", "tool", parent=parent)


def arrive(life: Life, records: Iterable[tuple[float, Span | LogRecord]]) -> list[Reading]:
    """What is read while these records arrive, and until nothing more happens."""
    read: list[Reading] = []
    for at, record in sorted(records, key=lambda item: item[0]):
        read += life.read_until(at)
        life.feed(record, at=at)
    return read + life.read_until(10_000)


def shown(read: Iterable[Reading]) -> list[tuple[float, int]]:
    """When traces were read, and their number of spans."""
    return [(when, len(trace.spans)) for when, trace in read]


def read_with(mib: float, bounds: Bounds = BOUNDS) -> Life:
    """A trace of so many MiB that was read at 6, and again at 16 because of one late span."""
    life = Life(bounds, Journal())
    life.feed(agent(mib=mib), at=0)
    assert [when for when, _ in life.read_until(9)] == [6]
    life.feed(late(0), at=10)
    assert [when for when, _ in life.read_until(19)] == [16]
    return life


@pytest.mark.parametrize("mib", [0, 1, 8])
def test_the_first_late_span_has_a_trace_of_any_size_read_again_after_settle(mib: float) -> None:
    read_with(mib)


@pytest.mark.parametrize(
    ("mib", "late_ttl", "pause"),
    [
        (0, 300, 0),
        (0.5, 300, 37.44),
        (1, 300, 74.9),
        (2, 300, 149.8),
        (4, 300, 299.6),
        (8, 300, 300),
        (0.5, 60, 37.44),
        (1, 60, 60),
        (1, 3600, 74.9),
        (8, 3600, 599.2),
    ],
)
def test_then_it_is_read_again_after_a_pause_in_proportion_to_its_size(
    mib: float, late_ttl: float, pause: float
) -> None:
    life = read_with(mib, replace(BOUNDS, late_ttl=late_ttl))
    life.feed(late(1), at=20)
    [(when, trace)] = life.read_until(1000)
    of_overhead = 2 * (SPAN_OVERHEAD + 200) / REREADING_BYTES_PER_S
    assert max(26, 16 + pause) <= when <= max(26, 16 + min(pause + of_overhead, late_ttl))
    assert len(trace.spans) == 3


@pytest.mark.parametrize("mib", [1, 8])
def test_after_the_pause_late_spans_are_read_after_settle_as_ever(mib: float) -> None:
    life = read_with(mib)
    assert shown(arrive(life, [(314, late(1)), (5000, late(2))])) == [(320, 3)]
    assert life.telemetry.spans_dropped.items() == [(("late",), 1)]


def test_a_small_trace_is_read_after_each_of_many_late_spans() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(), *(late(f"early {number}") for number in range(20)), at=0)
    life.read_until(6)
    for number in range(30):
        life.feed(late(number), at=10 * number + 10)
        assert [(when, len(trace.spans)) for when, trace in life.read_until(10 * number + 19)] == [
            (10 * number + 16, number + 22)
        ]


def test_a_flood_of_late_spans_costs_two_readings_in_late_ttl_and_none_is_missing() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(mib=8), at=0)
    assert [when for when, _ in life.read_until(7)] == [6]
    read = arrive(life, [(8 * number, late(number)) for number in range(1, 100)])
    # At the end of the pause, it is not quiet: a span arrived two seconds before.
    assert shown(read) == [(14, 2), (318, 40), (622, 78), (922, 100)]
    assert (life.assembler.open_traces, life.assembler.retained_traces) == (0, 0)
    assert life.telemetry.spans_assembled.total() == 100
    assert life.telemetry.traces_completed.items() == [(("root_ended",), 1)]


def test_log_records_are_treated_like_spans() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(mib=8), at=0)
    life.read_until(6)
    read = arrive(
        life, [(10 * number, log(f"event {number}", span="agent")) for number in range(1, 31)]
    )
    assert [(when, len(trace.logs)) for when, trace in read] == [(16, 1), (316, 30)]


def test_a_new_invocation_of_a_paused_trace_is_read_alone_after_settle() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(span("session", "session"), agent("one", mib=8, parent="session"), at=0)
    life.read_until(6)
    life.feed(late(0, parent="one"), at=10)
    assert [len(trace.spans) for _, trace in life.read_until(19)] == [3]
    part, whole = arrive(
        life,
        [
            (20, agent("two", parent="session")),
            (21, late(1, parent="two")),
            (22, late(2, parent="one")),
            (24, late(3, parent="two")),
            (29, late(4, parent="one")),
        ],
    )
    assert (part[0], {one.name for one in part[1].spans}) == (
        30,
        {"session", "agent two", "tool"},
    )
    assert shown([part, whole]) == [(30, 4), (316, 8)]


def test_late_spans_of_a_new_invocation_wait_for_the_pause_too() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(span("session", "session"), agent("one", mib=8, parent="session"), at=0)
    life.read_until(6)
    life.feed(late(0, parent="one"), at=10)
    life.read_until(16)
    flood = [(30 + 10 * number, late(f"of two {number}", parent="two")) for number in range(20)]
    read = arrive(life, [(20, agent("two", parent="session")), *flood])
    assert shown(read) == [(26, 2), (316, 24)]


def test_a_part_of_a_new_invocation_does_not_have_the_trace_looked_at_again_and_again() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(mib=8), at=0)
    life.read_until(6)
    life.feed(late(0), at=10)
    life.read_until(16)
    life.feed(agent("inner", parent="agent"), at=20)
    assert life.read_until(27) == []
    [trace] = life.assembler.oldest(5)
    assert trace.due == 316


def test_invocations_of_a_busy_trace_are_read_again_after_pauses() -> None:
    life = Life(replace(BOUNDS, max_age=10_000), Journal())
    life.feed(
        span("session", "session"),
        agent("one", mib=2, parent="session"),
        agent("two", parent="session"),
        at=0,
    )
    busy = [(second, late(second, parent="two")) for second in range(2, 1000, 2)]
    flood = [(second, late(f"of one {second}", parent="one")) for second in range(8, 1000, 8)]
    *early, _ = arrive(life, [*busy, *flood])
    times = [when for when, _ in early]
    assert {one.name for _, trace in early for one in trace.spans} == {
        "session",
        "agent one",
        "tool",
    }
    assert len(times) == 8
    assert min(after - before for before, after in pairwise(times[1:])) > 150


def test_an_invocation_without_new_records_is_not_read_again_in_a_busy_trace() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(
        span("session", "session"),
        *(agent(name, parent="session") for name in ("one", "two")),
        at=0,
    )
    life.read_until(6)
    busy = [(second, late(second, parent="session")) for second in range(10, 40, 3)]
    part, whole = arrive(life, [*busy, (12, late("of one", parent="one"))])
    assert {one.name for one in part[1].spans} == {"agent one", "session", "tool"}
    assert shown([part, whole]) == [(19, 3), (43, 14)]


@pytest.mark.parametrize("rooted", [True, False])
def test_a_paused_trace_waits_for_its_parents_no_longer_than_for_the_pause(rooted: bool) -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(mib=8, parent=None if rooted else "missing"), at=0)
    life.read_until(50)
    life.feed(late(0), at=60)
    first = 66 if rooted else 90
    assert [when for when, _ in life.read_until(100)] == [first]
    life.feed(late(1), at=first + 20)
    assert [when for when, _ in life.read_until(1000)] == [first + 300]


# Copies of records


def counted_loads(life: Life) -> list[None]:
    loads: list[None] = []
    life.journal.when_read = lambda: loads.append(None)
    return loads


def test_copies_of_records_do_not_have_a_trace_loaded_each_time() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(mib=8), late(0), at=0)
    life.read_until(6)
    loads = counted_loads(life)
    for second in range(7, 300):
        life.feed(late(0), at=second)
        assert life.read_until(second + 0.5) == []
    assert len(loads) == 10
    assert life.telemetry.spans_dropped.items() == [(("duplicate",), 293)]
    life.feed(late(0), at=307)
    assert (
        life.telemetry.spans_dropped.get("late") + life.telemetry.spans_dropped.get("duplicate")
        == 294
    )


def test_copies_of_records_do_not_lengthen_the_allowed_lateness() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(), late(0), at=0)
    life.read_until(6)
    for second in range(10, 330, 10):
        life.feed(late(0), at=second)
        life.read_until(second + 9)
    life.feed(late(1), at=340)
    assert (life.read_until(1000), life.telemetry.spans_dropped.get("late") > 1) == ([], True)
    assert life.assembler.open_traces == life.assembler.retained_traces == 0


@pytest.mark.parametrize("mib", [0, 8])
def test_a_late_span_after_a_copy_is_read_after_settle(mib: float) -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(mib=mib), at=0)
    life.read_until(6)
    life.feed(agent(mib=mib), at=10)
    life.feed(late(0), at=12)
    assert [(when, len(trace.spans)) for when, trace in life.read_until(100)] == [(18, 2)]


def test_a_trace_that_only_got_copies_is_not_read_at_the_end() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(), at=0)
    life.read_until(6)
    life.feed(agent(), at=10)
    [trace] = life.assembler.oldest(5)
    assert explain(trace, BOUNDS, 11).waits_for == (
        "nothing: since it was read, only copies of its records arrived",
    )
    assert life.assembler.drain(11) == []


def test_a_paused_trace_says_what_it_waits_for() -> None:
    life = read_with(8)
    life.feed(late(1), at=20)
    [trace] = life.assembler.oldest(5)
    assert explain(trace, BOUNDS, 21).waits_for == (
        "the end of the pause after it was read again: in 295.0 s (late_ttl)",
    )
    assert [len(trace.spans) for trace in life.assembler.drain(21)] == [3]


# Restarts


def test_the_pause_outlives_a_restart() -> None:
    life = read_with(8)
    life = life.restarted(at=17)
    life.feed(late(1), at=20)
    life = life.restarted(at=21)
    [(when, trace)] = life.read_until(1000)
    assert (when, len(trace.spans)) == (316, 3)


def test_a_new_invocation_of_a_paused_trace_is_read_after_a_restart() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(span("session", "session"), agent("one", mib=8, parent="session"), at=0)
    life.read_until(6)
    life.feed(late(0, parent="one"), at=10)
    life.read_until(16)
    life.feed(agent("two", parent="session"), at=20)
    life = life.restarted(at=22)
    assert [(when, len(trace.spans)) for when, trace in life.read_until(1000)] == [
        (26, 2),
        (316, 4),
    ]


def test_a_trace_that_only_got_copies_is_not_read_after_a_restart() -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(), at=0)
    life.read_until(6)
    life.feed(agent(), at=10)
    assert life.restarted(at=11).read_until(1000) == []


@pytest.mark.parametrize("before", [[], [309.0]])
def test_a_span_that_is_too_late_is_dropped_after_a_restart_too(before: list[float]) -> None:
    life = Life(BOUNDS, Journal())
    life.feed(agent(), at=0)
    life.read_until(308)
    for at in before:
        life.feed(late("before"), at=at)
    life = life.restarted(at=310)
    life.feed(late("after"), at=311)
    assert life.read_until(1000) == []
    assert life.telemetry.spans_dropped.items() == [(("late",), 1)]


# Laws

ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from(["agent", "one", "two", "three", "four", "five", "copy"]),
        st.sampled_from([0.0, 1.0, 7.0, 7.0, 20.0, 40.0, 100.0]),
    ),
    max_size=30,
)


def sent(name: str, number: int) -> Span:
    if name == "agent":
        return agent(f"agent {number}", parent="agent")
    return late("copy") if name == "copy" else late(f"{name} {number}")


def bytes_of(trace: Trace) -> int:
    return sum(len(one.raw) + SPAN_OVERHEAD for one in trace.spans)


@settings(max_examples=examples(60), deadline=None)
@given(ARRIVALS, st.sampled_from([0, 0.2, 1, 5]), st.booleans(), st.randoms(use_true_random=False))
def test_every_accepted_span_is_read_in_the_end_and_rereading_is_bounded(
    arrivals: list[tuple[str, float]], mib: float, restarts: bool, chance: random.Random
) -> None:
    life, now = Life(BOUNDS, Journal()), 0.0
    life.feed(agent(mib=mib), late("copy"), at=now)
    read = life.read_until(9)
    now = 9.0
    accepted = {agent().span_id, late("copy").span_id}
    for number, (name, pause) in enumerate(arrivals):
        now += pause
        read += life.read_until(now)
        before = life.telemetry.spans_assembled.total()
        record = sent(name, number)
        life.feed(record, at=now)
        if life.telemetry.spans_assembled.total() > before:
            accepted.add(record.span_id)
        if restarts and chance.random() < 0.3:
            life = life.restarted(at=now)
    read += life.read_until(now + 2000)
    assert {one.span_id for _, trace in read[-1:] for one in trace.spans} == accepted
    assert_bounded(read[1:])


def assert_bounded(read: Iterable[tuple[float, Trace]]) -> None:
    """In every `late_ttl`, one reading, and one more or as many bytes as are allowed."""
    found = list(read)
    for start, _ in found:
        within = [bytes_of(trace) for when, trace in found if start <= when < start + 300]
        assert sum(within) <= max(within) + max(300 * REREADING_BYTES_PER_S, *within)
