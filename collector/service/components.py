"""Builds the parts of an engine from the configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from prometheus_client import Histogram

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.plugins.dialects import installed_dialects
from pathgauge.collector.core.evaluations.conversations import MAX_BYTES as MAX_CONVERSATION_BYTES
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.sink import QueuedSink, Sink
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.service.canary import TENANT as CANARY_TENANT
from pathgauge.collector.service.request_queue import RequestQueue
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.label_registry import LabelLimits
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Store
from pathgauge.collector.store.memory import MemoryStore
from pathgauge.collector.store.recent_results import WindowBounds
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite import MAX_IN_FLIGHT_BYTES, SqliteStore

if TYPE_CHECKING:
    from pathgauge.collector.judging.judging import Judging
    from pathgauge.collector.judging.queue import OnJudged

MAX_QUEUE_BYTES = 64 << 20
"""Requests that wait in memory for the pipeline, with a store in memory."""
MAX_QUEUE_BYTES_WITH_JOURNAL = 16 << 20
"""The same with a journal, where the queue only saves reading the journal. Decoded, requests take
three times as much.
"""


def build_store(config: Config, commit_durations: Histogram) -> Store:
    """A store on disk, or in memory for `store: memory`."""
    if config.store is None:
        return MemoryStore()
    return SqliteStore(
        config.folder / config.store.path,
        Retention(max_bytes=config.store.max_bytes, results_s=config.store.retention),
        WindowBounds(config.windows.max_age),
        lambda kind, seconds: commit_durations.labels(kind).observe(seconds),
    )


def build_judging(config: Config, setup: ActiveConfig, on_judged: OnJudged) -> Judging | None:
    """`None` without a `judge` section. Canaries are not judged."""
    if config.judge is None:
        return None
    # The model client takes a tenth of a second to import.
    from pathgauge.collector.judging.judging import Judging  # noqa: PLC0415

    return Judging(config.judge, config.folder, setup, on_judged, frozenset({CANARY_TENANT}))


def build_pipeline(
    config: Config,
    setup: ActiveConfig,
    telemetry: InternalTelemetry,
    store: Store,
    judging: Judging | None,
) -> Pipeline:
    """The pipeline over the journal of `store`, if it has one."""
    return Pipeline(
        installed_dialects(),
        setup.evaluator,
        setup.references,
        telemetry,
        Bounds(**config.assembly.model_dump()),
        scenario_keys=config.scenario.keys,
        conversation_idle=config.conversations.idle,
        recall=store.recall if store.durable else None,
        judging=judging.decide if judging is not None else None,
    )


def build_requests(config: Config, store: Store, pipeline: Pipeline) -> RequestQueue:
    """The queue between the receivers and the pipeline."""
    return RequestQueue(
        store,
        lambda: pipeline.full,
        MAX_QUEUE_BYTES_WITH_JOURNAL if store.durable else MAX_QUEUE_BYTES,
        max_backlog_age=math.inf if config.store is None else config.store.max_backlog_age,
    )


def build_metrics_sink(
    config: Config,
    setup: ActiveConfig,
    telemetry: InternalTelemetry,
    usage: Callable[[], CollectorUsage],
    queues: dict[str, Queue],
) -> PrometheusSink:
    """The sink behind `/metrics`."""
    windows = config.windows
    return PrometheusSink(
        setup.evaluator,
        setup.references,
        telemetry,
        windows=Windows(
            size=windows.size, max_age_s=windows.max_age, stale_after_s=windows.stale_after
        ),
        limits=LabelLimits(max_series=config.exporters.prometheus.max_series),
        min_samples=windows.min_samples,
        metrics=DurableMetrics(),
        baseline_versions=setup.baseline_versions,
        tenants=config.auth is not None and len(config.auth.tenants) > 1,
        traces_open=lambda: usage().pipeline.open_traces,
        queues=queues,
    )


def build_queues(
    usage: Callable[[], CollectorUsage],
    requests: RequestQueue,
    judging: Judging | None,
    sinks: Iterable[Sink],
) -> dict[str, Queue]:
    """What the metrics say about queues, by label value."""
    now = usage()
    queues = {
        "ingest": Queue(lambda: usage().queued_bytes, requests.max_bytes),
        "open_traces": Queue(lambda: usage().pipeline.open_bytes, now.pipeline.max_open_bytes),
        "conversations": Queue(lambda: usage().pipeline.conversation_bytes, MAX_CONVERSATION_BYTES),
        "store_in_flight": Queue(lambda: usage().store.in_flight, MAX_IN_FLIGHT_BYTES),
        "store": Queue(lambda: usage().store.used, now.store.capacity),
    }
    if judging is not None:
        queues["judges"] = Queue(lambda: judging.queue.waiting, judging.queue.capacity)
    queues |= {sink.queue_name: _queue_of(sink) for sink in sinks if isinstance(sink, QueuedSink)}
    return queues


def _queue_of(sink: QueuedSink) -> Queue:
    return Queue(lambda: sink.waiting, sink.queue_size)
