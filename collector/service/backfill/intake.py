"""Makes records of the past what receivers would have made of them: they get their tenant, and are
redacted by its rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.reading_budget import ReadingBudget
from pathgauge.collector.core.redaction import RedactionCounts, Redactor
from pathgauge.collector.receivers.redact import MAX_CPU_S
from pathgauge.collector.service.backfill.history import PastTrace

ORIGIN = "backfill", "history"
"""The label values under which records are counted as received."""


class Intake:
    """For one tenant."""

    def __init__(
        self, tenant: str, redactor: Redactor | None, telemetry: InternalTelemetry
    ) -> None:
        self._tenant = tenant
        self._redactor = redactor
        self._telemetry = telemetry

    def accept(self, traces: Iterable[PastTrace]) -> Iterator[PastTrace]:
        """The traces as the pipeline may see them, counted as received."""
        for trace in traces:
            records: list[Span | LogRecord] = [*trace.spans, *trace.logs]
            for record in records:
                record.tenant = self._tenant
            self._telemetry.accepted.add(*ORIGIN, n=len(trace.spans))
            self._telemetry.accepted_logs.add(*ORIGIN, n=len(trace.logs))
            yield trace if self._redactor is None else self._redacted(trace, self._redactor)

    def _redacted(self, trace: PastTrace, redactor: Redactor) -> PastTrace:
        spans: Sequence[Span] = ()
        logs: Sequence[LogRecord] = ()
        with ReadingBudget(MAX_CPU_S, time.thread_time).measured():
            if trace.spans:
                redacted = redactor.spans(trace.spans)
                spans = redacted.records
                self._count(redacted.counts)
            if trace.logs:
                redacted_logs = redactor.logs(trace.logs)
                logs = redacted_logs.records
                self._count(redacted_logs.counts)
        return replace(trace, spans=spans, logs=logs)

    def _count(self, counts: RedactionCounts) -> None:
        for (rule, action), values in counts.items():
            self._telemetry.redacted_values.add(rule, action, n=values)
