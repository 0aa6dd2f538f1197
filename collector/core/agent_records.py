"""What the telemetry of each agent version has shown so far, such as spans of tool calls.

An invocation without any of it is then one in which it did not happen, and not one whose telemetry
lacks it. What is known is stored in the transaction of the results that follow from it, so it is
the same after a restart. Senders can invent agents, so it is bounded for each tenant: versions that
were not seen for longest are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.core.invocations.reading import RECORDS, Reading, Record
from pathgauge.collector.core.stored_series import Row
from pathgauge.scorers.types import Invocation

MAX_VERSIONS = 1_000
"""Agent versions of one tenant."""
NAME = "agent_records"
"""The first part of the names of rows in the store."""
_HOUR_S = 3600


class VersionKey(NamedTuple):
    """A version of an agent; `""` if the version is not known."""

    tenant: str
    agent: str
    version: str


class _Known(NamedTuple):
    hour: int
    """When the version was last seen: the hour of the running time. So that a busy version is
    stored once an hour.
    """
    records: frozenset[Record]


class AgentRecords:
    """For the pipeline thread; `shown` for any thread.

    Agents without a name are not known: many agents may have none.
    """

    def __init__(self, max_versions: int = MAX_VERSIONS) -> None:
        """`max_versions` of each tenant."""
        self._max_versions = max_versions
        self._tenants: dict[str, dict[VersionKey, _Known]] = {}
        self._changed: dict[VersionKey, None] = {}
        self._shown: dict[VersionKey, frozenset[Record]] = {}

    def learn(self, readings: Iterable[Reading], now: float) -> None:
        """Add what these invocations show; `now` is the running time in seconds."""
        hour = int(now // _HOUR_S)
        for reading in readings:
            key = _key(reading.invocation)
            if key is None or not reading.shown:
                continue
            versions = self._tenants.setdefault(key.tenant, {})
            before = versions.get(key)
            known = _Known(hour, reading.shown | (before.records if before else frozenset()))
            if known != before:
                versions[key] = known
                self._changed[key] = None
                self._forget(versions)

    def settled(self, reading: Reading) -> Invocation:
        """The invocation, with its doubts settled by what is known of its agent version."""
        key = _key(reading.invocation)
        known = self._known(key) if key is not None else None
        if known is None:
            return reading.invocation
        return reading.settled(known.records)

    def shown(self) -> Mapping[VersionKey, frozenset[Record]]:
        """What was known at the last commit."""
        return self._shown.copy()

    def pending(self) -> list[Row]:
        """All changes that are not committed, for the store."""
        return [
            Row((NAME, *key), None if known is None else _state(known))
            for key, known in ((key, self._known(key)) for key in self._changed)
        ]

    def commit(self) -> None:
        """Show what `pending` returned last."""
        for key in self._changed:
            self._show(key)
        self._changed.clear()

    def merge(self, rows: Iterable[Row]) -> None:
        """Add what another scorer has learned."""
        for (_, *names), state in rows:
            if not state:
                continue  # the other one has forgotten it, because it knows too many versions
            key, learned = VersionKey(*names), _restored(state)
            versions = self._tenants.setdefault(key.tenant, {})
            before = versions.get(key)
            if before is not None:
                hour = max(before.hour, learned.hour)
                learned = _Known(hour, learned.records | before.records)
            if learned != before:
                versions[key] = learned
                self._changed[key] = None
                self._forget(versions)

    def restore(self, rows: Iterable[Row]) -> None:
        """Continue from what an earlier process stored. Rows of other names are ignored."""
        for (name, *names), state in rows:
            if name == NAME and len(names) == len(VersionKey._fields) and state:
                key = VersionKey(*names)
                self._tenants.setdefault(key.tenant, {})[key] = _restored(state)
        for versions in self._tenants.values():
            self._forget(versions)
            for key in versions:
                self._show(key)

    def _known(self, key: VersionKey) -> _Known | None:
        return self._tenants.get(key.tenant, {}).get(key)

    def _show(self, key: VersionKey) -> None:
        known = self._known(key)
        if known is None:
            self._shown.pop(key, None)
        else:
            self._shown[key] = known.records

    def _forget(self, versions: dict[VersionKey, _Known]) -> None:
        """Forget a tenth of too many versions at once, because finding them takes a sort."""
        if len(versions) <= self._max_versions:
            return
        idle = sorted(versions, key=lambda key: (versions[key].hour, key))
        for key in idle[: len(versions) - self._max_versions + self._max_versions // 10]:
            del versions[key]
            self._changed[key] = None


def _key(invocation: Invocation) -> VersionKey | None:
    if not invocation.agent:
        return None
    version = invocation.agent_version or ""
    names = (label_value(name, MAX_NAME_BYTES) for name in (invocation.agent, version))
    return VersionKey(invocation.tenant, *names)


def _state(known: _Known) -> list[float]:
    return [known.hour, *(float(record in known.records) for record in RECORDS)]


def _restored(state: Iterable[float]) -> _Known:
    """Records that a later version added are not known yet."""
    hour, *shown = state
    pairs = zip(RECORDS, shown, strict=False)
    return _Known(int(hour), frozenset(record for record, is_shown in pairs if is_shown))
