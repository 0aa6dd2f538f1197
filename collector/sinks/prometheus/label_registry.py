"""Bounds the label values of the Prometheus sink.

Scenarios come from the references. Agents and versions come from spans, so a sender can invent any
number of them. So the label sets of each tenant are limited, and those of all tenants together. A
name that does not fit becomes `__other__` and is counted. Known names keep their place until they
have been idle for `idle_s`, so new names cannot push them out. Only versions give way sooner,
because people want to see the latest deployment.

Of the room for all tenants, up to half is set aside for labels of the last resort: those of a
tenant whose other parts are all `__other__`. The rest is divided by `TenantShares`. When even the
last resort has no room, the tenant becomes `__other__` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from pathgauge.collector.core.counters import Counter
from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.sinks.prometheus.label_limits import (
    AGENT_VERSION_WEIGHT,
    LabelLimits,
    Limit,
)
from pathgauge.collector.sinks.prometheus.labels import OTHER, Labels, LabelUse
from pathgauge.collector.sinks.prometheus.tenant_labels import TenantLabels
from pathgauge.collector.sinks.prometheus.tenant_shares import TenantShares

SWEEP_S = 60.0
"""Interval between searches for idle names."""
_WITHOUT_LAST_RESORT = ("", OTHER)
"""Tenants after which there is no other to resort to: the only one, and the one that is shared."""


class LabelRegistry:
    """All labels in use. Only one thread at a time may call its methods."""

    def __init__(self, limits: LabelLimits, overflow: Counter | None = None) -> None:
        """`overflow` counts how often a limit turned a label into `__other__`."""
        self._limits = limits
        self._scenarios: frozenset[str] = frozenset()
        self._criteria: Callable[[str], int] = lambda _: 1
        self._metrics = 1
        self._start_empty()
        self._next_sweep = -math.inf
        self._has_forgotten = False
        self.overflow = overflow or InternalTelemetry().series_overflow
        for limit in ("agents", "versions", "series", "total"):
            self.overflow.add(limit, n=0)

    def __iter__(self) -> Iterator[Labels]:
        for tenant in self._tenants.values():
            yield from tenant

    def configure(
        self,
        scenarios: Iterable[str],
        criteria: Callable[[str], int] = lambda _: 1,
        metrics: int = 1,
        limits: LabelLimits | None = None,
    ) -> None:
        """Replace the known scenarios; all others are `__other__`. `criteria` is the number of
        criteria of a scenario, `metrics` that of all names of criteria, `limits` are new limits.

        If the labels in use need more room now, or have less, those that were seen last are kept;
        the caller drops the series of the others.
        """
        uses = [use for tenant in self._tenants.values() for use in tenant.uses()]
        self._scenarios = frozenset(map(label_value, scenarios))
        self._criteria, self._metrics = criteria, metrics
        self._limits = limits or self._limits
        self._start_empty()
        self._add_again(uses)

    def scenario(self, scenario: str) -> str:
        """The label value of a scenario id."""
        scenario = label_value(scenario)
        return scenario if not scenario or scenario in self._scenarios else OTHER

    def named(self, names: Labels) -> Labels:
        """The labels for `names` as senders gave them, if there is room for them."""
        return Labels(
            label_value(names.agent, MAX_NAME_BYTES),
            label_value(names.agent_version, MAX_NAME_BYTES),
            self.scenario(names.scenario),
            names.tenant,
        )

    def admit(self, names: Labels, now: float, weight: int = 1) -> Labels:
        """The labels for `names` as senders gave them: every part is known, empty, or `__other__`.

        `weight` is the number of series of one metric.
        """
        labels = self.named(names)
        if labels.agent == OTHER and labels.agent_version:
            labels = labels._replace(agent_version=OTHER)
        exceeded: set[Limit] = set()
        while (limit := self._add(labels, now, weight)) is not None:
            if not self._make_room(labels, now, limit):
                exceeded.add(limit)
                labels = _coarser(labels, limit)
        for limit in exceeded:
            self.overflow.add(limit)
        return labels

    def restore(self, uses: Iterable[LabelUse], now: float) -> None:
        """Take back the labels of an earlier process. If the limits are lower now, the labels that
        were seen last are kept.
        """
        self._add_again(use._replace(seen=min(use.seen, now)) for use in uses)

    def set_back(self, now: float) -> None:
        """The clock was ahead: what was seen after `now` was seen now. Otherwise no name would be
        idle before that time has come.
        """
        uses = [use for tenant in self._tenants.values() for use in tenant.uses()]
        self._start_empty()
        self.restore(uses, now)
        self._next_sweep = -math.inf

    def sweep(self, now: float) -> bool | None:
        """Forget idle names, once in `SWEEP_S`; `None` if it is not yet time. Returns whether any
        were forgotten since the last time: then the caller drops the series of labels that are not
        in use.
        """
        if now < self._next_sweep:
            return None
        self._next_sweep = now + SWEEP_S
        for name, tenant in self._tenants.items():
            if tenant.make_room(now):
                self._account(name, tenant)
                self._has_forgotten = True
        has_forgotten, self._has_forgotten = self._has_forgotten, False
        return has_forgotten

    def _start_empty(self) -> None:
        limits = self._limits
        last_resort = self._metrics + AGENT_VERSION_WEIGHT
        wanted = last_resort * (len(limits.tenants or {""}) + 1)
        set_aside = max(last_resort, min(wanted, limits.max_series_total // 2))
        self._max_last_resorts = set_aside // last_resort - 1  # without that of all tenants
        room = max(0, limits.max_series_total - set_aside)
        self._shares = TenantShares(room, limits.tenants, last_resort)
        self._last_resorts: set[str] = set()
        """The tenants with labels of the last resort of their own."""
        self._tenants: dict[str, TenantLabels] = {}

    def _add_again(self, uses: Iterable[LabelUse]) -> None:
        for use in sorted(uses, key=lambda use: (use.labels.is_overflow, -use.seen)):
            self._add(*use)
        for tenant in self._tenants.values():
            tenant.sort()

    def _add(self, labels: Labels, now: float, weight: int) -> Limit | None:
        """Add or refresh labels, without making room; returns the limit that refuses them."""
        tenant = self._tenant(labels.tenant)
        if tenant.touch(labels, now):
            return None
        weight = max(weight, self._criteria(labels.scenario))
        limit = tenant.exceeded(labels, weight)
        if limit is None and not self._total_has_room(tenant, labels, weight):
            limit = "total"
        if limit is None:
            tenant.add(labels, now, weight)
            self._account(labels.tenant, tenant)
        return limit

    def _total_has_room(self, tenant: TenantLabels, labels: Labels, weight: int) -> bool:
        if not labels.is_last_resort:
            return self._shares.has_room(labels.tenant, tenant.growth(labels, weight))
        if labels.tenant in _WITHOUT_LAST_RESORT:
            return True
        return len(self._last_resorts) < self._max_last_resorts

    def _make_room(self, labels: Labels, now: float, limit: Limit) -> bool:
        tenant = self._tenant(labels.tenant)
        made = tenant.make_room_for(labels, now, limit)
        if made:
            self._account(labels.tenant, tenant)
            self._has_forgotten = True
        return made

    def _account(self, name: str, tenant: TenantLabels) -> None:
        self._shares.use(name, tenant.size)
        last_resort = Labels(OTHER, OTHER, OTHER, name)
        if last_resort in tenant and name not in _WITHOUT_LAST_RESORT:
            self._last_resorts.add(name)
        else:
            self._last_resorts.discard(name)

    def _tenant(self, tenant: str) -> TenantLabels:
        known = self._tenants.get(tenant)
        if known is None:
            known = self._tenants[tenant] = TenantLabels(self._limits, self._metrics)
        return known


def _coarser(labels: Labels, limit: Limit) -> Labels:
    """The labels to try when `limit` refuses these."""
    if limit == "agents":
        version = OTHER if labels.agent_version else ""
        return labels._replace(agent=OTHER, agent_version=version)
    if limit == "versions" or labels.agent_version != OTHER:
        return labels._replace(agent_version=OTHER)
    if labels.scenario != OTHER:  # goes after the version: thresholds and alerts depend on it
        return labels._replace(scenario=OTHER)
    if labels.agent != OTHER:
        return labels._replace(agent=OTHER)
    return labels._replace(tenant=OTHER)
