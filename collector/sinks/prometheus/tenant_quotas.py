"""Limits how many keys are known: of each tenant, and of all tenants together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.quota import Quota
from pathgauge.collector.sinks.prometheus.tenant_shares import TenantShares

K = TypeVar("K")

RETIRE_ALL_S = 60.0
"""Interval between searches for idle keys of all tenants, which takes a while if they are many."""


class TenantQuotas(Generic[K]):
    """Keys of all tenants, with the time they were last seen."""

    def __init__(self, limits: LabelLimits, tenant_of: Callable[[K], str]) -> None:
        self._tenant_of = tenant_of
        self._quotas: dict[str, Quota[K]] = {}
        self._next_retire_all = 0.0
        self._limits = limits
        self._shares = TenantShares(limits.max_series_total, limits.tenants)

    def __contains__(self, key: K) -> bool:
        return key in self._quotas.get(self._tenant_of(key), ())

    def admit(self, key: K, now: float) -> bool:
        """Refresh or add a key; `False` if there is no room."""
        return self._quota(self._tenant_of(key)).touch(key, now) or self._add(key, now)

    def make_room(self, key: K, now: float, idle_s: float) -> bool:
        """Remove keys that were not seen for so long, to add `key`; `False` if there are none."""
        if self._retire(self._tenant_of(key), now - idle_s):
            return True
        if now < self._next_retire_all:
            return False
        self._next_retire_all = now + RETIRE_ALL_S
        return self.retire(now - idle_s)

    def configure(self, limits: LabelLimits) -> None:
        """Apply other limits. If they are lower, the keys that were seen last are kept."""
        seen = {key: seen for quota in self._quotas.values() for key, seen, _ in quota.items()}
        self._limits = limits
        self._quotas = {}
        self._shares = TenantShares(limits.max_series_total, limits.tenants)
        self.restore(seen.items())

    def restore(self, seen: Iterable[tuple[K, float]]) -> None:
        """Add the keys of an earlier process, with the time they were last seen."""
        for key, last in sorted(seen, key=lambda item: -item[1]):
            self._add(key, last)
        for quota in self._quotas.values():
            quota.sort()

    def retire(self, before: float) -> bool:
        """Remove the keys that were last seen earlier than `before`; `False` if there are none."""
        return any([self._retire(tenant, before) for tenant in self._quotas])

    def _add(self, key: K, now: float) -> bool:
        tenant = self._tenant_of(key)
        quota = self._quota(tenant)
        if not (quota.has_room() and self._shares.has_room(tenant, 1)):
            return False
        quota.add(key, now)
        self._shares.use(tenant, len(quota))
        return True

    def _retire(self, tenant: str, before: float) -> bool:
        quota = self._quotas[tenant]
        retired = bool(quota.retire(before))
        self._shares.use(tenant, len(quota))
        return retired

    def _quota(self, tenant: str) -> Quota[K]:
        quota = self._quotas.get(tenant)
        if quota is None:
            quota = self._quotas[tenant] = Quota(self._limits.max_series)
        return quota
