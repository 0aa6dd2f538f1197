"""Label values for the series of a sink: names that senders chose come in, bounded `Labels` go out.

Scenarios come from the references. Agents and versions come from spans, so any sender may invent
them without end. Hence three limits: agents, versions of an agent, and series in all. What finds no
room becomes `__other__` and is counted. Whoever was there first keeps its place until it has been
silent for `idle_s`, so that a flood of new names cannot push out what is being watched; only a
version yields its place sooner, as the newest deployment is the one that people look for. Every
tenant has limits of its own, so that none can take the room of another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pathgauge.collector.core.evaluations.windows import Series
from pathgauge.collector.core.internal_telemetry import Counter, InternalTelemetry
from pathgauge.collector.sinks.prometheus.label_slots import Quota

OTHER = "__other__"
SCENARIO_BYTES = 128
"""Longer scenario ids are cut. They come from references."""
NAME_BYTES = 64
"""Longer names of agents and versions are cut. They come from senders."""
SWEEP_S = 60.0
"""How often idle names are looked for."""
YIELD_AFTER_S = 600.0
"""A version that was silent for so long gives way to a new one of its agent when there is no room.
"""

_FREE = ("", OTHER)
"""Values that take no room."""


class Labels(NamedTuple):
    """What series are told apart by, beside the metric; `""` stands for what is not known, and for
    the only tenant.
    """

    agent: str
    agent_version: str
    scenario: str
    tenant: str = ""

    @property
    def series(self) -> Series:
        """The part that outlives a version."""
        return Series(self.agent, self.scenario, self.tenant)


class AgentVersion(NamedTuple):
    """A version of an agent."""

    agent: str
    version: str
    tenant: str = ""


class Use(NamedTuple):
    """Labels, when they were last seen in Unix seconds, and how many label sets of one metric they
    take.
    """

    labels: Labels
    seen: float
    weight: int


@dataclass(frozen=True, slots=True)
class TenantLabel:
    """The label that says whose a series is; `shown` when there are several tenants."""

    shown: bool = False

    def of(self, tenant: str) -> str:
        """The tenant that labels and series are to name."""
        return tenant if self.shown else ""

    def names(self, *names: str) -> tuple[str, ...]:
        """These names of labels, after that of the tenant if it is shown."""
        return ("tenant", *names) if self.shown else names

    def values(self, tenant: str, *values: str) -> tuple[str, ...]:
        """The label values for `names`."""
        return (tenant, *values) if self.shown else values


@dataclass(frozen=True, slots=True)
class LabelLimits:
    """How much room each tenant has for names that its senders choose."""

    max_agents: int = 100
    max_versions: int = 10
    """Of each agent."""
    max_series: int = 1500
    """Label sets of one metric: each combination of agent, version and scenario takes as many as it
    has criteria.
    """
    idle_s: float = 86_400
    """Names that nobody brought for so long are forgotten, with their series."""
    max_agent_versions: int = 150
    """Of all agents together: each has histograms of its own, which take as many lines as three
    label sets.
    """


def label_value(value: str, max_bytes: int = SCENARIO_BYTES) -> str:
    """Cut to length; a lone surrogate, which UTF-8 cannot hold, would spoil the whole exposition."""
    return value[:max_bytes].encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


class LabelRegistry:
    """All labels in use. Not safe for use from several threads at once."""

    def __init__(self, limits: LabelLimits, overflow: Counter | None = None) -> None:
        """`overflow` counts how often a label became `__other__`, by limit."""
        self._limits = limits
        self._scenarios: frozenset[str] = frozenset()
        self._tenants: dict[str, _Quotas] = {}
        self._live: dict[Labels, None] = {}
        self._next_sweep = -math.inf
        self.overflow = InternalTelemetry().series_overflow if overflow is None else overflow
        for limit in ("agents", "versions", "series"):
            self.overflow.add(limit, n=0)

    def __iter__(self) -> Iterator[Labels]:
        return iter(self._live)

    def configure(self, scenarios: Iterable[str]) -> None:
        """From now on these are the known scenarios; all others are `__other__`."""
        self._scenarios = frozenset(map(label_value, scenarios))

    def admit(self, names: Labels, now: float, weight: int = 1) -> Labels:
        """The labels for `names` as senders gave them: every part is known, empty, or `__other__`.

        The tenant is taken as it is. `weight` is how many label sets of one metric they will take.
        """
        rooms = self._rooms(names.tenant)
        agent = self._agent(rooms, label_value(names.agent, NAME_BYTES), now)
        version = self._version(rooms, agent, label_value(names.agent_version, NAME_BYTES), now)
        labels = Labels(agent, version, self.scenario(names.scenario), names.tenant)
        if not rooms.combinations.admit(labels, now, weight):
            self.overflow.add("series")
            # Versions go first: a scenario is what thresholds and alerts hang on.
            labels = labels._replace(agent_version=OTHER)
            if not rooms.combinations.admit(labels, now, weight):
                labels = labels._replace(scenario=OTHER)
        self._live[labels] = None
        return labels

    def restore(self, uses: Iterable[Use], now: float) -> None:
        """Take back the labels that an earlier process admitted. Where there is too little room by
        now, those seen last have it.
        """
        for labels, seen, weight in sorted(
            uses, key=lambda use: (_holds_overflow(use.labels), -use.seen)
        ):
            if self._rooms(labels.tenant).restore(labels, min(seen, now), weight):
                self._live[labels] = None
        for rooms in self._tenants.values():
            rooms.sort()

    def retire(self, now: float) -> list[Labels]:
        """Forget what was silent for too long, and return the labels whose series should go. Looks
        once in `SWEEP_S`.
        """
        if now < self._next_sweep:
            return []
        self._next_sweep = now + SWEEP_S
        for rooms in self._tenants.values():
            rooms.retire(now - self._limits.idle_s)
        gone = [labels for labels in self._live if not self._rooms(labels.tenant).hold(labels)]
        for labels in gone:
            del self._live[labels]
            self._rooms(labels.tenant).combinations.discard(labels)
        return gone

    def scenario(self, scenario: str) -> str:
        """The label of a scenario as a sender or a reference named it."""
        scenario = label_value(scenario)
        return scenario if not scenario or scenario in self._scenarios else OTHER

    def _rooms(self, tenant: str) -> _Quotas:
        rooms = self._tenants.get(tenant)
        if rooms is None:
            rooms = self._tenants[tenant] = _Quotas(self._limits)
        return rooms

    def _agent(self, rooms: _Quotas, agent: str, now: float) -> str:
        if agent in _FREE or rooms.agents.admit(agent, now):
            return agent
        self.overflow.add("agents")
        return OTHER

    def _version(self, rooms: _Quotas, agent: str, version: str, now: float) -> str:
        if version in _FREE:
            return version
        if agent == OTHER:
            return OTHER
        if rooms.versions_of(agent).admit(version, now) and rooms.agent_versions.admit(
            (agent, version), now
        ):
            return version
        self.overflow.add("versions")
        return OTHER


def _holds_overflow(labels: Labels) -> bool:
    return labels.agent_version == labels.scenario == OTHER


class _Quotas:
    """The names of one tenant."""

    def __init__(self, limits: LabelLimits) -> None:
        self._limits = limits
        self.agents: Quota[str] = Quota(limits.max_agents, limits.idle_s)
        self.combinations: Quota[Labels] = Quota(limits.max_series, limits.idle_s)
        self.agent_versions: Quota[tuple[str, str]] = Quota(
            limits.max_agent_versions, YIELD_AFTER_S
        )
        self._versions: dict[str, Quota[str]] = {}

    def versions_of(self, agent: str) -> Quota[str]:
        """The room of one agent."""
        versions = self._versions.get(agent)
        if versions is None:
            versions = self._versions[agent] = Quota(self._limits.max_versions, YIELD_AFTER_S)
        return versions

    def hold(self, labels: Labels) -> bool:
        """Whether every part of the labels still has its place."""
        agent, version, *_ = labels
        if agent not in _FREE and agent not in self.agents:
            return False
        if version not in _FREE and (
            version not in self._versions.get(agent, ())
            or (agent, version) not in self.agent_versions
        ):
            return False
        return labels in self.combinations or _holds_overflow(labels)

    def restore(self, labels: Labels, seen: float, weight: int) -> bool:
        """Give the labels their places again; `False` when one is not free."""
        agent, version, *_ = labels
        return (
            (agent in _FREE or self.agents.restore(agent, seen))
            and (
                version in _FREE
                or (
                    self.versions_of(agent).restore(version, seen)
                    and self.agent_versions.restore((agent, version), seen)
                )
            )
            and (self.combinations.restore(labels, seen, weight) or _holds_overflow(labels))
        )

    def sort(self) -> None:
        """Bring what was restored into its order."""
        for room in self._all():
            room.sort()

    def retire(self, before: float) -> None:
        """Forget what was last seen earlier than `before`."""
        for room in self._all():
            room.retire(before)
        self._versions = {
            agent: versions for agent, versions in self._versions.items() if len(versions)
        }

    def _all(self) -> list[Quota[str] | Quota[Labels] | Quota[tuple[str, str]]]:
        return [self.agents, self.agent_versions, self.combinations, *self._versions.values()]
