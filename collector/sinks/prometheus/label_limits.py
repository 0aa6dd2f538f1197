"""The limits on label values of the Prometheus sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AGENT_VERSION_WEIGHT = 3
"""The histograms of one agent version have as many lines as so many label sets of a metric."""

Limit = Literal["agents", "versions", "series", "total"]
"""What has no room; values of the label `limit`."""


@dataclass(frozen=True, slots=True)
class LabelLimits:
    """`max_series_total` bounds the exposition, the other limits bound each tenant. The limits on
    names keep room in `max_series` for known agents when one sender invents names.
    """

    max_agents: int = 100
    max_versions: int = 10
    """Of each agent."""
    max_series: int = 1500
    """Series of one metric."""
    idle_s: float = 86_400
    """Names that were not seen for so long are forgotten, with their series."""
    max_agent_versions: int = 150
    """Of all agents together. Each version takes as much room as `AGENT_VERSION_WEIGHT` series."""
    max_series_total: int = 5000
    """Series of one metric, and the weight of agent versions, of all tenants together."""
    tenants: frozenset[str] = frozenset()
    """Label values of the configured tenants: each has a share of `max_series_total`."""
