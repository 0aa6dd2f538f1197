"""Metrics of the store and of the backlog."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.sinks.prometheus.store_metrics import (
    CollectorUsage,
    StoreGauges,
    commit_durations,
)
from pathgauge.collector.store import Usage


def test_the_state_of_the_store_and_of_the_backlog_is_exported() -> None:
    registry = CollectorRegistry()
    registry.register(
        StoreGauges(
            lambda: CollectorUsage(
                store=Usage(
                    "full",
                    used=9,
                    capacity=10,
                    write_ahead=5,
                    requests=3,
                    quarantined=2,
                    results_removed={"space": 1},
                    feedback_removed={"age": 3},
                ),
                pipeline=PipelineUsage(retained_traces=7, spilled_traces=8),
                queued_bytes=6,
                backlog_requests=4,
                backlog_age_s=1.5,
            )
        )
    )
    lines = [
        line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")
    ]
    assert lines == [
        'pathgauge_store_state{state="ok"} 0.0',
        'pathgauge_store_state{state="full"} 1.0',
        'pathgauge_store_state{state="failed"} 0.0',
        "pathgauge_store_journal_rows 3.0",
        "pathgauge_store_write_ahead_bytes 5.0",
        "pathgauge_store_quarantined_rows_total 2.0",
        'pathgauge_store_results_removed_total{reason="age"} 0.0',
        'pathgauge_store_results_removed_total{reason="space"} 1.0',
        'pathgauge_feedback_removed_total{reason="age"} 3.0',
        'pathgauge_feedback_removed_total{reason="space"} 0.0',
        "pathgauge_backlog_requests 4.0",
        "pathgauge_backlog_age_seconds 1.5",
        "pathgauge_traces_retained 7.0",
        "pathgauge_traces_open_spilled 8.0",
    ]


def test_every_kind_of_commit_starts_at_0_without_a_creation_time() -> None:
    registry, durations = CollectorRegistry(), commit_durations()
    registry.register(Live([durations]))
    durations.labels("requests").observe(0.003)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
    }
    name = "pathgauge_store_commit_duration_seconds"
    assert {key: value for key, value in samples.items() if len(key) == 2} == {
        (f"{name}_count", "requests"): 1,
        (f"{name}_sum", "requests"): 0.003,
        (f"{name}_count", "results"): 0,
        (f"{name}_sum", "results"): 0,
        (f"{name}_count", "feedback"): 0,
        (f"{name}_sum", "feedback"): 0,
        (f"{name}_count", "quarantine"): 0,
        (f"{name}_sum", "quarantine"): 0,
    }
    assert samples[f"{name}_bucket", "requests", "0.0025"] == 0
    assert samples[f"{name}_bucket", "requests", "0.005"] == 1
