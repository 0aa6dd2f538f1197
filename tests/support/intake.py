"""What stands behind a receiver in tests: it keeps the batches that it accepts, and answers as it
is told.
"""

from __future__ import annotations

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch


class Intake:
    """`answer` is what is said to the next batches; an exception is raised."""

    def __init__(self) -> None:
        self.telemetry = InternalTelemetry()
        self.batches: list[Batch] = []
        self.answer: bool | Exception = True

    async def accept(self, batch: Batch) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer:
            self.batches.append(batch)
            batch.count(self.telemetry)
        return self.answer

    def names(self) -> list[str]:
        return [span.name for batch in self.batches for span in batch.spans]
