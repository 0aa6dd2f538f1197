"""Label values for the series of a sink: names that senders chose come in, bounded `Labels` go out.

Scenarios come from the references. Agents and versions come from spans, so any sender may invent them without end. Hence three
limits: agents, versions of an agent, and series in all. What finds no room becomes `__other__` and is counted. Whoever was there
first keeps its place until it has been silent for `idle_s`, so that a flood of new names cannot push out what is being watched;
only a version yields its place sooner, as the newest deployment is the one that people look for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from collector.telemetry import Counter
from collector.windows import Series

OTHER = "__other__"
MAX_LENGTH = 128
"""Longer label values are cut, in characters."""
SWEEP_S = 60.0
"""How often idle names are looked for."""
YIELD_AFTER_S = 600.0
"""A version that was silent for so long gives way to a new one of its agent when there is no room."""

_FREE = ("", OTHER)
"""Values that take no room."""


class Labels(NamedTuple):
    """What series are told apart by, beside the metric; `""` stands for what is not known."""

    agent: str
    agent_version: str
    scenario: str

    @property
    def series(self) -> Series:
        """The part that outlives a version."""
        return Series(self.agent, self.scenario)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much room there is for names that senders choose."""

    max_agents: int = 100
    max_versions: int = 10
    """Of each agent."""
    max_series: int = 2000
    """Label sets of one metric: each combination of agent, version and scenario takes as many as it has criteria."""
    idle_s: float = 86_400
    """Names that nobody brought for so long are forgotten, with their series."""


def label_value(value: str) -> str:
    """Cut to length; a lone surrogate, which UTF-8 cannot hold, would spoil the whole exposition."""
    return value[:MAX_LENGTH].encode("utf-8", "replace").decode("utf-8")


K = TypeVar("K")


class LabelRegistry:
    """All labels in use. Not safe for use from several threads at once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._scenarios: frozenset[str] = frozenset()
        self._agents: _Room[str] = _Room(limits.max_agents, limits.idle_s)
        self._versions: dict[str, _Room[str]] = {}
        self._combinations: _Room[Labels] = _Room(limits.max_series, limits.idle_s)
        self._live: dict[Labels, None] = {}
        self._next_sweep = -math.inf
        self.overflow = Counter("series_overflow", f"How often a label became {OTHER}, by the limit that was reached.", "limit")
        for limit in ("agents", "versions", "series"):
            self.overflow.add(limit, n=0)

    def __iter__(self) -> Iterator[Labels]:
        return iter(self._live)

    def configure(self, scenarios: Iterable[str]) -> None:
        """From now on these are the known scenarios; all others are `__other__`."""
        self._scenarios = frozenset(map(label_value, scenarios))

    def admit(self, names: Labels, now: float, weight: int = 1) -> Labels:
        """The labels for `names` as senders gave them: every part is known, empty, or `__other__`.

        `weight` is how many label sets of one metric they will take.
        """
        agent = self._agent(label_value(names.agent), now)
        labels = Labels(agent, self._version(agent, label_value(names.agent_version), now), self.scenario(names.scenario))
        if not self._combinations.admit(labels, now, weight):
            self.overflow.add("series")
            # Versions go first: a scenario is what thresholds and alerts hang on.
            labels = labels._replace(agent_version=OTHER)
            if not self._combinations.admit(labels, now, weight):
                labels = labels._replace(scenario=OTHER)
        self._live[labels] = None
        return labels

    def retire(self, now: float) -> list[Labels]:
        """Forget what was silent for too long, and return the labels whose series should go. Looks once in `SWEEP_S`."""
        if now < self._next_sweep:
            return []
        self._next_sweep = now + SWEEP_S
        rooms: list[_Room[str] | _Room[Labels]] = [self._agents, self._combinations, *self._versions.values()]
        for room in rooms:
            room.retire(now - self._limits.idle_s)
        gone = [labels for labels in self._live if not self._holds(labels)]
        for labels in gone:
            del self._live[labels]
            self._combinations.discard(labels)
        self._versions = {agent: versions for agent, versions in self._versions.items() if len(versions)}
        return gone

    def _agent(self, agent: str, now: float) -> str:
        if agent in _FREE or self._agents.admit(agent, now):
            return agent
        self.overflow.add("agents")
        return OTHER

    def _version(self, agent: str, version: str, now: float) -> str:
        if version in _FREE:
            return version
        if agent == OTHER:
            return OTHER
        versions = self._versions.setdefault(agent, _Room(self._limits.max_versions, YIELD_AFTER_S))
        if versions.admit(version, now):
            return version
        self.overflow.add("versions")
        return OTHER

    def scenario(self, scenario: str) -> str:
        """The label of a scenario as a sender or a reference named it."""
        scenario = label_value(scenario)
        return scenario if not scenario or scenario in self._scenarios else OTHER

    def _holds(self, labels: Labels) -> bool:
        agent, version, scenario = labels
        if agent not in _FREE and agent not in self._agents:
            return False
        if version not in _FREE and version not in self._versions.get(agent, ()):
            return False
        return labels in self._combinations or version == scenario == OTHER


class _Room(Generic[K]):
    """Keys with a weight and the time they were last seen, the longest silent first."""

    def __init__(self, capacity: int, yield_after_s: float) -> None:
        self._free = capacity
        self._yield_after_s = yield_after_s
        self._seen: dict[K, tuple[float, int]] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def admit(self, key: K, now: float, weight: int = 1) -> bool:
        """Note that `key` was seen; `False` when it is new and finds no room, even after those that must yield have left."""
        known = self._seen.pop(key, None)
        if known is not None:
            self._seen[key] = now, known[1]
            return True
        if self._free < weight:
            self.retire(now - self._yield_after_s)
        if self._free < weight:
            return False
        self._free -= weight
        self._seen[key] = now, weight
        return True

    def retire(self, before: float) -> None:
        """Forget the keys that were last seen earlier than `before`."""
        while self._seen:
            key, (seen, _) = next(iter(self._seen.items()))
            if seen >= before:
                break
            self.discard(key)

    def discard(self, key: K) -> None:
        """Forget `key`, if it is there."""
        _, weight = self._seen.pop(key, (0.0, 0))
        self._free += weight
