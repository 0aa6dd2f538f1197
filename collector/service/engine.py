"""The scoring half of the service: store, pipeline, judges and sinks, without the servers.

Requests enter by `requests.accept`; scores leave by `registry` and the other sinks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace

import structlog
from prometheus_client import CollectorRegistry

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.exporters import Prometheus
from pathgauge.collector.config.sinks import build_sinks
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.judging.queue import without_judges
from pathgauge.collector.service.canary import TENANT as CANARY_TENANT, Canary, WithoutCanary
from pathgauge.collector.service.clock import RunningTime
from pathgauge.collector.service.components import (
    build_judging,
    build_metrics_sink,
    build_pipeline,
    build_queues,
    build_requests,
    build_store,
    label_limits,
)
from pathgauge.collector.service.memory.plan import MemoryPlan, without_limit
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.sinks.prometheus.store_metrics import (
    CollectorUsage,
    StoreGauges,
    commit_durations,
)
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios
from pathgauge.scorers.types import Reference

_log = structlog.get_logger(__name__)


class Engine:
    """The scoring parts, from `resume` to `stop`."""

    def __init__(
        self,
        config: Config,
        setup: ActiveConfig,
        telemetry: InternalTelemetry,
        canary: Canary | None,
        plan: MemoryPlan | None = None,
    ) -> None:
        """Raises `ConfigError` and `PluginError` when a sink cannot be built."""
        self._tenants = frozenset(config.auth.tenants if config.auth is not None else {""})
        self._setup = setup
        plan = plan or without_limit(config)
        commits = commit_durations()
        self._store = build_store(config, commits, plan.max_cached_bytes)
        self._judging = build_judging(plan, setup, self._on_judged)
        self._pipeline = build_pipeline(plan, setup, telemetry, self._store, self._judging)
        self.requests = build_requests(plan, self._store, self._pipeline)
        sinks = build_sinks(config, telemetry)
        queues = build_queues(self.usage, self.requests, self._judging, sinks.values())
        self._limits = label_limits(config)
        self._sink = build_metrics_sink(
            config,
            setup,
            telemetry,
            self.usage,
            queues,
            limits=self._limits,
            records=self._pipeline.records,
        )
        canaries = [canary] if canary is not None else []
        self.unknown_scenarios = UnknownScenarios(setup.references)
        beside = {"unknown scenarios": self.unknown_scenarios, **sinks}
        publisher = self._build_publisher(
            [*canaries, *(WithoutCanary(name, sink) for name, sink in beside.items())]
        )
        self.worker = Worker(self._pipeline, self._store, telemetry, publisher, self.requests)
        self.registry.register(Live([commits]))
        self.registry.register(StoreGauges(self.usage))
        for metrics in canaries:
            self.registry.register(metrics)
        if self._judging is not None:
            self.registry.register(self._judging.series)

    def _build_publisher(self, sinks: list[Sink]) -> Publisher:
        metrics = [WithoutCanary("prometheus", self._sink)]
        if self._judging is None:
            return Publisher(
                self._pipeline,
                self._store,
                immediate_sinks=metrics,
                sinks=sinks,
                durable_counts=[self._pipeline.records, self._sink],
                has_pending_counts=lambda: self._sink.needs_commit,
            )
        spending = self._judging.spending
        return Publisher(
            self._pipeline,
            self._store,
            immediate_sinks=metrics,
            sinks=sinks,
            durable_counts=[self._pipeline.records, self._sink, spending],
            judges=self._judging.queue,
            has_pending_counts=lambda: self._sink.needs_commit or spending.has_pending,
        )

    @property
    def registry(self) -> CollectorRegistry:
        """What `/metrics` shows."""
        return self._sink.registry

    def usage(self) -> CollectorUsage:
        """How much the store, the pipeline and the queue before it hold; for any thread."""
        return CollectorUsage(self._store.usage(), self._pipeline.usage(), *self.requests.usage())

    def current_scores(self) -> Sequence[CurrentScore]:
        """The recent scores that the gauges show; for any thread."""
        return [one for one in self._sink.current_scores() if one.window.tenant != CANARY_TENANT]

    def references(self) -> Iterable[Reference]:
        """The active references; for any thread."""
        return self._setup.references

    def explain_open_traces(self, max_traces: int) -> Future[list[Waiting]]:
        """What the oldest open traces wait for; answered by the pipeline thread."""
        return self.worker.ask(lambda: self._pipeline.waiting(self._store.horizon(), max_traces))

    def resume(self) -> None:
        """Continue where the last process stopped. Raises `StoreError`."""
        restored = self._store.open()
        clock = RunningTime(restored.at)
        self._pipeline.restore(restored.traces, clock())
        for turn in restored.turns:
            self._pipeline.restore_turn(turn)
        for pending in restored.pending:
            self._pipeline.restore_pending(pending)
        # A tenant that was removed from the configuration has no series.
        recent = (
            evaluation for evaluation in self._store.recent() if evaluation.key[0] in self._tenants
        )
        self._pipeline.records.restore(restored.counts)
        self._sink.restore(restored.counts, recent, time.time())
        self._store.start(self.requests.deliver, clock)
        if self._judging is not None:
            self._judging.resume(restored.counts, restored.pending)
        else:
            for pending in restored.pending:
                self._on_judged(
                    pending, without_judges(pending, self._setup.evaluator, self._setup.references)
                )
        self.worker.start(restored)
        if restored.requests:
            _log.info(
                "resumed",
                requests=restored.requests,
                to_read=restored.last_row - restored.row,
                traces=self._pipeline.usage().open_traces,
            )

    def stop(self, timeout: float) -> None:
        """Process what is queued, make it durable and close the store; `timeout` in seconds.

        Pending judgments are left to the next process. With a store in memory, the judges finish
        them first, within another `timeout`.
        """
        if self._judging is not None:
            if not self._store.durable:
                self._judging.queue.finish(timeout)
            self._judging.queue.stop()
        if not self.worker.stop(timeout):
            _log.error(
                "stopped before all queued requests were processed",
                open_traces=self._pipeline.usage().open_traces,
            )
        self._store.close()

    def configure(self, setup: ActiveConfig, exporter: Prometheus) -> None:
        """Apply other criteria and references to everything that is queued from now on, and the
        limits of `exporter`.
        """
        self._setup = setup
        limits = replace(
            self._limits,
            max_series=exporter.max_series,
            max_series_total=exporter.max_series_total,
        )

        def configure() -> None:
            self._pipeline.configure(setup.evaluator, setup.references)
            self.unknown_scenarios.configure(setup.references)
            self._sink.configure(setup.evaluator, setup.references, setup.baseline_versions, limits)
            if self._judging is not None:
                self._judging.configure(setup.evaluator, setup.references)

        self.worker.call(configure)

    def configure_failed(self) -> None:
        """Show in the metrics that a reload failed."""
        self.worker.call(self._sink.configure_failed)

    def unready(self) -> list[str]:
        """The reasons for which no requests are accepted; none when they are."""
        reasons = []
        if not self.worker.alive:
            reasons.append("the pipeline thread is not running")
        store = self._store.usage()
        if store.state != "ok":
            reasons.append(
                store.reason or "the store cannot be written to: senders are told to retry"
            )
        if self._pipeline.full:
            reasons.append("open traces use up their memory: senders are told to retry")
        if self.requests.is_late():
            reasons.append(
                "scoring is further behind than store.max_backlog_age: senders are told to retry"
            )
        return reasons

    def _on_judged(self, pending: PendingJudgment, evaluation: Evaluation) -> None:
        self.worker.judged(pending, evaluation)
