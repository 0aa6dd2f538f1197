"""Metrics of the store, of the backlog and of traces that are not in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, get_args

from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.collector.store import Removal, State, Transaction, Unread, Usage

COMMIT_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
"""In seconds. A good disk syncs in a millisecond, a failing one in a second."""


def commit_durations() -> Histogram:
    """The unregistered histogram of store transactions. The caller observes every transaction."""
    durations = Histogram(
        "pathgauge_store_commit_duration_seconds",
        "Time until a transaction of the store was durable, by kind.",
        ("kind",),
        buckets=COMMIT_BUCKETS,
        registry=None,
    )
    for kind in get_args(Transaction):
        durations.labels(kind)
    return durations


def unread_publications(found: Iterable[Unread]) -> Iterator[Metric]:
    """What the gauge has not read, of all scorers together."""
    waiting = list(found)
    since = min((one.oldest_at for one in waiting if one.oldest_at is not None), default=None)
    yield GaugeMetricFamily(
        "pathgauge_publications_unread",
        "Publications of scorers that the gauge has not read.",
        sum(one.number for one in waiting),
    )
    yield GaugeMetricFamily(
        "pathgauge_publications_oldest_age_seconds",
        "Age of the oldest publication that the gauge has not read; 0 without any.",
        0.0 if since is None else max(0.0, time.time() - since),
    )


class CollectorUsage(NamedTuple):
    """How much a collector holds at one moment. Sizes in bytes."""

    store: Usage
    pipeline: PipelineUsage
    queued_bytes: int
    """Requests that wait in memory for the pipeline."""
    backlog_requests: int
    """Durable requests that the pipeline has not processed."""
    backlog_age_s: float
    """Upper bound for the age of the oldest of them."""


@dataclass(frozen=True, slots=True)
class StoreGauges(Collector):
    """`read` is called at every scrape, in the thread of the scrape."""

    read: Callable[[], CollectorUsage]

    def collect(self) -> Iterator[Metric]:
        """All gauges. prometheus_client calls this at a scrape."""
        found = self.read()
        usage = found.store
        state = GaugeMetricFamily(
            "pathgauge_store_state",
            "1 for the present state of the store, 0 for the others.",
            labels=("state",),
        )
        for name in get_args(State):
            state.add_metric((name,), float(name == usage.state))
        yield state
        yield _gauge("pathgauge_store_journal_rows", "Requests in the journal.", usage.requests)
        yield _gauge(
            "pathgauge_store_write_ahead_bytes",
            "Size of the store's write-ahead log (WAL).",
            usage.write_ahead,
        )
        yield CounterMetricFamily(
            "pathgauge_store_quarantined_rows",
            "Damaged rows that the store moved to quarantine.",
            value=usage.quarantined,
        )
        removed = CounterMetricFamily(
            "pathgauge_store_results_removed",
            "Results removed from the store, by reason.",
            labels=("reason",),
        )
        for reason in get_args(Removal):
            removed.add_metric((reason,), usage.results_removed.get(reason, 0))
        yield removed
        forgotten = CounterMetricFamily(
            "pathgauge_feedback_removed",
            "Answers of people removed from the store, by reason.",
            labels=("reason",),
        )
        for reason in get_args(Removal):
            forgotten.add_metric((reason,), usage.feedback_removed.get(reason, 0))
        yield forgotten
        yield _gauge(
            "pathgauge_backlog_requests",
            "Durable requests that the pipeline has not processed.",
            found.backlog_requests,
        )
        yield _gauge(
            "pathgauge_backlog_age_seconds",
            "Upper bound for the age of the oldest request of the backlog; 0 without one.",
            found.backlog_age_s,
        )
        yield _gauge(
            "pathgauge_traces_retained",
            "Traces that were evaluated and are kept for late spans.",
            found.pipeline.retained_traces,
        )
        yield _gauge(
            "pathgauge_traces_open_spilled",
            "Open traces whose spans are in the journal only, not in memory.",
            found.pipeline.spilled_traces,
        )


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)
