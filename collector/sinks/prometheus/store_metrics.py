"""The store, the backlog and the traces that are not in memory, as they are at a scrape: functions
that tell come in, families go out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.store import State, Transaction, Usage

COMMIT_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
"""A good disk syncs in a millisecond, one that is about to fail in a second."""


def commit_durations() -> Histogram:
    """To be told of every transaction of the store; registered nowhere."""
    name, text = (
        "pathgauge_store_commit_duration_seconds",
        "Time that a transaction of the store took until it was durable.",
    )
    durations = Histogram(name, text, ("kind",), buckets=COMMIT_BUCKETS, registry=None)
    for kind in get_args(Transaction):
        durations.labels(kind)
    return durations


@dataclass(frozen=True, slots=True)
class StoreGauges(Collector):
    """Each function is called at every scrape, in whatever thread that runs."""

    usage: Callable[[], Usage]
    backlog: Callable[[], int]
    backlog_age: Callable[[], float]
    traces_retained: Callable[[], int]
    traces_spilled: Callable[[], int]

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks its collectors at a scrape."""
        usage = self.usage()
        state = GaugeMetricFamily(
            "pathgauge_store_state",
            "1 for the state that the store is in, else 0.",
            labels=("state",),
        )
        for name in get_args(State):
            state.add_metric((name,), float(name == usage.state))
        yield state
        yield _gauge("pathgauge_store_journal_rows", "Requests in the journal.", usage.requests)
        yield _gauge(
            "pathgauge_store_write_ahead_bytes",
            "Size of the store's write-ahead log.",
            usage.write_ahead,
        )
        yield CounterMetricFamily(
            "pathgauge_store_quarantined_rows",
            "Damaged rows of the store that were set aside.",
            value=usage.quarantined,
        )
        yield _gauge(
            "pathgauge_backlog_requests",
            "Requests that are durable and that the pipeline has not taken in.",
            self.backlog(),
        )
        yield _gauge(
            "pathgauge_backlog_age_seconds",
            "How long the oldest of them has been waiting, at most.",
            self.backlog_age(),
        )
        yield _gauge(
            "pathgauge_traces_retained",
            "Traces that were read and are kept for late spans.",
            self.traces_retained(),
        )
        yield _gauge(
            "pathgauge_traces_open_spilled",
            "Open traces whose spans only the journal holds.",
            self.traces_spilled(),
        )


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)
