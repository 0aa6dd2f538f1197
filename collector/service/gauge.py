"""The part that turns evaluations into series, events and alerts: all sinks of one collector.

With one process the pipeline thread calls the sinks. With several scorers, `PublicationThread`
does, for the publications of all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.exporters import Prometheus
from pathgauge.collector.config.sinks import build_sinks
from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.evaluations.recent import Past, Recent, Wants
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.service.canary import TENANT as CANARY_TENANT, Canary, WithoutCanary
from pathgauge.collector.service.components import build_metrics_sink, label_limits, sink_queues
from pathgauge.collector.service.guarded_sink import GuardedSink
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.exposition.registry import Registry
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage, StoreGauges
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios


class Gauge:
    """The sinks. Calls of `metrics` and `sinks` come from one thread."""

    def __init__(
        self,
        config: Config,
        setup: ActiveConfig,
        telemetry: InternalTelemetry,
        canary: Canary | None,
        *,
        usage: Callable[[], CollectorUsage],
        queues: Mapping[str, Queue],
        records: AgentRecords,
    ) -> None:
        """`records` is what the telemetry of each agent version has shown. Raises `ConfigError` and
        `PluginError` when a sink cannot be built.
        """
        self._tenants = frozenset(config.auth.tenants if config.auth is not None else {""})
        self._limits = label_limits(config)
        plugins = build_sinks(config, telemetry)
        self._series = build_metrics_sink(
            config,
            setup,
            telemetry,
            usage,
            {**queues, **sink_queues(plugins.values())},
            limits=self._limits,
            records=records,
        )
        self.unknown_scenarios = UnknownScenarios(setup.references)
        self._guarded = [GuardedSink(name, sink, telemetry) for name, sink in plugins.items()]
        named: dict[str, Sink] = {"unknown scenarios": self.unknown_scenarios}
        named |= {sink.name: sink for sink in self._guarded}
        canaries = [canary] if canary is not None else []
        self.metrics: Sink = WithoutCanary("prometheus", self._series)
        """The sink behind `/metrics`, which gets events before they are durable."""
        self.sinks: Sequence[Sink] = [
            *canaries,
            *(WithoutCanary(name, sink) for name, sink in named.items()),
        ]
        """The other sinks, which get events when they are durable."""
        self.counts = self._series
        """The counts of `metrics`, which become visible when they are durable."""
        for collector in (StoreGauges(usage), *canaries):
            self.registry.register(collector)

    @property
    def registry(self) -> Registry:
        """What `/metrics` shows."""
        return self._series.registry

    @property
    def needs_commit(self) -> bool:
        """Whether a reload changed counts, without any event."""
        return self._series.needs_commit

    def stuck(self) -> list[str]:
        """Sinks that do not return; for any thread. Until they do, nothing is published."""
        return [reason for sink in self._guarded if (reason := sink.stuck()) is not None]

    def current_scores(self) -> Sequence[CurrentScore]:
        """The recent scores that the gauges show; for any thread."""
        return [
            one for one in self._series.shown.current_scores() if one.window.tenant != CANARY_TENANT
        ]

    def drifts(self) -> Sequence[Explained]:
        """What is known about each stream of scores; for any thread."""
        return [one for one in self._series.shown.drifts() if one.drift.key.tenant != CANARY_TENANT]

    def traffic(self) -> Sequence[TrafficStatus]:
        """What is known about the tool calls of each agent; for any thread."""
        return [one for one in self._series.shown.traffic() if one.tenant != CANARY_TENANT]

    def finish(self) -> None:
        """Have the next commits store everything, as the process stops; for any thread."""
        self._series.finish()

    def restore(self, counts: Sequence[Row], past: Past) -> None:
        """Continue from what an earlier process stored. A tenant that was removed from the
        configuration has no series.
        """

        def known(wants: Wants) -> Iterable[Recent]:
            return past(lambda tenant, *names: tenant in self._tenants and wants(tenant, *names))

        self._series.restore(counts, known, time.time())

    def configure(self, setup: ActiveConfig, exporter: Prometheus) -> None:
        """Apply other criteria, references and limits on series; for the thread of the sinks."""
        limits = replace(
            self._limits,
            max_series=exporter.max_series,
            max_series_total=exporter.max_series_total,
        )
        self.unknown_scenarios.configure(setup.references)
        self._series.configure(setup.evaluator, setup.references, limits, setup.drift)

    def configure_failed(self) -> None:
        """Show in the metrics that a reload failed."""
        self._series.configure_failed()
