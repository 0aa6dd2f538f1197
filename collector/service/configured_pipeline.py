"""What the configuration says about a pipeline, the same for live traffic and for a backfill."""

from __future__ import annotations

import time
from functools import partial

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.dialect_tables import dialects_of
from pathgauge.collector.config.plugins.dialects import installed_dialects
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.traces import Bounds


def configured_pipeline(
    config: Config, setup: ActiveConfig, telemetry: InternalTelemetry
) -> partial[Pipeline]:
    """A pipeline, but for what depends on who runs it: memory, journal, judges and feedback."""
    return partial(
        Pipeline,
        installed_dialects(dialects_of(config.dialects)),
        setup.evaluator,
        setup.references,
        telemetry,
        Bounds(**config.assembly.model_dump()),
        scenario_keys=config.scenario.keys,
        conversation_idle=config.conversations.idle,
        cpu_clock=time.thread_time,
        session_bounds=config.sessions.bounds(),
        shadow=setup.shadow,
    )
