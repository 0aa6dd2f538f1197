"""When labels were last seen, versions first seen, and when series last had a score: stored beside
the counts, so that a restart forgets neither names nor silence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pathgauge.collector.core.evaluations.windows import Series
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.labels import (
    OTHER,
    AgentVersion,
    Labels,
    TenantLabel,
    Use,
)


class LastSeen:
    """The labels and series of one sink. Only one thread at a time may call its methods."""

    def __init__(self, metrics: DurableMetrics, tenant: TenantLabel) -> None:
        self._tenant = tenant
        self._in_use = metrics.notes(
            "labels_in_use", tenant.names("agent", "scenario", "agent_version")
        )
        self._versions = metrics.notes("version_first_seen", tenant.names("agent", "agent_version"))
        self._scored = metrics.notes("last_evaluation", tenant.names("agent", "scenario"))

    def __iter__(self) -> Iterator[Use]:
        """All labels, in no particular order."""
        for note in self._in_use:
            *tenant, agent, scenario, version = note.labels
            seen, weight = note.numbers
            yield Use(Labels(agent, version, scenario, *tenant), seen, int(weight))

    def see(self, labels: Labels, now: float, weight: int) -> None:
        """Remember that the labels were in use, and since when their version."""
        self._in_use.of(
            *self._tenant.values(labels.tenant, labels.agent, labels.scenario, labels.agent_version)
        ).put(now, weight)
        if labels.agent_version not in ("", OTHER):
            first = self._versions.of(
                *self._tenant.values(labels.tenant, labels.agent, labels.agent_version)
            )
            if not first.numbers:
                first.put(now)

    def score(self, series: Series, now: float) -> None:
        """Remember that the series had a score."""
        self._scored.of(*self._tenant.values(series.tenant, series.agent, series.scenario)).put(now)

    def last_scores(self) -> dict[Series, float]:
        """When each series last had a score."""
        times = {}
        for note in self._scored:
            *tenant, agent, scenario = note.labels
            times[Series(agent, scenario, *tenant)] = note.numbers[0]
        return times

    def first_seen(self) -> dict[AgentVersion, float]:
        """When each version was first in use."""
        times = {}
        for note in self._versions:
            *tenant, agent, version = note.labels
            times[AgentVersion(agent, version, *tenant)] = note.numbers[0]
        return times

    def keep(self, live: Collection[Labels], series: Iterable[Series]) -> None:
        """Forget all other labels with their versions, and the last scores of all other series."""
        of = self._tenant.values
        self._in_use.keep(
            {
                of(labels.tenant, labels.agent, labels.scenario, labels.agent_version)
                for labels in live
            }
        )
        self._versions.keep(
            {of(labels.tenant, labels.agent, labels.agent_version) for labels in live}
        )
        self._scored.keep({of(one.tenant, one.agent, one.scenario) for one in series})
