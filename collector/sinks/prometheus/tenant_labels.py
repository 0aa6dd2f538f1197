"""The labels of one tenant of the Prometheus sink."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from pathgauge.collector.sinks.prometheus.label_limits import (
    AGENT_VERSION_WEIGHT,
    LabelLimits,
    Limit,
)
from pathgauge.collector.sinks.prometheus.labels import UNLIMITED, Labels, LabelUse
from pathgauge.collector.sinks.prometheus.quota import Quota

VERSION_IDLE_S = 600.0
"""A version that has been idle for so long gives way to a new one if there is no room."""
SEARCH_S = 60.0
"""Interval between searches for idle versions when an agent has no room for series: each takes time
in proportion to the labels.
"""


class TenantLabels:
    """The labels in use, longest idle first."""

    def __init__(self, limits: LabelLimits, metrics: int) -> None:
        """`metrics` is the number of series of one label set that mixes several scenarios."""
        self._limits = limits
        self._metrics = metrics
        self._known: Quota[Labels] = Quota(limits.max_series)
        self._start_index()

    def __contains__(self, labels: object) -> bool:
        return labels in self._known

    def __iter__(self) -> Iterator[Labels]:
        return iter(self._known)

    def uses(self) -> Iterator[LabelUse]:
        """The labels with the time when they were last seen, and their weight."""
        return (LabelUse(labels, seen, weight) for labels, seen, weight in self._known.items())

    @property
    def size(self) -> int:
        """How much of `max_series_total` the labels take, without those of the last resort."""
        overflow = self._metrics * self._overflow
        return self._known.used + overflow + AGENT_VERSION_WEIGHT * len(self._agent_versions)

    def growth(self, labels: Labels, weight: int) -> int:
        """How much `size` grows with these labels."""
        is_new = labels[:2] not in self._agent_versions
        return (self._metrics if labels.is_overflow else weight) + AGENT_VERSION_WEIGHT * is_new

    def touch(self, labels: Labels, now: float) -> bool:
        """Update when the labels were last seen; `False` if they are unknown."""
        return self._known.touch(labels, now)

    def exceeded(self, labels: Labels, weight: int) -> Limit | None:
        """The limit of the tenant that refuses new labels."""
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
        fits = labels.is_overflow or self._known.has_room(weight)
        return None if fits else "series"

    def add(self, labels: Labels, now: float, weight: int) -> None:
        """Add new labels. Call `sort` if they were not added in the order of `now`."""
        self._known.add(labels, now, 0 if labels.is_overflow else weight)
        self._index(labels)

    def sort(self) -> None:
        """Restore the order by time."""
        self._known.sort()

    def make_room(self, now: float) -> bool:
        """Forget idle labels; `False` if there are none."""
        return self._forget(self._known.idle(now - self._limits.idle_s))

    def make_room_for(self, labels: Labels, now: float, limit: Limit) -> bool:
        """Forget idle labels, and idle versions that give way to these labels, which `limit`
        refused; `False` if there are none.
        """
        idle = self._known.idle(now - self._limits.idle_s)
        if limit == "versions":
            full = len(self._versions.get(labels.agent, ())) >= self._limits.max_versions
            idle += self._idle_versions(now - VERSION_IDLE_S, labels.agent if full else None)
        elif limit != "agents" and now >= self._next_search.get(labels.agent, -math.inf):
            idle += self._other_idle_versions(labels, now)
        return self._forget(idle)

    def _other_idle_versions(self, labels: Labels, now: float) -> list[Labels]:
        """The labels of the agent's idle versions, without those of this one."""
        if labels.agent not in self._versions:
            return []
        idle = self._idle_versions(now - VERSION_IDLE_S, labels.agent)
        others = [one for one in idle if one.agent_version != labels.agent_version]
        if not others:
            self._next_search[labels.agent] = now + SEARCH_S
        return others

    def _forget(self, idle: list[Labels]) -> bool:
        if idle:
            for labels in idle:
                self._known.discard(labels)
            self._start_index()
        return bool(idle)

    def _idle_versions(self, before: float, agent: str | None) -> list[Labels]:
        """The labels of versions that were last seen earlier than `before`, of one agent or all."""
        idle = self._known.idle(before)
        candidates = [
            labels
            for labels in idle
            if labels.agent_version not in UNLIMITED and agent in (None, labels.agent)
        ]
        if not candidates:
            return []
        in_use = {labels[:2] for labels in islice(self._known, len(idle), None)}
        return [labels for labels in candidates if labels[:2] not in in_use]

    def _start_index(self) -> None:
        self._versions: dict[str, set[str]] = {}
        """The limited versions of each agent."""
        self._next_search: dict[str, float] = {}
        """When to look again for idle versions of an agent."""
        self._agent_versions: set[tuple[str, ...]] = set()
        """Agents with their versions, except for the last resort."""
        self._overflow = 0
        """Number of label sets that need no room in `max_series`, except for the last resort."""
        for labels in self._known:
            self._index(labels)

    def _index(self, labels: Labels) -> None:
        versions = self._versions.setdefault(labels.agent, set())
        if labels.agent_version not in UNLIMITED:
            versions.add(labels.agent_version)
        if not labels.is_last_resort:
            self._agent_versions.add(labels[:2])
            self._overflow += labels.is_overflow
