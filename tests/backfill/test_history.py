"""Records of the past become whole traces, each in the period in which it began."""

from __future__ import annotations

from pathgauge.collector.service.backfill.history import whole_traces
from pathgauge.collector.testing import log, span, trace_id
from pathgauge.collector.testing.span_builders import EPOCH_S

SECOND = 1_000_000_000


def at(seconds: float) -> int:
    return int((EPOCH_S + seconds) * SECOND)


def test_a_trace_belongs_to_the_period_in_which_it_began() -> None:
    spans = [
        span("a", "work", trace="first", start=0.0, end=9.0),
        span("b", "work", trace="first", start=5.0, end=6.0),
        span("c", "work", trace="second", start=2.0, end=3.0),
        span("d", "work", trace="before", start=-1.0, end=1.0),
        span("e", "work", trace="before", start=1.0, end=8.0),
    ]
    found = whole_traces(spans, (), at(0), at(2))
    assert [(one.trace_id, one.start, one.end, len(one.spans)) for one in found] == [
        (trace_id("first"), at(0), at(9), 2)
    ]
    [second] = whole_traces(spans, (), at(2), at(5))
    assert second.trace_id == trace_id("second")


def test_a_span_that_ends_before_it_starts_does_not_end_its_trace_before() -> None:
    [found] = whole_traces([span("a", "work", trace="t", start=7.0, end=3.0)], (), at(0), at(10))
    assert (found.start, found.end) == (at(7), at(7))


def test_log_records_come_with_their_trace_and_never_alone() -> None:
    logs = [log("said", trace="t"), log("said", trace="unknown")]
    [found] = whole_traces([span("a", "work", trace="t", end=1.0)], logs, at(0), at(10))
    assert (found.logs, len(found.spans)) == ([logs[0]], 1)
