"""A trace that takes too much CPU time to read is counted and forgotten. Here the CPU time is a
number, which grows by what each span says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations.dialects import Dialect, Registry
from pathgauge.collector.core.invocations.messages.values import decode
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent, Unreadable
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds, Recalled, TraceKey
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.cost.latency_and_failure import Failure
from support.dialects import INSTALLED

MAX_S = 10.0
LONG_TEXT = "x" * 1_000_000
EVALUATOR = Evaluator((Criterion("failure", Failure(), None),))


class Life:
    """A pipeline with a journal, from start to stop."""

    def __init__(self, rows: dict[int, list[Span]]) -> None:
        self.rows = rows
        self.seconds = 0.0
        self.telemetry = InternalTelemetry()
        slow = Dialect(
            name="slow", key_prefixes=("seconds",), matches=lambda _: True, kind=self._take_time
        )
        self.pipeline = Pipeline(
            Registry([slow, *INSTALLED.dialects]),
            EVALUATOR,
            ReferenceSet(),
            self.telemetry,
            Bounds(max_reading_cpu=MAX_S),
            cpu_clock=lambda: self.seconds,
            recall=self._recall,
        )

    def _take_time(self, span: Span) -> None:
        """Take the CPU time that a span states, as if it had a value that takes this time."""
        self.seconds += span.attributes.get("seconds", 0.0)
        decode(LONG_TEXT)

    def _recall(self, key: TraceKey, rows: Sequence[int]) -> Iterator[Recalled]:
        for row in rows:
            yield Recalled(0.0, [one for one in self.rows[row] if one.trace_id == key[1]], [])

    def feed(self, *spans: Span, at: float) -> None:
        row = len(self.rows) + 1
        self.rows[row] = list(spans)
        assert self.pipeline.feed(spans, (), at, row) == []

    def expire(self, at: float) -> list[str]:
        """The spans of the agents that are evaluated, and why others are not."""
        events: list[PipelineEvent] = []
        while (deadline := self.pipeline.deadline()) is not None and deadline <= at:
            events += self.pipeline.expire(at)
        return list(map(told, events))


def told(event: PipelineEvent) -> str:
    if isinstance(event, Evaluation):
        return event.invocation.span_id
    assert isinstance(event, Unreadable)
    return f"{event.trace_id}: {event.error}"


def agent(id: str, seconds: float, **options: Any) -> Span:
    attributes = {"gen_ai.operation.name": "invoke_agent", "seconds": seconds}
    return span(id, "invoke_agent a", attributes, **options)


def too_slow(seconds: str, trace: str = "trace") -> str:
    return f"{trace_id(trace)}: found {seconds} s of CPU time, expected at most 10"


def test_a_trace_that_takes_too_long_is_skipped_and_others_are_read() -> None:
    life = Life({})
    life.feed(
        agent("a", 2.0, trace="1"),
        agent("b", 10.5, trace="2"),
        agent("c", 10.0, trace="3"),
        at=0,
    )
    read = life.expire(at=7)
    assert sorted(read) == sorted([span_id("a"), too_slow("10.5", "2"), span_id("c")])
    assert life.telemetry.traces_skipped.items() == [(("too_slow",), 1)]
    assert life.telemetry.traces_completed.items() == [(("root_ended",), 3)]
    assert life.telemetry.invocations_read.total() == 2


def test_it_is_not_read_again_when_more_of_it_arrives() -> None:
    life = Life({})
    life.feed(agent("a", 11.0), at=0)
    assert life.expire(at=7) == [too_slow("11.0")]
    life.feed(agent("b", 0.0, parent="a"), at=8)
    assert life.expire(at=1_000) == []
    assert life.telemetry.spans_dropped.items() == [(("trace_too_slow",), 1)]


def test_it_is_not_read_again_after_a_restart() -> None:
    life = Life({})
    life.feed(agent("a", 11.0), at=0)
    assert life.expire(at=7) == [too_slow("11.0")]
    changes = life.pipeline.changes()
    assert [stored.snapshot.forgotten for stored in changes.traces] == ["trace_too_slow"]
    assert changes.released_rows == (1,)
    again = Life(life.rows)
    again.pipeline.restore(changes.traces, 10)
    assert again.expire(at=1_000) == []
    again.feed(agent("b", 0.0, parent="a"), at=1_001)
    assert again.expire(at=2_000) == []
    assert again.telemetry.spans_dropped.items() == [(("trace_too_slow",), 1)]
    assert (life.seconds, again.seconds) == (11.0, 0.0)


def test_a_trace_that_was_not_read_before_a_crash_is_skipped_after_it() -> None:
    life = Life({})
    life.feed(agent("a", 11.0), at=0)
    stored = life.pipeline.changes().traces
    assert stored == ()
    again = Life({})
    again.feed(agent("a", 11.0), at=0)  # the journal is read from the stored position
    assert again.expire(at=7) == [too_slow("11.0")]
    assert again.pipeline.changes().released_rows == (1,)


def test_every_reading_of_a_trace_may_take_the_whole_time() -> None:
    life = Life({})
    life.feed(agent("a", 8.0), at=0)
    assert life.expire(at=7) == [span_id("a")]
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "seconds": 2.0}
    life.feed(span("t", "execute_tool t", tool, parent="a"), at=8)
    assert life.expire(at=15) == [span_id("a")]
    assert life.telemetry.revisions.total() == 1


def busy_trace(life: Life) -> None:
    """Four agents that ended, in a trace that is not quiet."""
    agents = [agent(id, 4.0) for id in "abcd"]
    life.feed(*agents, elsewhere("x"), at=0)
    life.feed(elsewhere("y"), at=4)


def elsewhere(id: str) -> Span:
    """A span that ran after the agents."""
    return span(id, "GET", parent="gone", start=60.0, end=61.0)


def test_invocations_of_a_busy_trace_share_the_time() -> None:
    life = Life({})
    busy_trace(life)
    read = life.expire(at=8)
    assert len(read) == 3
    assert set(read[:2]) < set(map(span_id, "abcd"))
    assert read[2] == too_slow("12.0")
    assert life.seconds == 12.0
    assert life.telemetry.traces_completed.items() == [(("too_slow",), 1)]
    assert life.telemetry.traces_skipped.items() == [(("too_slow",), 1)]
    life.feed(elsewhere("z"), at=9)
    assert life.expire(at=1_000) == []
    assert life.telemetry.spans_dropped.items() == [(("trace_too_slow",), 1)]


def test_a_trace_that_is_too_big_may_be_too_slow_as_well() -> None:
    life = Life({})
    life.pipeline = Pipeline(
        Registry([Dialect("slow", lambda _: True, life._take_time, key_prefixes=("seconds",))]),
        EVALUATOR,
        ReferenceSet(),
        life.telemetry,
        Bounds(max_reading_cpu=MAX_S, max_trace_spans=1),
        cpu_clock=lambda: life.seconds,
    )
    [event] = life.pipeline.feed([agent("a", 6.0), agent("b", 6.0), agent("c", 6.0)], (), 0)
    assert told(event) == too_slow("12.0")
    assert life.telemetry.spans_dropped.items() == [(("trace_too_big",), 1)]


def test_without_a_clock_a_trace_may_take_any_time() -> None:
    telemetry = InternalTelemetry()
    core = Pipeline(INSTALLED, EVALUATOR, ReferenceSet(), telemetry, Bounds(max_reading_cpu=1e-9))
    core.feed([agent("a", 0.0)], (), 0)
    assert list(map(told, core.drain(0))) == [span_id("a")]


def test_reading_all_open_traces_at_once_is_bounded_too() -> None:
    life = Life({})
    life.feed(agent("a", 11.0, trace="1"), agent("b", 1.0, trace="2"), at=0)
    assert list(map(told, life.pipeline.drain(1))) == [too_slow("11.0", "1"), span_id("b")]
