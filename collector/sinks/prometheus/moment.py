"""The state of a sink at a scrape, and the gauges that each scrape writes again.

Counters and the gauges of scenarios are not among them: what did not change of those is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pathgauge.collector.core.drift.drift import Drift
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.agent_gauges import Shown, agent_info, agent_records
from pathgauge.collector.sinks.prometheus.aggregate_gauges import aggregate_gauges
from pathgauge.collector.sinks.prometheus.drift.gauges import drift_gauges
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.durable_family import Snapshot
from pathgauge.collector.sinks.prometheus.expected_scenarios import Expected, expectation_gauges
from pathgauge.collector.sinks.prometheus.exposition.gauge_family import GaugeFamily
from pathgauge.collector.sinks.prometheus.labels import AgentVersion, Labels, TenantLabel
from pathgauge.collector.sinks.prometheus.scrape_gauges import (
    Queue,
    first_seen_versions,
    judge_info,
    metric_info,
    queue_gauges,
)
from pathgauge.collector.sinks.prometheus.traffic.gauges import traffic_gauges


class Moment(NamedTuple):
    """The state of a sink, without the scores of its scenarios."""

    now: float
    """Unix time."""
    criteria: ActiveCriteria
    expected: Mapping[str, Expected]
    counts: Mapping[str, Snapshot]
    traffic: Sequence[TrafficStatus]
    streams: list[Drift]
    drift_limit: float | None
    """In days; `None`: no drift is detected."""
    versions: Mapping[AgentVersion, float]
    """When each version of an agent was first evaluated, in Unix seconds."""
    known: Sequence[Series]
    """The series in use, with scores or without."""
    live: Sequence[Labels]
    """The label sets of the agents, versions and scenarios in use."""
    dialects: Mapping[tuple[str, ...], str]
    """The dialect of the latest invocation of each agent, by the values of `tenant` and `agent`."""


class MomentGauges:
    """Makes these gauges."""

    def __init__(
        self,
        tenant: TenantLabel,
        min_samples: int,
        *,
        queues: Mapping[str, Queue],
        records: Callable[[], Shown],
        content_settings: Mapping[str, str],
    ) -> None:
        """The parameters are those of `PrometheusSink`."""
        self._tenant = tenant
        self._min_samples = min_samples
        self._queues = queues
        self._records = records
        self._content_settings = content_settings

    def families(
        self, moment: Moment, streams: Iterable[Explained], windows: Sequence[Window]
    ) -> Iterator[GaugeFamily]:
        """All of them. `streams` are those of the moment with their explanations, `windows` those
        of criteria that judge many scores together.
        """
        criteria, now, limit = moment.criteria, moment.now, moment.drift_limit
        tenant = self._tenant
        yield from aggregate_gauges(windows, criteria.aggregated, self._min_samples, tenant)
        yield from drift_gauges(streams, now, tenant, limit_days=limit)
        if limit is not None:
            yield from traffic_gauges(moment.traffic, now, tenant)
        yield metric_info(criteria)
        yield judge_info(criteria)
        yield from expectation_gauges(moment.expected, moment.known, tenant)
        yield first_seen_versions(moment.versions, tenant)
        yield agent_records(self._records(), moment.live, tenant)
        yield agent_info(moment.dialects, self._content_settings, tenant)
        yield from queue_gauges(self._queues)
