"""Redaction between the receivers and what keeps their batches: a batch as it was sent comes in,
the redacted one goes on.

Nothing goes on that was not redacted: of a record that cannot be, only ids and times are left.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pathgauge.collector.core.ledger import Ledger
from pathgauge.collector.core.otlp.batch import Accept, Batch
from pathgauge.collector.core.redaction import Redactor, Tally

_LARGE_BODY_BYTES = 32 * 1024
"""Redacting a larger one may take more than 10 ms, for which it must not hold up the event loop."""


class RedactingIntake:
    """Stands before another `Accept`."""

    def __init__(self, accept: Accept, redactor: Redactor, ledger: Ledger) -> None:
        self._accept = accept
        self._redactor = redactor
        self._ledger = ledger
        self._turn = asyncio.Lock()

    async def accept(self, batch: Batch) -> bool:
        """Redact the batch and hand it on. What was redacted counts once the batch was taken, as
        until then it comes again.
        """
        if len(batch.body) <= _LARGE_BODY_BYTES:
            redacted, tally = self._redact(batch)
        else:
            async with self._turn:  # one at a time: more would not be faster, and take memory
                redacted, tally = await asyncio.to_thread(self._redact, batch)
        taken = await self._accept(redacted)
        if taken:
            for (rule, action), values in tally.items():
                self._ledger.redacted_values.add(rule, action, n=values)
        return taken

    def _redact(self, batch: Batch) -> tuple[Batch, Tally]:
        origin = batch.origin._replace(encoding="protobuf")
        changed = replace(batch, origin=origin, sent_as=batch.origin.encoding)
        if origin.signal == "traces":
            spans = self._redactor.spans(batch.spans)
            return replace(changed, spans=spans.records, body=spans.body), spans.tally
        logs = self._redactor.logs(batch.logs, batch.without_trace)
        return replace(changed, logs=logs.records, body=logs.body), logs.tally
