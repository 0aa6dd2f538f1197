"""The version of an agent that may have caused a change: the one that was first seen nearest to it.

Which version a score is from says less: a change of a tool or a model has no version, and an old
version may go on beside a new one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.core.drift.drift import Drift
from pathgauge.collector.sinks.prometheus.labels import AgentVersion

_NEAR_S = 6 * 3600
"""A version that was first seen so long before or after a change may have caused it."""


FirstSeen = Mapping[tuple[str, str], Mapping[str, float]]
"""Unix time of the first use of each version, by agent and tenant."""


def by_agent(first_seen: Mapping[AgentVersion, float]) -> FirstSeen:
    """The same times, so that a stream need not look at the versions of all agents."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for version, seen in first_seen.items():
        found.setdefault((version.agent, version.tenant), {})[version.version] = seen
    return found


def nearest_version(drift: Drift, first_seen: FirstSeen) -> str:
    """The version of the agent that was first seen nearest to the change; `""` without one. If a
    version is compared with the previous one, no other version is meant.
    """
    since = drift.since
    if since is None:
        return ""
    own = first_seen.get((drift.key.agent, drift.key.tenant), {})
    distances = {
        version: abs(seen - since)
        for version, seen in own.items()
        if drift.version in (None, version)
    }
    nearest = min(distances, key=distances.__getitem__, default="")
    return nearest if nearest and distances[nearest] <= _NEAR_S else ""
