"""All sinks of the package together, and everything that they and the store show of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import PublishedEvent
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.service.sink_calls import publish
from pathgauge.collector.sinks.otlp_events.sink import OtlpEvents
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.store.queries.reading import reading
from support.backend import RecordingExporter
from support.evaluated import WALL, commit, opened
from support.sink_harness import generate_openmetrics


def shown(
    events: Sequence[PublishedEvent], evaluator: Evaluator, references: ReferenceSet
) -> dict[str, Any]:
    """What the sinks show after these events, one second apart."""
    telemetry, exporter, now = InternalTelemetry(), RecordingExporter(), WALL
    metrics = DurableMetrics()
    prometheus = PrometheusSink(
        evaluator,
        references,
        telemetry,
        min_samples=1,
        tenants=True,
        metrics=metrics,
        clock=lambda: now,
    )
    otlp = OtlpEvents(exporter, telemetry, content=True, results_url="https://results")
    unknown = UnknownScenarios(references)
    for now in (WALL + second for second in range(len(events))):
        for sink in (prometheus, otlp, unknown):
            publish(sink, events[int(now - WALL)], now)
    otlp.close()
    stored = prometheus.pending()
    prometheus.commit()
    lines = generate_openmetrics(prometheus.registry).decode().splitlines()
    return {
        "metrics": [line for line in lines if not line.startswith(("process_", "python_"))],
        "counts": [(tuple(key), state) for key, state in stored],
        "scores": prometheus.shown.current_scores(),
        "events": [
            (
                one.log_record.timestamp,
                one.log_record.trace_id,
                dict(one.log_record.attributes or {}),
            )
            for one in exporter.records
        ],
        "unknown scenarios": unknown.snapshot(),
    }


def stored_rows(folder: Path, events: Sequence[PublishedEvent]) -> list[tuple[Any, ...]]:
    """The rows of results after two commits, one of each half of the events."""
    middle = len(events) // 2
    with opened(folder, EvidencePolicy("none")) as store:
        commit(store, events[:middle])
        commit(store, events[middle:], WALL + 1)
        with reading(folder) as connection:
            return connection.execute("SELECT * FROM results ORDER BY id").fetchall()
