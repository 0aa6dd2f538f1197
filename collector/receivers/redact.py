"""Redaction between the receivers and what keeps their batches: a batch as it was sent comes in,
the redacted one goes on.

Nothing goes on that was not redacted: of a record that cannot be, only ids and times are left.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Consumer
from pathgauge.collector.core.redaction import RedactionCounts, Redactor

_LARGE_BODY_BYTES = 32 * 1024
"""Redacting a larger one may take more than 10 ms, for which it must not hold up the event loop."""


class RedactingConsumer:
    """Stands before another `Consumer`."""

    def __init__(self, accept: Consumer, redactor: Redactor, telemetry: InternalTelemetry) -> None:
        self._accept = accept
        self._redactor = redactor
        self._telemetry = telemetry
        self._turn = asyncio.Lock()

    async def accept(self, batch: Batch) -> bool:
        """Redact the batch and hand it on. What was redacted counts once the batch was taken, as
        until then it comes again.
        """
        if len(batch.body) <= _LARGE_BODY_BYTES:
            redacted, counts = self._redact(batch)
        else:
            async with self._turn:  # one at a time: more would not be faster, and take memory
                redacted, counts = await asyncio.to_thread(self._redact, batch)
        taken = await self._accept(redacted)
        if taken:
            for (rule, action), values in counts.items():
                self._telemetry.redacted_values.add(rule, action, n=values)
        return taken

    def _redact(self, batch: Batch) -> tuple[Batch, RedactionCounts]:
        origin = batch.origin._replace(encoding="protobuf")
        changed = replace(batch, origin=origin, sent_as=batch.origin.encoding)
        if origin.signal == "traces":
            spans = self._redactor.spans(batch.spans)
            return replace(changed, spans=spans.records, body=spans.body), spans.counts
        logs = self._redactor.logs(batch.logs, batch.without_trace)
        return replace(changed, logs=logs.records, body=logs.body), logs.counts
