"""When labels were last seen, versions first seen, and series last scored.

Stored with the counts, so that a restart neither forgets names nor hides that a series went silent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.labels import (
    OTHER,
    AgentVersion,
    Labels,
    LabelUse,
    TenantLabel,
)

VERSIONS = "version_first_seen"
"""First part of the keys of stored first uses."""


def first_seen_of(rows: Iterable[Row]) -> dict[AgentVersion, float]:
    """Unix time of the first use of each version, as it is stored."""
    times = {}
    for (_, *tenant, agent, version), state in rows:
        if state:
            times[AgentVersion(agent, version, *tenant)] = float(state[0])
    return times


class LastSeen:
    """The times of one sink. Only one thread at a time may call its methods."""

    def __init__(self, metrics: DurableMetrics, tenant: TenantLabel) -> None:
        self._tenant = tenant
        self._labels = metrics.stored_values(
            "labels_in_use", tenant.names("agent", "scenario", "agent_version")
        )
        self._versions = metrics.stored_values(VERSIONS, tenant.names("agent", "agent_version"))
        self._scores = metrics.stored_values("last_evaluation", tenant.names("agent", "scenario"))

    def __iter__(self) -> Iterator[LabelUse]:
        """All labels, in no particular order."""
        for stored in self._labels:
            *tenant, agent, scenario, version = stored.labels
            seen, weight = stored.numbers
            yield LabelUse(Labels(agent, version, scenario, *tenant), seen, int(weight))

    def see(self, labels: Labels, now: float, weight: int) -> None:
        """Record that the labels are in use, and the first use of their version."""
        self._labels.of(*self._label_values(labels)).put(now, weight)
        if labels.agent_version not in ("", OTHER):
            first = self._versions.of(*self._version_values(labels))
            if not first.numbers:
                first.put(now)

    def score(self, series: Series, now: float) -> None:
        """Record that the series had a score."""
        self._scores.of(*self._series_values(series)).put(now)

    def last_scores(self) -> dict[Series, float]:
        """Unix time of the last score of each series."""
        times = {}
        for stored in self._scores:
            *tenant, agent, scenario = stored.labels
            times[Series(agent, scenario, *tenant)] = stored.numbers[0]
        return times

    def first_seen(self) -> dict[AgentVersion, float]:
        """Unix time of the first use of each version."""
        times = {}
        for stored in self._versions:
            *tenant, agent, version = stored.labels
            times[AgentVersion(agent, version, *tenant)] = stored.numbers[0]
        return times

    def set_back(self, now: float) -> None:
        """The clock was ahead: later times count as `now`."""
        for family in (self._labels, self._versions, self._scores):
            for stored in family:
                if stored.numbers and stored.numbers[0] > now:
                    stored.put(now, *stored.numbers[1:])

    def keep(self, live: Collection[Labels], series: Iterable[Series]) -> None:
        """Forget all other labels and their versions, and the last scores of all other series."""
        self._labels.keep({self._label_values(labels) for labels in live})
        self._versions.keep({self._version_values(labels) for labels in live})
        self._scores.keep({self._series_values(one) for one in series})

    def _label_values(self, labels: Labels) -> tuple[str, ...]:
        values = labels.agent, labels.scenario, labels.agent_version
        return self._tenant.values(labels.tenant, *values)

    def _version_values(self, labels: Labels) -> tuple[str, ...]:
        return self._tenant.values(labels.tenant, labels.agent, labels.agent_version)

    def _series_values(self, series: Series) -> tuple[str, ...]:
        return self._tenant.values(series.tenant, series.agent, series.scenario)
