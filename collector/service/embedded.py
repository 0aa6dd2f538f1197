"""The engine of a single process, which is the default: a scorer whose pipeline thread calls the
sinks.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Future

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.service.canary import Canary
from pathgauge.collector.service.components import build_queues, build_store
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.service.left_publications import apply_left_publications
from pathgauge.collector.service.memory.plan import MemoryPlan, without_limit
from pathgauge.collector.service.publications import Publications
from pathgauge.collector.service.scorer import Scorer
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.exposition.registry import Registry
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage, commit_durations
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios
from pathgauge.collector.store import FeedbackOutcome, Purged, Restored, Selection, publications
from pathgauge.collector.store.resharding import reshard
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.scorers.types import Reference


class EmbeddedEngine:
    """The engine of a single process. `Engine` documents its methods."""

    def __init__(
        self,
        config: Config,
        setup: ActiveConfig,
        telemetry: InternalTelemetry,
        canary: Canary | None,
        plan: MemoryPlan | None = None,
    ) -> None:
        """Raises `ConfigError` and `PluginError` when a sink cannot be built."""
        plan = plan or without_limit(config)
        self._setup = setup
        self._telemetry = telemetry
        self._folder = None if config.store is None else config.folder / config.store.path
        commits = commit_durations()
        self._store = build_store(config, commits, plan.max_cached_bytes)
        self._scorer = scorer = Scorer(plan, setup, telemetry, self._store)
        self._gauge = gauge = Gauge(
            config,
            setup,
            telemetry,
            canary,
            usage=scorer.usage,
            queues=build_queues(scorer.usage, scorer.requests, scorer.judging),
            records=scorer.pipeline.records,
        )
        scorer.connect(
            metrics=[gauge.metrics],
            sinks=gauge.sinks,
            counts=[gauge.counts],
            needs_commit=lambda: gauge.needs_commit,
        )
        self.registry.register(Live([commits]))
        for series in scorer.series():
            self.registry.register(series)

    @property
    def registry(self) -> Registry:
        return self._gauge.registry

    @property
    def counted(self) -> InternalTelemetry:
        return self._telemetry

    @property
    def max_record_bytes(self) -> float:
        return math.inf

    @property
    def unknown_scenarios(self) -> UnknownScenarios:
        return self._gauge.unknown_scenarios

    async def accept(self, batch: Batch) -> bool:
        return await self._scorer.requests.accept(batch)

    def usage(self) -> CollectorUsage:
        return self._scorer.usage()

    def current_scores(self) -> Sequence[CurrentScore]:
        return self._gauge.current_scores()

    def drifts(self) -> Sequence[Explained]:
        return self._gauge.drifts()

    def traffic(self) -> Sequence[TrafficStatus]:
        return self._gauge.traffic()

    def references(self) -> Iterable[Reference]:
        return self._setup.references

    def evaluator(self) -> Evaluator:
        return self._setup.evaluator

    def explain_open_traces(self, max_traces: int) -> Future[list[Waiting]]:
        return self._scorer.explain_open_traces(max_traces)

    def record_feedback(self, answers: Sequence[Answer]) -> Sequence[FeedbackOutcome]:
        return self._store.record_feedback(answers)

    def purge(self, selection: Selection) -> Future[Purged]:
        return self._scorer.worker.purge(selection)

    async def start(self) -> None:
        await asyncio.to_thread(self.resume)

    async def stop(self, timeout: float) -> None:
        await asyncio.to_thread(self.finish, timeout)

    def resume(self) -> None:
        """Like `start`, for other threads than that of an event loop."""
        if self._folder is not None:
            is_turn = self._setup.references.multi_turn
            reshard(self._folder, 0, is_turn=lambda one: is_turn(one) is not None)
        restored = self._store.open()
        self._scorer.resume(
            restored,
            before_start=lambda: self._gauge.restore(restored.counts, self._store.recent),
            when_open=lambda: self._apply_left(restored),
        )

    def _apply_left(self, restored: Restored) -> None:
        if self._folder is None or not isinstance(self._store, SqliteStore):
            return
        evaluator, references = self._setup.evaluator, self._setup.references
        left = Publications(
            self._gauge,
            self._telemetry,
            self._scorer.pipeline.records,
            decode=lambda body: publications.decode(body, evaluator, references),
            commit=self._store.commit,
            position=(restored.row, restored.at),
        )
        apply_left_publications(self._folder, self._store, left)

    def finish(self, timeout: float) -> None:
        """Like `stop`, for other threads."""
        self._gauge.finish()
        self._scorer.stop(timeout)
        self._store.close()

    def configure(self, setup: ActiveConfig, config: Config) -> None:
        self._setup = setup

        def configure() -> None:
            self._scorer.configure(setup)
            self._gauge.configure(setup, config.exporters.prometheus)

        self._scorer.worker.call(configure)

    def configure_failed(self) -> None:
        self._scorer.worker.call(self._gauge.configure_failed)

    def inactive(self) -> list[str]:
        return []

    def stuck(self) -> list[str]:
        return self._gauge.stuck() or self._scorer.stuck()

    def unready(self) -> list[str]:
        return self._scorer.unready()
