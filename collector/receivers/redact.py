"""Redacts batches before they are stored.

Nothing is passed on without redaction. Of a record that cannot be redacted, only ids and times
remain. That includes the records that are left when the CPU time of a request is used up.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Consumer
from pathgauge.collector.core.reading_budget import CpuClock, ReadingBudget
from pathgauge.collector.core.redaction import RedactionCounts, Redactor

_LARGE_BODY_BYTES = 32 * 1024
"""Redacting a larger body may take more than 10 ms, too long for the event loop."""


MAX_CPU_S = 10.0
"""CPU time to redact one request. Python literals take seconds for each MiB, and other large
requests wait meanwhile.
"""


class RedactingConsumer:
    """A `Consumer` that redacts batches for another one."""

    def __init__(
        self,
        accept: Consumer,
        redactor: Redactor,
        telemetry: InternalTelemetry,
        cpu_clock: CpuClock = time.thread_time,
    ) -> None:
        self._accept = accept
        self._redactor = redactor
        self._telemetry = telemetry
        self._cpu_clock = cpu_clock
        self._turn = asyncio.Lock()

    async def accept(self, batch: Batch) -> bool:
        """Redact the batch and pass it on. Redacted values are counted only if it was accepted,
        because otherwise the sender sends it again.
        """
        if len(batch.body) <= _LARGE_BODY_BYTES:
            redacted, counts = self._redact(batch)
        else:
            async with self._turn:  # two at a time would need more memory and not be faster
                redacted, counts = await asyncio.to_thread(self._redact, batch)
        accepted = await self._accept(redacted)
        if accepted:
            self._count(counts)
        return accepted

    def redacted(self, batch: Batch) -> Batch:
        """The batch redacted, for any thread: what other programs have written to the log."""
        redacted, counts = self._redact(batch)
        self._count(counts)
        return redacted

    def _count(self, counts: RedactionCounts) -> None:
        for (rule, action), values in counts.items():
            self._telemetry.redacted_values.add(rule, action, n=values)

    def _redact(self, batch: Batch) -> tuple[Batch, RedactionCounts]:
        with ReadingBudget(MAX_CPU_S, self._cpu_clock).measured():
            return self._redact_all(batch)

    def _redact_all(self, batch: Batch) -> tuple[Batch, RedactionCounts]:
        origin = batch.origin._replace(encoding="protobuf")
        changed = replace(batch, origin=origin, sent_as=batch.origin.encoding)
        if origin.signal == "traces":
            spans = self._redactor.spans(batch.spans)
            return replace(changed, spans=spans.records, body=spans.body), spans.counts
        logs = self._redactor.logs(batch.logs, batch.without_trace, batch.own_events)
        return replace(changed, logs=logs.records, body=logs.body), logs.counts
