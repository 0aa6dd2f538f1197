"""The engine of one process of a cluster, whatever its roles. `Engine` documents the methods."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from heapq import nlargest

import structlog

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.receivers.kafka import topics
from pathgauge.collector.receivers.kafka.consumer import GroupConsumer
from pathgauge.collector.receivers.kafka.producer import KafkaLog
from pathgauge.collector.receivers.redact import RedactingConsumer
from pathgauge.collector.service.canary import Canary
from pathgauge.collector.service.cluster.gauge_role import GaugeRole
from pathgauge.collector.service.cluster.metrics import ClusterMetrics, ProcessSeries
from pathgauge.collector.service.cluster.partition_memory import plan_of_partition
from pathgauge.collector.service.cluster.partition_scorers import PartitionScorers
from pathgauge.collector.service.cluster.partitions import (
    build_decoder,
    settle_partitions,
    topic_names,
)
from pathgauge.collector.service.cluster.rejoining import Pauses, fenced
from pathgauge.collector.service.cluster.roles import Role
from pathgauge.collector.service.components import build_redactor, evidence_policy, retention
from pathgauge.collector.service.engine import with_reloaded
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.service.memory.plan import MemoryPlan
from pathgauge.collector.service.total_usage import total
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.exposition.registry import Registry
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage, commit_durations
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios
from pathgauge.collector.store import FeedbackOutcome, Purged, Selection, Usage, publications
from pathgauge.collector.store.essential import essential_task
from pathgauge.collector.store.postgres import purge, starting
from pathgauge.collector.store.postgres.feedback import FeedbackWriter
from pathgauge.collector.store.postgres.gauge import GaugeDatabase
from pathgauge.collector.store.postgres.sharing import SharedCleaning
from pathgauge.collector.store.recent_results import WindowBounds
from pathgauge.scorers.types import Reference

_log = structlog.get_logger(__name__)

_WATCH_S = 1.0


class Cluster:
    """The engine of one process."""

    def __init__(
        self,
        config: Config,
        setup: ActiveConfig,
        telemetry: InternalTelemetry,
        canary: Canary | None,
        *,
        roles: frozenset[Role],
        plan: MemoryPlan,
    ) -> None:
        """Raises `LogError` if the topics cannot be used, and `StoreError` if PostgreSQL cannot."""
        assert config.kafka is not None
        assert config.postgres is not None
        self._config, self._kafka, self._conninfo = config, config.kafka, config.postgres.conninfo
        self._feedback = FeedbackWriter(self._conninfo)
        self._setup = setup
        self._telemetry = telemetry
        self._canary = canary
        self._commits = commit_durations()
        retained = config.assembly.max_age + config.assembly.late_ttl
        found = topics.check(config.kafka, retained)
        self._partitions = found.partitions
        if roles & {"scorer", "gauge"}:
            starting.wait(self._conninfo)
        if "scorer" in roles:
            settle_partitions(config, self._kafka, self._conninfo, found.partitions)
        redactor = build_redactor(config)
        self._redact = None
        if redactor is not None:
            self._redact = RedactingConsumer(self.accept, redactor, telemetry).redacted
        self._log = None
        if "gateway" in roles:
            self._log = KafkaLog(
                config.kafka, telemetry, found.max_message_bytes, partitions=found.partitions
            )
        self._consumer: GroupConsumer | None = None
        self._scorers: PartitionScorers | None = None
        if "scorer" in roles:
            self._scorers = PartitionScorers(
                plan_of_partition(plan, found.partitions),
                setup,
                self._conninfo,
                found.partitions,
                lambda kind, seconds: self._commits.labels(kind).observe(seconds),
            )
        self._gauge = self._build_role() if "gauge" in roles else None
        self._unknown = UnknownScenarios(setup.references)
        self._tasks: list[asyncio.Task[None]] = []
        self._process = ProcessSeries(
            telemetry, lambda: self.usage().pipeline.open_traces, self._gauge
        )
        self._registry = self._build_registry()

    @property
    def registry(self) -> Registry:
        return self._registry

    @property
    def counted(self) -> InternalTelemetry:
        return self._telemetry if self._gauge is None else self._gauge.counted

    @property
    def unknown_scenarios(self) -> UnknownScenarios:
        gauge = self._active_gauge()
        return self._unknown if gauge is None else gauge.unknown_scenarios

    @property
    def max_record_bytes(self) -> float:
        return math.inf if self._log is None else self._log.max_record_bytes

    async def accept(self, batch: Batch) -> bool:
        return self._log is not None and await self._log.accept(batch)

    def usage(self) -> CollectorUsage:
        usages = {} if self._scorers is None else self._scorers.usages()
        return total(list(usages.values()), self._results())

    def current_scores(self) -> Sequence[CurrentScore]:
        gauge = self._active_gauge()
        return () if gauge is None else gauge.current_scores()

    def drifts(self) -> Sequence[Explained]:
        gauge = self._active_gauge()
        return () if gauge is None else gauge.drifts()

    def traffic(self) -> Sequence[TrafficStatus]:
        gauge = self._active_gauge()
        return () if gauge is None else gauge.traffic()

    def references(self) -> Iterable[Reference]:
        return self._setup.references

    def evaluator(self) -> Evaluator:
        return self._setup.evaluator

    def explain_open_traces(self, max_traces: int) -> Future[list[Waiting]]:
        asked = [] if self._scorers is None else self._scorers.explain_open_traces(max_traces)

        async def explain() -> list[Waiting]:
            found = await asyncio.gather(*map(asyncio.wrap_future, asked))
            every = [one for of_partition in found for one in of_partition]
            return nlargest(max_traces, every, key=lambda one: one.age)

        return asyncio.run_coroutine_threadsafe(explain(), self._loop)

    def record_feedback(self, answers: Sequence[Answer]) -> Sequence[FeedbackOutcome]:
        return self._feedback.record(answers)

    def purge(self, selection: Selection) -> Future[Purged]:
        since = time.time() - self._config.windows.max_age

        async def purged() -> Purged:
            return await asyncio.to_thread(purge.purge, self._conninfo, selection, since)

        return asyncio.run_coroutine_threadsafe(purged(), self._loop)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._gauge is not None:
            self._gauge.start()
        if self._scorers is not None:
            self._scorers.start()
            self._join()
            self._tasks.append(essential_task(self._watch(self._scorers), "consumer group"))

    async def stop(self, timeout: float) -> None:
        for task in self._tasks:
            task.cancel()
        if self._log is not None:
            await asyncio.to_thread(self._log.close)
        if self._consumer is not None:
            await asyncio.to_thread(self._consumer.close)
        if self._scorers is not None:
            await asyncio.to_thread(self._scorers.stop)
        if self._gauge is not None:
            await asyncio.to_thread(self._gauge.stop, timeout)

    def configure(self, setup: ActiveConfig, config: Config) -> None:
        self._setup, self._config = setup, with_reloaded(self._config, config)
        self._process.reloaded(successful=True)
        if self._scorers is not None:
            self._scorers.configure(setup)
        if self._gauge is not None:
            self._gauge.call(lambda gauge: gauge.configure(setup, config.exporters.prometheus))

    def configure_failed(self) -> None:
        self._process.reloaded(successful=False)
        if self._gauge is not None:
            self._gauge.call(lambda gauge: gauge.configure_failed())

    def stuck(self) -> list[str]:
        reasons = [] if self._scorers is None else self._scorers.stuck()
        return reasons + ([] if self._gauge is None else self._gauge.stuck())

    def inactive(self) -> list[str]:
        return [] if self._gauge is None else self._gauge.inactive()

    def unready(self) -> list[str]:
        reasons = []
        if self._log is not None and not (health := self._log.health()).reachable:
            reasons.append(f"Kafka cannot be reached: {health.reason}")
        if self._scorers is not None:
            reasons += self._scorers.unready()
        if self._gauge is not None:
            reasons += self._gauge.unready()
        return reasons

    def _active_gauge(self) -> Gauge | None:
        """The gauge, while this process is the one that publishes."""
        return None if self._gauge is None else self._gauge.gauge

    def _join(self) -> None:
        """Become a member of the consumer group."""
        assert self._scorers is not None
        names = topic_names(self._kafka)
        decoder = build_decoder(self._config, names, self._partitions, redact=self._redact)
        self._consumer = GroupConsumer(self._kafka, decoder, self._scorers, self._telemetry)
        self._consumer.start()

    async def _watch(self, scorers: PartitionScorers) -> None:
        """Join the group anew when a partition was lost, or when the consumer has failed."""
        pauses = Pauses()
        while True:
            await asyncio.sleep(_WATCH_S)
            consumer = self._consumer
            if consumer is None or not (scorers.is_fenced.is_set() or consumer.failure):
                continue
            await asyncio.to_thread(consumer.close)  # its thread may have learned more until then
            pause = pauses.next(time.monotonic())
            reason = fenced(self._kafka) if consumer.failure is None else str(consumer.failure)
            _log.warning("joining the consumer group again", reason=reason, after_s=pause)
            scorers.is_fenced.clear()
            await asyncio.sleep(pause)
            self._join()

    def _results(self) -> Usage:
        return Usage() if self._gauge is None else self._gauge.usage()

    def _lag(self) -> Mapping[int, int]:
        if self._consumer is None:
            return {}
        return {number: source.lag() for number, source in dict(self._consumer.sources).items()}

    def _build_role(self) -> GaugeRole:
        config = self._config
        evidence = evidence_policy(config)
        database = GaugeDatabase(
            self._conninfo,
            SharedCleaning(retention(config), evidence),
            WindowBounds(config.windows.max_age),
            lambda kind, seconds: self._commits.labels(kind).observe(seconds),
        )
        return GaugeRole(database, self._telemetry, self._build_gauge, self._decode)

    def _build_gauge(self, telemetry: InternalTelemetry, records: AgentRecords) -> Gauge:
        return Gauge(
            self._config,
            self._setup,
            telemetry,
            self._canary,
            usage=self.usage,
            queues={},
            records=records,
        )

    def _decode(self, body: bytes) -> Publication:
        return publications.decode(body, self._setup.evaluator, self._setup.references)

    def _build_registry(self) -> Registry:
        registry = Registry()
        registry.register(self._process)
        registry.register(Live([self._commits]))
        if self._canary is not None and self._gauge is None:
            registry.register(self._canary)
        registry.register(ClusterMetrics(self._scorers, self._lag, self._log))
        return registry
