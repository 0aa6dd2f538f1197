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


def nearest_version(drift: Drift, first_seen: Mapping[AgentVersion, float]) -> str:
    """The version of the agent that was first seen nearest to the change, or the one that is
    compared with the previous one; `""` without one. Times are in Unix seconds.
    """
    since = drift.since
    if drift.version or since is None:
        return drift.version or ""
    distances = {
        version.version: abs(seen - since)
        for version, seen in first_seen.items()
        if (version.agent, version.tenant) == (drift.key.agent, drift.key.tenant)
    }
    nearest = min(distances, key=distances.__getitem__, default="")
    return nearest if nearest and distances[nearest] <= _NEAR_S else ""
