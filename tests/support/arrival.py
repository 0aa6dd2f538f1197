"""Feeds the spans and log records of a capture to the pipeline in batches, with pauses."""

from __future__ import annotations

from collections.abc import Iterable

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations.reading import Reading
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent, Withdrawn
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED

LATE_TTL = 250.0
"""Seconds for which a trace that was read is kept, so that later telemetry revises it."""


def final_invocations(
    items: list[Span | LogRecord], batch: int, pause: float, seen: Iterable[Reading] = ()
) -> list[Invocation]:
    """The invocations after all `items` have arrived in batches, `pause` seconds apart. `seen` are
    earlier ones of the same agents.
    """
    pipeline = Pipeline(INSTALLED, Evaluator(()), ReferenceSet(), InternalTelemetry())
    pipeline.records.learn(seen, 0.0)
    events: list[PipelineEvent] = []
    now = 0.0
    for start in range(0, len(items), batch):
        part = items[start : start + batch]
        events += pipeline.feed(
            [s for s in part if isinstance(s, Span)],
            [r for r in part if isinstance(r, LogRecord)],
            now,
        )
        now = min(now + pause, LATE_TTL)
        events += pipeline.expire(now)
    events += pipeline.drain(now)
    invocations: dict[tuple[str, str, str], Invocation] = {}
    for event in events:
        if isinstance(event, Evaluation):
            invocations[event.key] = event.invocation
        elif isinstance(event, Withdrawn):
            del invocations[event.key]
    return sorted(
        invocations.values(), key=lambda invocation: (invocation.trace_id, invocation.span_id)
    )
