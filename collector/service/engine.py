"""What lies between the receivers and the pages: scoring and publishing.

`embedded.py` does both in one process, `workers/fleet.py` with several scorer processes,
`cluster/engine.py` with processes on several machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Protocol

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.exposition.registry import Registry
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios
from pathgauge.collector.store import FeedbackOutcome, Purged, Selection
from pathgauge.scorers.types import Json, Reference

RELOADED = frozenset({"criteria", "criteria_file", "drift", "prices", "references", "shadow"})
"""The sections of the configuration that a reload applies. Of `scenario`, only the keys need a
restart.
"""
RELOADED_LIMITS = frozenset({"max_series", "max_series_total"})
"""The keys of `exporters.prometheus` that a reload applies."""


def with_reloaded(before: Config, after: Config) -> Config:
    """The configuration `before`, with what a reload applies of the one `after`. A part that is
    started again must not apply what needs a restart of all.
    """
    limits = {name: getattr(after.exporters.prometheus, name) for name in RELOADED_LIMITS}
    prometheus = before.exporters.prometheus.model_copy(update=limits)
    changes: dict[str, Json] = {
        **{name: getattr(after, name) for name in RELOADED},
        "scenario": after.scenario.model_copy(update={"keys": before.scenario.keys}),
        "exporters": before.exporters.model_copy(update={"prometheus": prometheus}),
    }
    if before.shadow and after.shadow and before.shadow.budget and after.shadow.budget:
        changes["shadow"] = after.shadow.model_copy(update={"budget": before.shadow.budget})
    return before.with_changes(changes)


class Engine(Protocol):
    """Everything between the receivers and the pages, from `start` to `stop`."""

    @property
    def registry(self) -> Registry:
        """What `/metrics` shows."""
        ...

    @property
    def counted(self) -> InternalTelemetry:
        """What was counted, as far as this process publishes it."""
        ...

    @property
    def max_record_bytes(self) -> float:
        """The largest span or log record that can be made durable."""
        ...

    @property
    def unknown_scenarios(self) -> UnknownScenarios:
        """Scenario ids without a reference."""
        ...

    async def accept(self, batch: Batch) -> bool:
        """Make a request durable; `False` means that the sender should retry later."""
        ...

    def usage(self) -> CollectorUsage:
        """How much is held now; for any thread."""
        ...

    def current_scores(self) -> Sequence[CurrentScore]:
        """The recent scores that the gauges show; for any thread."""
        ...

    def drifts(self) -> Sequence[Explained]:
        """What is known about each stream of scores; for any thread."""
        ...

    def traffic(self) -> Sequence[TrafficStatus]:
        """What is known about the tool calls of each agent; for any thread."""
        ...

    def references(self) -> Iterable[Reference]:
        """The active references; for any thread."""
        ...

    def evaluator(self) -> Evaluator:
        """The active criteria; for any thread."""
        ...

    def explain_open_traces(self, max_traces: int) -> Future[list[Waiting]]:
        """What the oldest open traces wait for."""
        ...

    def record_feedback(self, answers: Sequence[Answer]) -> Sequence[FeedbackOutcome]:
        """Make answers of people durable; for any thread. Raises `StoreError`."""
        ...

    def purge(self, selection: Selection) -> Future[Purged]:
        """Remove telemetry and results. The future raises `StoreError`."""
        ...

    async def start(self) -> None:
        """Continue where the last process stopped. Raises `StoreError`."""
        ...

    async def stop(self, timeout: float) -> None:
        """Process what is queued, make it durable and close the store; `timeout` in seconds."""
        ...

    def configure(self, setup: ActiveConfig, config: Config) -> None:
        """Apply other criteria and references to everything that is queued from now on, and the
        limits of `config` on series.
        """
        ...

    def configure_failed(self) -> None:
        """Show in the metrics that a reload failed."""
        ...

    def unready(self) -> list[str]:
        """The reasons for which no requests are accepted; none when they are."""
        ...

    def stuck(self) -> list[str]:
        """What keeps the publishing from going on, and with one process the scoring; for any
        thread.
        """
        ...

    def inactive(self) -> list[str]:
        """The reasons for which this process is a standby; none when it is none."""
        ...
