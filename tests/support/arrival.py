"""What stands in the end when the spans and log records of a capture arrive in some order, in
batches, with pauses in between.
"""

from __future__ import annotations

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent, Withdrawn
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.types import Invocation

LATE_TTL = 250.0
"""Seconds for which a read trace is surely kept, so that whatever arrives until then revises it."""


def arrived(items: list[Span | LogRecord], batch: int, pause: float) -> list[Invocation]:
    """The invocations that stand in the end when `items` come in batches, `pause` seconds apart."""
    pipeline = Pipeline(Evaluator(()), ReferenceSet(), InternalTelemetry())
    outcomes: list[PipelineEvent] = []
    now = 0.0
    for start in range(0, len(items), batch):
        some = items[start : start + batch]
        outcomes += pipeline.feed(
            [s for s in some if isinstance(s, Span)],
            [r for r in some if isinstance(r, LogRecord)],
            now,
        )
        now = min(now + pause, LATE_TTL)
        outcomes += pipeline.expire(now)
    outcomes += pipeline.drain(now)
    standing: dict[tuple[str, str, str], Invocation] = {}
    for outcome in outcomes:
        if isinstance(outcome, Evaluation):
            standing[outcome.key] = outcome.invocation
        elif isinstance(outcome, Withdrawn):
            del standing[outcome.key]
    return sorted(
        standing.values(), key=lambda invocation: (invocation.trace_id, invocation.span_id)
    )
