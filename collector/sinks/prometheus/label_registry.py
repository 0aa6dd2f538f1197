"""Bounds the label values of the Prometheus sink.

Scenarios come from the references. Agents and versions come from spans, so a sender can invent any
number of them. So the label sets of each tenant are limited. A name that does not fit becomes
`__other__` and is counted. Known names keep their place until they have been idle for `idle_s`, so
new names cannot push them out. Only versions give way sooner, because people want to see the latest
deployment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from pathgauge.collector.core.internal_telemetry import Counter, InternalTelemetry
from pathgauge.collector.sinks.prometheus.labels import (
    MAX_NAME_BYTES,
    OTHER,
    UNLIMITED,
    Labels,
    LabelUse,
    label_value,
)
from pathgauge.collector.sinks.prometheus.quota import Quota

SWEEP_S = 60.0
"""Interval between searches for idle names."""
VERSION_IDLE_S = 600.0
"""A version that has been idle for so long gives way to a new one if there is no room."""

Limit = Literal["agents", "versions", "series"]
"""What has no room; the values of the label `limit`."""


@dataclass(frozen=True, slots=True)
class LabelLimits:
    """Limits of each tenant. `max_series` bounds the exposition; the limits on names keep room in
    it for known agents when one sender invents names.
    """

    max_agents: int = 100
    max_versions: int = 10
    """Of each agent."""
    max_series: int = 1500
    """Series of one metric."""
    idle_s: float = 86_400
    """Names that were not seen for so long are forgotten, with their series."""
    max_agent_versions: int = 150
    """Of all agents together. Each version has histograms with as many lines as three series."""


class LabelRegistry:
    """All labels in use. Only one thread at a time may call its methods."""

    def __init__(self, limits: LabelLimits, overflow: Counter | None = None) -> None:
        """`overflow` counts how often a limit turned a label into `__other__`."""
        self._limits = limits
        self._scenarios: frozenset[str] = frozenset()
        self._tenants: dict[str, _TenantLabels] = {}
        self._next_sweep = -math.inf
        self.overflow = overflow or InternalTelemetry().series_overflow
        for limit in ("agents", "versions", "series"):
            self.overflow.add(limit, n=0)

    def __iter__(self) -> Iterator[Labels]:
        for tenant in self._tenants.values():
            yield from tenant.known

    def configure(self, scenarios: Iterable[str]) -> None:
        """Replace the known scenarios; all others are `__other__`."""
        self._scenarios = frozenset(map(label_value, scenarios))

    def scenario(self, scenario: str) -> str:
        """The label value of a scenario id."""
        scenario = label_value(scenario)
        return scenario if not scenario or scenario in self._scenarios else OTHER

    def admit(self, names: Labels, now: float, weight: int = 1) -> Labels:
        """The labels for `names` as senders gave them: every part is known, empty, or `__other__`.

        The tenant is not changed. `weight` is the number of series of one metric.
        """
        labels = Labels(
            label_value(names.agent, MAX_NAME_BYTES),
            label_value(names.agent_version, MAX_NAME_BYTES),
            self.scenario(names.scenario),
            names.tenant,
        )
        if labels.agent == OTHER and labels.agent_version:
            labels = labels._replace(agent_version=OTHER)
        tenant = self._tenant(names.tenant)
        exceeded: set[Limit] = set()
        while (limit := tenant.admit(labels, now, weight)) is not None:
            if not tenant.make_room(now, limit, labels.agent):
                exceeded.add(limit)
                labels = _coarser(labels, limit)
        for limit in exceeded:
            self.overflow.add(limit)
        return labels

    def restore(self, uses: Iterable[LabelUse], now: float) -> None:
        """Take back the labels of an earlier process. If the limits are lower now, the labels that
        were seen last are kept.
        """
        for use in sorted(uses, key=lambda use: (use.labels.is_overflow, -use.seen)):
            self._tenant(use.labels.tenant).admit(use.labels, min(use.seen, now), use.weight)
        for tenant in self._tenants.values():
            tenant.known.sort()

    def sweep(self, now: float) -> bool:
        """Forget idle names, once in `SWEEP_S`. If it returns `True`, the caller drops the series
        of labels that are not in use.
        """
        if now < self._next_sweep:
            return False
        self._next_sweep = now + SWEEP_S
        for tenant in self._tenants.values():
            tenant.make_room(now)
        return True

    def _tenant(self, tenant: str) -> _TenantLabels:
        known = self._tenants.get(tenant)
        if known is None:
            known = self._tenants[tenant] = _TenantLabels(self._limits)
        return known


class _TenantLabels:
    """The labels of one tenant."""

    def __init__(self, limits: LabelLimits) -> None:
        self._limits = limits
        self.known: Quota[Labels] = Quota(limits.max_series)
        self._versions: dict[str, set[str]] = {}
        """The versions of each agent in `known`, without those that are not limited."""

    def admit(self, labels: Labels, now: float, weight: int) -> Limit | None:
        """Add or refresh labels, without making room; returns the limit that refuses them."""
        if self.known.touch(labels, now):
            return None
        limit = self._exceeded(labels, weight)
        if limit is None:
            self.known.add(labels, now, 0 if labels.is_overflow else weight)
            self._index(labels)
        return limit

    def make_room(self, now: float, limit: Limit | None = None, agent: str = "") -> bool:
        """Forget idle labels, and idle versions if `limit` refused one of `agent`; `False` if there
        are none.
        """
        idle = self.known.idle(now - self._limits.idle_s)
        if limit == "versions":
            full = len(self._versions.get(agent, ())) >= self._limits.max_versions
            idle += self._idle_versions(now - VERSION_IDLE_S, agent if full else None)
        if idle:
            self._versions.clear()
            for labels in idle:
                self.known.discard(labels)
            for labels in self.known:
                self._index(labels)
        return bool(idle)

    def _exceeded(self, labels: Labels, weight: int) -> Limit | None:
        agent, version, *_ = labels
        limits, known = self._limits, self._versions
        versions = known.get(agent, ())
        is_new_agent = agent not in known and agent not in UNLIMITED
        if is_new_agent and len(known.keys() - UNLIMITED) >= limits.max_agents:
            return "agents"
        if version not in versions and version not in UNLIMITED:
            total = sum(map(len, known.values()))
            if len(versions) >= limits.max_versions or total >= limits.max_agent_versions:
                return "versions"
        fits = labels.is_overflow or self.known.has_room(weight)
        return None if fits else "series"

    def _idle_versions(self, before: float, agent: str | None) -> list[Labels]:
        """The labels of versions that were last seen earlier than `before`, of one agent or all."""
        idle = self.known.idle(before)
        candidates = [
            labels
            for labels in idle
            if labels.agent_version not in UNLIMITED and agent in (None, labels.agent)
        ]
        if not candidates:
            return []
        in_use = {labels[:2] for labels in islice(self.known, len(idle), None)}
        return [labels for labels in candidates if labels[:2] not in in_use]

    def _index(self, labels: Labels) -> None:
        versions = self._versions.setdefault(labels.agent, set())
        if labels.agent_version not in UNLIMITED:
            versions.add(labels.agent_version)


def _coarser(labels: Labels, limit: Limit) -> Labels:
    """The labels to try when `limit` refuses these."""
    match limit:
        case "agents":
            version = OTHER if labels.agent_version else ""
            return labels._replace(agent=OTHER, agent_version=version)
        case "series" if labels.agent_version == OTHER:
            return labels._replace(scenario=OTHER)
        case _:  # the scenario goes last: thresholds and alerts depend on it
            return labels._replace(agent_version=OTHER)
