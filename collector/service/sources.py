"""Connects the API to the running engine."""

from __future__ import annotations

from collections.abc import Callable

from pathgauge.collector.api.models import Telemetry
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.config import Config
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.service.engine import Engine


def sources_of(
    config: Config, engine: Engine, telemetry: InternalTelemetry, unready: Callable[[], list[str]]
) -> Sources:
    """Where the API finds its answers. `unready` returns why the collector accepts no spans."""
    return Sources(
        folder=None if config.store is None else config.folder / config.store.path,
        scores=engine.current_scores,
        unknown=engine.unknown_scenarios.snapshot,
        references=engine.references,
        telemetry=lambda: Telemetry(
            spans_received=telemetry.accepted.total(),
            spans_refused=telemetry.refused.total(),
            spans_dropped=telemetry.spans_dropped.total(),
            invocations_read=telemetry.invocations_read.total(),
            invocations_scored=telemetry.invocations_scored.total(),
            invocations_skipped=telemetry.invocations_skipped.total(),
            open_traces=engine.usage().pipeline.open_traces,
            unready=unready(),
        ),
        is_busy=lambda: engine.usage().queued_bytes > 0,
    )
