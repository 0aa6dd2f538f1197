"""What scores, without what listens: a configuration and its setup come in; store, pipeline, sinks
and worker are wired here.

Requests enter by `accept`, scores leave by `registry`.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry, Histogram

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.plugins import installed_dialects
from pathgauge.collector.core.evaluations.conversations import MAX_BYTES as CONVERSATION_BYTES
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.judging.queue import without_judges
from pathgauge.collector.service.canary import TENANT as CANARY_TENANT, Canary, WithoutCanary
from pathgauge.collector.service.clock import RunningTime
from pathgauge.collector.service.inspection import Inspection
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.sinks import Sink
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.labels import LabelLimits
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.sinks.prometheus.store_metrics import commit_durations
from pathgauge.collector.store import Store
from pathgauge.collector.store.memory import MemoryStore
from pathgauge.collector.store.restore import WindowBounds
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite import IN_FLIGHT_BYTES, SqliteStore

if TYPE_CHECKING:
    from pathgauge.collector.judging.judging import Judging
    from pathgauge.collector.judging.queue import Tell
    from pathgauge.collector.sinks.otlp_events.sink import OtlpEvents

_log = structlog.get_logger(__name__)

QUEUE_BYTES = 64 << 20
"""Of requests that wait for the worker in memory, where there is no journal in which they could
wait.
"""
AHEAD_BYTES = 16 << 20
"""Of requests that wait in memory beside the journal, and spare reading it. Decoded, they take
three times as much.
"""


class Engine:
    """The scoring parts, from `resume` to `stop`."""

    def __init__(
        self,
        config: Config,
        setup: ActiveConfig,
        telemetry: InternalTelemetry,
        canary: Canary | None,
    ) -> None:
        """Raises `ConfigError` when files of a backend cannot be read."""
        self._tenants = frozenset(config.auth.tenants if config.auth is not None else {""})
        self._telemetry = telemetry
        self._setup = setup
        self._events = _events(config, telemetry)
        metrics, commits = DurableMetrics(), commit_durations()
        self._store = _store(config, commits)
        self._queue_bytes = AHEAD_BYTES if self._store.durable else QUEUE_BYTES
        self._judging = _judging(config, setup, self._judged)
        self._pipeline = Pipeline(
            setup.evaluator,
            setup.references,
            telemetry,
            Bounds(**config.assembly.model_dump()),
            scenario_keys=config.scenario.keys,
            registry=installed_dialects(),
            conversation_idle=config.conversations.idle,
            recall=self._store.recall if self._store.durable else None,
            judging=None if self._judging is None else self._judging.of,
        )
        windows = config.windows
        self._sink = PrometheusSink(
            setup.evaluator,
            setup.references,
            telemetry,
            windows=Windows(
                size=windows.size, max_age_s=windows.max_age, stale_after_s=windows.stale_after
            ),
            limits=LabelLimits(max_series=config.exporters.prometheus.max_series),
            min_samples=windows.min_samples,
            metrics=metrics,
            baseline_versions=setup.baseline_versions,
            tenants=len(self._tenants) > 1,
            traces_open=lambda: self._pipeline.open_traces,
            queues=self._queues(config),
        )
        canaries = [canary] if canary is not None else []
        events = [WithoutCanary(self._events)] if self._events is not None else []
        sinks: list[Sink] = [*canaries, *events]
        spending = [self._judging.spending] if self._judging else []
        publisher = Publisher(
            self._pipeline,
            self._store,
            ahead=[WithoutCanary(self._sink)],
            sinks=sinks,
            durable_counts=[self._sink, *spending],
            judges=self._judging.bench if self._judging else None,
            pending=lambda: any(one.has_pending for one in spending),
        )
        max_backlog_age = math.inf if config.store is None else config.store.max_backlog_age
        self.worker = Worker(
            self._pipeline,
            self._store,
            telemetry,
            publisher,
            self._queue_bytes,
            max_backlog_age=max_backlog_age,
        )
        self.inspection = Inspection(
            self.worker, self._pipeline, self._store, config.assembly.max_open_bytes
        )
        judges = [self._judging.series] if self._judging else []
        for collector in (Live([commits]), self.inspection.gauges(), *canaries, *judges):
            self.registry.register(collector)

    @property
    def registry(self) -> CollectorRegistry:
        """What `/metrics` shows."""
        return self._sink.registry

    def resume(self) -> None:
        """Go on where the last process stopped. Raises `StoreError`."""
        restored = self._store.open()
        clock = RunningTime(restored.at)
        self._pipeline.restore(restored.traces, clock())
        for turn in restored.turns:
            self._pipeline.restore_turn(*turn)
        for awaited in restored.awaited:
            self._pipeline.restore_awaited(awaited)
        self._telemetry.restore(restored.counts)
        # A tenant that is not configured any more has no series.
        recent = (
            evaluation for evaluation in self._store.recent() if evaluation.key[0] in self._tenants
        )
        self._sink.restore(restored.counts, recent, time.time())
        self._store.start(self.worker.deliver, clock)
        if self._judging is not None:
            self._judging.resume(restored.counts, restored.awaited)
        else:
            for awaited in restored.awaited:
                self._judged(
                    awaited, without_judges(awaited, self._setup.evaluator, self._setup.references)
                )
        self.worker.start(restored)
        if restored.requests:
            _log.info(
                "resumed",
                requests=restored.requests,
                to_read=restored.last_row - restored.row,
                traces=self._pipeline.open_traces,
            )

    def stop(self, timeout: float) -> None:
        """Take in what is queued, make it durable and let go of the store; that may take `timeout`
        seconds.

        What waits for judges is judged by the next process, or now when there is no store.
        """
        if self._judging is not None:
            if not self._store.durable:
                self._judging.bench.finish(timeout)
            self._judging.bench.stop()
        if not self.worker.stop(timeout):
            _log.error(
                "what is queued could not be taken in in time",
                open_traces=self._pipeline.open_traces,
            )
        self._store.close()

    def configure(self, setup: ActiveConfig) -> None:
        """Put other criteria and references in force, for all that is read after what waits now."""
        self._setup = setup

        def configure() -> None:
            self._pipeline.configure(setup.evaluator, setup.references)
            self._sink.configure(setup.evaluator, setup.references, setup.baseline_versions)
            if self._judging is not None:
                self._judging.configure(setup.evaluator, setup.references)

        self.worker.call(configure)

    def configure_failed(self) -> None:
        """Note that others were refused."""
        self.worker.call(self._sink.configure_failed)

    def unready(self) -> list[str]:
        """Why no requests are taken, a line each; none when they are."""
        reasons = [] if self.worker.alive else ["the pipeline thread is not running"]
        store = self._store.usage()
        if store.state != "ok":
            reasons.append(
                store.reason or "the store cannot be written to: senders are told to retry"
            )
        if self._pipeline.full:
            reasons.append("open traces use up their memory: senders are told to retry")
        if self.worker.late:
            reasons.append(
                "scoring is further behind than store.max_backlog_age: senders are told to retry"
            )
        return reasons

    def _judged(self, awaited: PendingJudgment, evaluation: Evaluation) -> None:
        self.worker.judged(awaited, evaluation)

    def _queues(self, config: Config) -> dict[str, Queue]:
        events, otlp = self._events, config.exporters.otlp
        to_backend = (
            {"events": Queue(lambda: events.waiting, otlp.queue_size)}
            if events is not None and otlp is not None
            else {}
        )
        judges = {"judges": self._judging.queue} if self._judging is not None else {}
        return {
            **to_backend,
            **judges,
            "ingest": Queue(lambda: self.worker.waiting, self._queue_bytes),
            "open_traces": Queue(lambda: self._pipeline.open_bytes, config.assembly.max_open_bytes),
            "conversations": Queue(lambda: self._pipeline.conversation_bytes, CONVERSATION_BYTES),
            "store_in_flight": Queue(lambda: self._store.usage().in_flight, IN_FLIGHT_BYTES),
            "store": Queue(lambda: self._store.usage().used, self._store.usage().capacity),
        }


def _judging(config: Config, setup: ActiveConfig, tell: Tell) -> Judging | None:
    if config.judge is None:
        return None
    # What asks models takes a tenth of a second to import, which nobody else needs.
    from pathgauge.collector.judging.judging import Judging  # noqa: PLC0415

    return Judging(config.judge, config.folder, setup, tell, frozenset({CANARY_TENANT}))


def _events(config: Config, telemetry: InternalTelemetry) -> OtlpEvents | None:
    section = config.exporters.otlp
    if section is None:
        return None
    # Their libraries take half a second to import, which nobody else needs.
    from pathgauge.collector.sinks.otlp_events.exporter import EXPORT_ERRORS, build_exporter  # noqa: PLC0415
    from pathgauge.collector.sinks.otlp_events.sink import OtlpEvents  # noqa: PLC0415

    exporter = build_exporter(config, section)
    return OtlpEvents(
        exporter,
        telemetry,
        queue_size=section.queue_size,
        content=section.content,
        reason=lambda: EXPORT_ERRORS.last,
    )


def _store(config: Config, commits: Histogram) -> Store:
    if config.store is None:
        return MemoryStore()
    retention = Retention(max_bytes=config.store.max_bytes, results_s=config.store.retention)
    windows = WindowBounds(config.windows.max_age)
    return SqliteStore(
        config.folder / config.store.path,
        retention,
        windows,
        lambda kind, seconds: commits.labels(kind).observe(seconds),
    )
