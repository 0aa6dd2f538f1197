"""Reads what is left of the past without asking judges, and counts what they would be asked."""

from __future__ import annotations

import math
from collections.abc import Callable

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.judging.queue import Capacity, JudgeQueue
from pathgauge.collector.service.backfill.building import build_pipeline
from pathgauge.collector.service.backfill.folder import Options, continued, opened_store
from pathgauge.collector.service.backfill.history import Source
from pathgauge.collector.service.backfill.intake import Intake
from pathgauge.collector.service.backfill.judging import Awaiting, Estimate
from pathgauge.collector.service.backfill.slices import slices
from pathgauge.collector.service.backfill.timeline import Clock, Timeline
from pathgauge.collector.service.components import build_redactor

_UNLIMITED = 1 << 60
_STEP_S = 3600.0

OnSlice = Callable[[str, int, int, int], None]
"""Gets a stage, the first and the last time, and the time that was reached, in Unix ns."""


def estimate(
    config: Config, setup: ActiveConfig, source: Source, options: Options, on_slice: OnSlice
) -> Estimate | None:
    """What judges would be asked; `None` without judges. Raises `StoreError` and `SourceError`."""
    judge = config.judge
    if judge is None:
        return None
    with opened_store(options.folder, config, lambda: 0.0) as store:
        known = continued(store.open(), source.name, config, setup, options)
    found = Estimate(judge.settings(config.folder))
    awaiting, telemetry = Awaiting(), InternalTelemetry()
    queue = JudgeQueue(
        found,
        lambda pending, evaluation: None,
        Capacity(judge.concurrency, _UNLIMITED, _UNLIMITED, judge.deadline),
        setup.evaluator,
        setup.references,
    )
    pipeline = build_pipeline(config, setup, telemetry, judged=True)
    timeline = Timeline(
        pipeline, Clock(), lambda events, _: awaiting.add(events), lambda _: None, _STEP_S
    )
    intake = Intake(options.tenant, build_redactor(config), telemetry)
    queue.start()
    try:
        begin = source.begin(known.reached, known.until)
        for since, until, past, _ in slices(source, begin, known.until):
            on_slice("estimating the cost of judges", known.since, known.until, since)
            timeline.play(intake.accept(past.traces), until / 1e9)
            pending = awaiting.take()
            found.invocations += len(pending)
            for one in pending:
                queue.take(one)
            queue.finish(math.inf)
            pipeline.changes()
    finally:
        queue.stop()
    return found
