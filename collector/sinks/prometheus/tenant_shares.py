"""Divides room among tenants, so that none can use up all of it before the others arrive."""

from __future__ import annotations

from collections.abc import Collection


class TenantShares:
    """Half of the room is divided among the tenants in equal shares. The other half is for the
    tenants that come first.
    """

    def __init__(self, capacity: int, tenants: Collection[str], min_share: int) -> None:
        """Shares below `min_share` would be useless: then all room is for those that come first."""
        share = capacity // 2 // max(1, len(tenants))
        self._share = share if share >= min_share else 0
        self._tenants = frozenset(tenants)
        self._free = capacity - self._share * len(self._tenants)
        self._used: dict[str, int] = {}

    def has_room(self, tenant: str, more: int) -> bool:
        """Whether a tenant can use so much more."""
        used = self._used.get(tenant, 0)
        return self._beyond(tenant, used + more) - self._beyond(tenant, used) <= self._free

    def use(self, tenant: str, used: int) -> None:
        """Record how much a tenant uses now."""
        self._free += self._beyond(tenant, self._used.get(tenant, 0)) - self._beyond(tenant, used)
        self._used[tenant] = used

    def _beyond(self, tenant: str, used: int) -> int:
        """How much of this is beyond the tenant's share."""
        return max(0, used - self._share) if tenant in self._tenants else used
