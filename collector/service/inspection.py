"""What operators may see of the running parts: worker, pipeline and store come in; gauges, numbers
and open traces go out.

Single numbers are read at once, in whatever thread; what takes a look at the traces is asked of the
worker.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.service.web.traces import Numbers
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.sinks.prometheus.store_metrics import StoreGauges
from pathgauge.collector.store import Store


@dataclass(frozen=True, slots=True)
class Inspection:
    """May be asked from any thread."""

    worker: Worker
    pipeline: Pipeline
    store: Store
    max_open_bytes: int

    def gauges(self) -> StoreGauges:
        """For the registry of the metrics."""
        return StoreGauges(
            usage=self.store.usage,
            backlog=lambda: self.worker.backlog,
            backlog_age=lambda: self.worker.backlog_age,
            traces_retained=lambda: self.pipeline.retained_traces,
            traces_spilled=lambda: self.pipeline.spilled_traces,
        )

    def numbers(self) -> Numbers:
        """The head of the page of open traces."""
        return Numbers(
            open_traces=self.pipeline.open_traces,
            spilled_traces=self.pipeline.spilled_traces,
            retained_traces=self.pipeline.retained_traces,
            open_bytes=self.pipeline.open_bytes,
            max_open_bytes=self.max_open_bytes,
            queued_bytes=self.worker.waiting,
            backlog_requests=self.worker.backlog,
            backlog_age_s=self.worker.backlog_age,
            store_state=self.store.usage().state,
        )

    def waiting(self, most: int) -> Future[list[Waiting]]:
        """What the oldest open traces wait for, so many at most."""
        return self.worker.ask(lambda: self.pipeline.waiting(self.store.horizon(), most))
