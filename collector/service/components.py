"""Builds the parts of an engine from the configuration."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import Histogram

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.dialect_tables import dialects_of
from pathgauge.collector.config.feedback import Feedback
from pathgauge.collector.config.operating import Store as StoreSection
from pathgauge.collector.config.plugins.dialects import installed_dialects
from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.evaluations.scorer_watch import UNWATCHED, ScorerWatch
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.partitioning import WHOLE, Partition
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.redaction import Redactor
from pathgauge.collector.core.sink import QueuedSink, Sink
from pathgauge.collector.service.canary import TENANT as CANARY_TENANT
from pathgauge.collector.service.configured_pipeline import configured_pipeline
from pathgauge.collector.service.memory.plan import MemoryPlan
from pathgauge.collector.service.request_queue import RequestQueue
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Store, Transaction
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.store.memory import MemoryStore
from pathgauge.collector.store.recent_results import WindowBounds
from pathgauge.collector.store.retention import OPEN_SHARE, Retention
from pathgauge.collector.store.sqlite.appending import MAX_IN_FLIGHT_BYTES
from pathgauge.collector.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from pathgauge.collector.judging.judging import Judging
    from pathgauge.collector.judging.queue import OnJudged


def build_store(
    config: Config, commit_durations: Histogram, max_cached_bytes: int
) -> SqliteStore | MemoryStore:
    """A store on disk, or in memory for `store: memory`."""
    if config.store is None:
        return MemoryStore()
    return SqliteStore(
        config.folder / config.store.path,
        retention(config),
        WindowBounds(config.windows.max_age),
        lambda kind, seconds: commit_durations.labels(kind).observe(seconds),
        max_cached_bytes=max_cached_bytes,
        evidence=evidence_policy(config),
    )


def build_gauge_store(config: Config, commit_durations: Histogram) -> SqliteStore:
    """The store of the results of several scorers. It has half of the space."""
    store = stored(config)
    return SqliteStore(
        config.folder / store.path,
        replace(retention(config), max_bytes=store.max_bytes // 2),
        WindowBounds(config.windows.max_age),
        lambda kind, seconds: commit_durations.labels(kind).observe(seconds),
        evidence=evidence_policy(config),
        part="gauge",
    )


def build_scorer_store(
    config: Config,
    folder: Path,
    on_commit: Callable[[Transaction, float], None],
    max_cached_bytes: int,
) -> SqliteStore:
    """The store of one of several scorers. They share half of the space."""
    store = stored(config)
    return SqliteStore(
        folder,
        Retention(max_bytes=store.max_bytes // 2 // config.workers, results_s=store.retention),
        WindowBounds(config.windows.max_age),
        on_commit,
        max_cached_bytes=max_cached_bytes,
        part="scorer",
    )


def stored(config: Config) -> StoreSection:
    """The section about the store on disk. Raises `ConfigError`."""
    if config.store is None:
        text = "found memory, expected a store on disk: scorers commit what they tell the gauge"
        raise ConfigError([config.problem(("store",), text)])
    return config.store


def retention(config: Config) -> Retention:
    """How much is kept, and for how long."""
    store = stored(config)
    max_answers = (config.feedback or Feedback()).max_answers
    return Retention(store.max_bytes, store.retention, max_answers)


def evidence_policy(config: Config) -> EvidencePolicy:
    """Which evidence is kept."""
    max_bytes = config.evidence.max_bytes
    if config.store is not None:
        max_bytes = min(max_bytes, config.store.max_bytes // OPEN_SHARE)
    return EvidencePolicy(
        config.evidence.keep,
        config.evidence.passed_per_scenario,
        max_bytes,
        config.evidence.retention,
    )


def sends_content(config: Config) -> bool:
    """Whether scorers send the content of invocations: a sink of a plug-in may need it."""
    return any(name != "otlp" for name in config.exporters.sinks)


def build_redactor(config: Config) -> Redactor | None:
    """`None` without a `redaction` section."""
    redaction = config.redaction
    if redaction is None:
        return None
    return Redactor(
        redaction.rules(),
        redaction.rules_of_tenants(),
        _random_salt() if redaction.salt is None else redaction.salt.encode(),
        installed_dialects(dialects_of(config.dialects)),
        config.scenario.keys,
    )


@cache
def _random_salt() -> bytes:
    """One for the process: the hash of a conversation in feedback must be that in telemetry."""
    return secrets.token_bytes(32)


def build_judging(plan: MemoryPlan, setup: ActiveConfig, on_judged: OnJudged) -> Judging | None:
    """`None` without a `judge` section. Canaries are not judged."""
    config = plan.config
    if config.judge is None:
        return None
    # The model client takes a tenth of a second to import.
    from pathgauge.collector.judging.judging import Judging  # noqa: PLC0415

    return Judging(
        config.judge,
        config.folder,
        setup,
        on_judged,
        frozenset({CANARY_TENANT}),
        shadow_budget=None if config.shadow is None else config.shadow.budget,
        max_queue_bytes=plan.max_judge_queue_bytes,
        max_cache_bytes=plan.max_judge_cache_bytes,
    )


def build_pipeline(
    plan: MemoryPlan,
    setup: ActiveConfig,
    telemetry: InternalTelemetry,
    store: Store,
    judging: Judging | None,
    *,
    partition: Partition = WHOLE,
    watch: ScorerWatch = UNWATCHED,
    shadow_watch: ScorerWatch = UNWATCHED,
) -> Pipeline:
    """The pipeline over the journal of `store`, if it has one."""
    config = plan.config
    return configured_pipeline(config, setup, telemetry)(
        max_conversation_bytes=plan.max_conversation_bytes,
        recall=store.recall if store.durable else None,
        judging=judging.decide if judging is not None else None,
        judging_in_shadow=(
            judging.decide_in_shadow if judging is not None and judging.asks_in_shadow else None
        ),
        synthetic_tenants=frozenset({CANARY_TENANT}),
        takes_feedback=config.feedback is not None and config.store is not None,
        partition=partition,
        watch=watch,
        shadow_watch=shadow_watch,
    )


def build_requests(plan: MemoryPlan, store: Store, pipeline: Pipeline) -> RequestQueue:
    """The queue between the receivers and the pipeline."""
    config = plan.config
    return RequestQueue(
        store,
        lambda: pipeline.full,
        plan.max_queue_bytes,
        max_backlog_age=math.inf if config.store is None else config.store.max_backlog_age,
    )


def label_limits(config: Config) -> LabelLimits:
    """The limits on the series of `/metrics`. A single tenant is not a label value."""
    exporter = config.exporters.prometheus
    tenants = frozenset(config.auth.tenants if config.auth is not None else ())
    return LabelLimits(
        max_series=exporter.max_series,
        max_series_total=exporter.max_series_total,
        tenants=tenants if len(tenants) > 1 else frozenset(),
    )


def build_metrics_sink(
    config: Config,
    setup: ActiveConfig,
    telemetry: InternalTelemetry,
    usage: Callable[[], CollectorUsage],
    queues: dict[str, Queue],
    *,
    limits: LabelLimits,
    records: AgentRecords,
    clock: Callable[[], float] = time.time,
) -> PrometheusSink:
    """The sink behind `/metrics`. `clock` returns the Unix time of scrapes."""
    windows = config.windows
    return PrometheusSink(
        setup.evaluator,
        setup.references,
        telemetry,
        windows=Windows(
            size=windows.size, max_age_s=windows.max_age, stale_after_s=windows.stale_after
        ),
        limits=limits,
        min_samples=windows.min_samples,
        clock=clock,
        metrics=DurableMetrics(),
        drift=setup.drift,
        tenants=len(limits.tenants) > 1,
        traces_open=lambda: usage().pipeline.open_traces,
        queues=queues,
        records=records.shown,
        content_settings=installed_dialects().content_settings,
    )


def build_queues(
    usage: Callable[[], CollectorUsage], requests: RequestQueue, judging: Judging | None
) -> dict[str, Queue]:
    """What the metrics say about the queues of a scorer, by label value."""
    queues = {
        "ingest": Queue(lambda: usage().queued_bytes, lambda: requests.max_bytes),
        "open_traces": Queue(
            lambda: usage().pipeline.open_bytes, lambda: usage().pipeline.max_open_bytes
        ),
        "conversations": Queue(
            lambda: usage().pipeline.conversation_bytes,
            lambda: usage().pipeline.max_conversation_bytes,
        ),
        "store_in_flight": Queue(lambda: usage().store.in_flight, lambda: MAX_IN_FLIGHT_BYTES),
        "store": Queue(lambda: usage().store.used, lambda: usage().store.capacity),
    }
    if judging is not None:
        judges = judging.queue
        queues["judges"] = Queue(lambda: judges.waiting, lambda: judges.capacity)
    return queues


def sink_queues(sinks: Iterable[Sink]) -> dict[str, Queue]:
    """The same for sinks with a queue of their own."""
    return {sink.queue_name: _queue_of(sink) for sink in sinks if isinstance(sink, QueuedSink)}


def _queue_of(sink: QueuedSink) -> Queue:
    return Queue(lambda: sink.waiting, lambda: sink.queue_size)
