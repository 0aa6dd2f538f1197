"""When labels were last seen and series last had a score: stored beside the counts, so that a restart forgets neither names nor silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from collector.sinks.labels import Labels, TenantLabel, Use
from collector.sinks.tallies import Tallies
from collector.windows import Series


class Presence:
    """The labels and series of one sink. Only one thread at a time may call its methods."""

    def __init__(self, tallies: Tallies, tenant: TenantLabel) -> None:
        self._tenant = tenant
        self._in_use = tallies.notes("labels_in_use", tenant.names("agent", "scenario", "agent_version"))
        self._scored = tallies.notes("last_evaluation", tenant.names("agent", "scenario"))

    def __iter__(self) -> Iterator[Use]:
        """All labels, in no particular order."""
        for note in self._in_use:
            *tenant, agent, scenario, version = note.labels
            seen, weight = note.numbers
            yield Use(Labels(agent, version, scenario, *tenant), seen, int(weight))

    def see(self, labels: Labels, now: float, weight: int) -> None:
        """Remember that the labels were in use."""
        self._in_use.of(*self._tenant.values(labels.tenant, labels.agent, labels.scenario, labels.agent_version)).put(now, weight)

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

    def keep(self, live: Iterable[Labels]) -> None:
        """Forget all other labels, and the series that are not among them."""
        kept = {self._tenant.values(labels.tenant, labels.agent, labels.scenario, labels.agent_version) for labels in live}
        self._in_use.keep(kept)
        self._scored.keep({values[:-1] for values in kept})
