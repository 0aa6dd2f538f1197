"""Label values of the Prometheus sink, and the types for its label sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pathgauge.collector.core.evaluations.series import Series

OTHER = "__other__"

OF_PLACE = frozenset({"tenant", "agent", "scenario", "agent_version"})
"""Names of labels whose series change together, as one invocation counts in all of them."""

UNLIMITED = {"", OTHER}
"""Agents and versions that are not limited."""


class Labels(NamedTuple):
    """The label values of series, except for the metric. `""` is unknown, or the only tenant."""

    agent: str
    agent_version: str
    scenario: str
    tenant: str = ""

    @property
    def series(self) -> Series:
        """The part that a new version does not change."""
        return Series(self.agent, self.scenario, self.tenant)

    @property
    def is_overflow(self) -> bool:
        """Whether these labels are the last resort of an agent when the limit of its tenant is
        reached. They need no room in it; there are as many of them as agents at most.
        """
        return self.agent_version == self.scenario == OTHER

    @property
    def is_last_resort(self) -> bool:
        """Whether these labels are the last resort of a tenant when the limit of all tenants is
        reached.
        """
        return self.is_overflow and self.agent == OTHER


class AgentVersion(NamedTuple):
    """A version of an agent."""

    agent: str
    version: str
    tenant: str = ""


class LabelUse(NamedTuple):
    """Labels, when they were last seen, and their weight."""

    labels: Labels
    seen: float
    """Unix time."""
    weight: int
    """Number of series of one metric that have these labels: one for each criterion."""


@dataclass(frozen=True, slots=True)
class TenantLabel:
    """The label `tenant`, which series have if several tenants are configured."""

    shown: bool = False

    def of(self, tenant: str) -> str:
        """The tenant as labels and series name it."""
        return tenant if self.shown else ""

    def names(self, *names: str) -> tuple[str, ...]:
        """Label names, with that of the tenant if it is shown."""
        return ("tenant", *names) if self.shown else names

    def values(self, tenant: str, *values: str) -> tuple[str, ...]:
        """The label values for `names`."""
        return (tenant, *values) if self.shown else values

    def place_values(self, labels: Labels, *further: str) -> tuple[str, ...]:
        """The values of tenant, agent, scenario and version, in this order, and further ones."""
        return self.values(
            labels.tenant, labels.agent, labels.scenario, labels.agent_version, *further
        )


def known_version(version: str) -> str | None:
    """A label value as a version; `None` if it stands for unknown or several versions."""
    return None if version in UNLIMITED else version
