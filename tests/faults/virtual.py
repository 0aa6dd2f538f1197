"""The collector with virtual time and without a pipeline thread.

It performs the steps of `pathgauge.collector.service.worker` one by one, so that a schedule can
crash it between any two of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent, PublishedEvent, Unreadable
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.store import Delivery, Progress
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.dialects import INSTALLED

from .traffic import Request

_ORIGIN = Origin("", "grpc", "traces", "protobuf")


@dataclass(slots=True)
class VirtualCollector:
    """Runs from `start` to `crash`, any number of times, on one folder."""

    folder: Path
    setup: ActiveConfig
    bounds: Bounds
    now: float = 0.0
    telemetry: InternalTelemetry = field(default_factory=InternalTelemetry)
    told: list[PublishedEvent] = field(default_factory=list)
    """The durable events of all its processes."""
    _gathered: list[PublishedEvent] = field(default_factory=list)
    _delivered: list[Delivery] = field(default_factory=list)
    _row: int = 0
    _counts: DurableMetrics = field(init=False)
    _store: SqliteStore = field(init=False)
    _pipeline: Pipeline = field(init=False)

    def start(self) -> None:
        """Continue where the last process stopped. Unprocessed requests of the journal come
        first.
        """
        self.telemetry, self._counts = InternalTelemetry(), DurableMetrics()
        self._counts.add_telemetry(self.telemetry)
        self._store = SqliteStore(self.folder)
        self._pipeline = Pipeline(
            INSTALLED,
            self.setup.evaluator,
            self.setup.references,
            self.telemetry,
            self.bounds,
            recall=self._store.recall,
        )
        restored = self._store.open()
        self.now = max(self.now, restored.at)
        self._row, self._gathered, self._delivered = restored.row, [], []
        self._pipeline.restore(restored.traces, restored.at)
        for turn in restored.turns:
            self._pipeline.restore_turn(turn)
        self._counts.restore(restored.counts)
        self._store.start(self._deliver, lambda: self.now)
        while deliveries := list(self._store.read(self._row)):
            self._take_in(deliveries)

    def send(self, requests: Sequence[Request]) -> None:
        """Store requests until they are acknowledged."""

        async def send() -> None:
            await asyncio.gather(
                *(
                    self._store.append(Batch(_ORIGIN, one.body, spans=tuple(one.spans())))
                    for one in requests
                )
            )

        asyncio.run(send())

    def take_in(self) -> None:
        """Feed acknowledged requests to the pipeline."""
        delivered, self._delivered = self._delivered, []
        self._take_in(delivered)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.take_in()
        self.now += seconds
        self._expire(self.now)

    def commit(self) -> None:
        """Commit the collected events."""
        gathered, self._gathered = self._gathered, []
        progress = Progress(
            self._row,
            self.now,
            0.0,
            gathered,
            self._pipeline.changes(),
            self._counts.pending(),
        )
        assert self._store.commit(progress)
        self.told.extend(gathered)
        self._counts.commit()

    def crash(self) -> None:
        """Stop without a commit."""
        self._store.close()

    def _deliver(self, delivery: Delivery) -> bool:
        self._delivered.append(delivery)
        return True

    def _take_in(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._expire(delivery.at)
            delivery.batch.count(self.telemetry)
            self._gather(self._pipeline.feed(delivery.batch.spans, (), delivery.at, delivery.row))
            self._row = delivery.row

    def _expire(self, now: float) -> None:
        while (deadline := self._pipeline.deadline()) is not None and deadline <= now:
            self._gather(self._pipeline.expire(now))

    def _gather(self, outcomes: Sequence[PipelineEvent]) -> None:
        for outcome in outcomes:
            assert not isinstance(outcome, Unreadable), outcome
            self._gathered.append(outcome)
