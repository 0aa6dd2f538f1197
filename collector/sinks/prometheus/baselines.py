"""The past scores that recent ones are compared with: those of earlier versions, and those of a
week ago.

For each agent, scenario and metric, running statistics are kept of each version and of each UTC day
of the last week. They are stored with the counts, so they survive a restart. Like the counters they
contain each evaluation once, at revision 0.

A fingerprint identifies what the scores were measured with: the scorer, its options, and the
reference if the scorer needs one. When it changes, the statistics start again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pathgauge.collector.core.evaluations.statistics import RunningStatistics, plus
from pathgauge.collector.core.evaluations.windows import Series
from pathgauge.collector.core.internal_telemetry import Counter
from pathgauge.collector.sinks.prometheus.durable_family import Family
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.durable_series import StoredValues
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.labels import TenantLabel
from pathgauge.collector.sinks.prometheus.tenant_quotas import TenantQuotas

DAY_S = 86_400
DAYS = 7
"""Distance to the same day of the week before."""
MAX_IDLE_S = (DAYS + 1) * DAY_S
"""Metrics without a score for so long are forgotten."""
YIELD_AFTER_S = DAY_S
"""A metric without a score for so long gives way to a new one if there is no room."""
SEEN_S = 60
"""How often the time of the last score of a metric is updated."""
MAX_VERSIONS = 10
"""Of each metric. A new version replaces the one that has been idle for longest."""


class Metric(NamedTuple):
    """A metric of an agent in a scenario."""

    series: Series
    name: str


class _Past(NamedTuple):
    """The stored scores of a version or of a day."""

    fingerprint: float
    since: float
    """Unix time of the first score."""
    last: float
    """Unix time of the last score."""
    statistics: RunningStatistics


@dataclass(slots=True)
class _Known:
    """The stored values of a metric."""

    seen: float
    day: int = -1
    today: StoredValues | None = None
    versions: dict[str, StoredValues] = field(default_factory=dict)


class Baselines:
    """The past scores of one sink. Only one thread at a time may call its methods."""

    def __init__(
        self, metrics: DurableMetrics, tenant: TenantLabel, limits: LabelLimits, overflow: Counter
    ) -> None:
        """As many metrics are kept as series are allowed; `overflow` counts the scores of other
        metrics.
        """
        names = tenant.names("agent", "scenario", "metric")
        self._tenant = tenant
        self._versions = metrics.stored_values("scores_of_version", (*names, "agent_version"))
        self._days = metrics.stored_values("scores_of_day", (*names, "day"))
        self._overflow = overflow
        overflow.add("baselines", n=0)
        self._quotas = TenantQuotas[Metric](limits, lambda metric: metric.series.tenant)
        self._known: dict[Metric, _Known] = {}
        self._today = -1
        self.pinned: Mapping[str, str] = {}
        """The version to compare with, by agent, instead of the one before."""

    def limit(self, limits: LabelLimits) -> None:
        """Apply other limits. If they are lower, the metrics that were scored last are kept."""
        self._quotas.configure(limits)
        self._drop_unknown()

    def record(
        self, metric: Metric, version: str | None, fingerprint: float, value: float, now: float
    ) -> None:
        """Add a score. `version` is `None` if it is unknown."""
        day = int(now // DAY_S)
        if day > self._today:
            self._today = day
            self._forget(now - MAX_IDLE_S)
        known = self._known.get(metric)
        if known is None or not 0 <= now - known.seen <= SEEN_S:
            if not self._admit(metric, now):
                self._overflow.add("baselines")
                return
            known = self._known.setdefault(metric, _Known(now))
            known.seen = now
        if known.today is None or known.day != day:
            known.day, known.today = day, self._days.of(*self._values(metric), str(day))
        _add(known.today, fingerprint, value, now)
        if version is not None:
            stored = known.versions.get(version)
            if stored is None:
                stored = self._add_version(metric, known, version)
            _add(stored, fingerprint, value, now)

    def restore(self, now: float) -> None:
        """Continue with the restored values. Times after `now` count as `now`."""
        seen: dict[Metric, float] = {}
        for family in (self._versions, self._days):
            for stored in family:
                metric = self._metric(stored)
                seen[metric] = max(seen.get(metric, 0.0), _past(stored).last)
        past = {metric: min(last, now) for metric, last in seen.items()}
        self._quotas.restore(past.items())
        self._known |= {
            metric: _Known(last) for metric, last in past.items() if metric in self._quotas
        }
        for stored in self._versions:
            if (metric := self._metric(stored)) in self._known:
                self._known[metric].versions[stored.labels[-1]] = stored
        self._today = int(now // DAY_S)
        self._forget(now - MAX_IDLE_S)

    def week_ago(self, metric: Metric, fingerprint: float, now: float) -> RunningStatistics | None:
        """The scores of the same day of the week before, if there were any."""
        day = str(int(now // DAY_S) - DAYS)
        stored = self._days.get(*self._values(metric), day)
        if stored is None:
            return None
        past = _past(stored)
        return past.statistics if past.fingerprint == fingerprint else None

    def newest(self, metric: Metric, versions: Collection[str], fingerprint: float) -> str | None:
        """The one of `versions` whose first score is the latest."""
        since = {
            version: past.since
            for version, past in self._pasts(metric, fingerprint)
            if version in versions
        }
        return max(since, key=lambda version: since[version], default=None)

    def version_before(
        self, metric: Metric, version: str, fingerprint: float, min_samples: int
    ) -> RunningStatistics | None:
        """The scores of the pinned version, or else of the newest that is older than `version`.

        Versions with fewer than `min_samples` are skipped if another version has enough.
        """
        pasts = dict(self._pasts(metric, fingerprint))
        pinned = self.pinned.get(metric.series.agent)
        if pinned is not None:
            return pasts[pinned].statistics if pinned in pasts and pinned != version else None
        earlier = sorted(
            (past for past in pasts.values() if past.since < pasts[version].since),
            key=lambda past: past.since,
        )
        enough = [past for past in earlier if past.statistics.samples >= min_samples]
        return (enough or earlier)[-1].statistics if earlier else None

    def _admit(self, metric: Metric, now: float) -> bool:
        if self._quotas.admit(metric, now):
            return True
        if self._quotas.make_room(metric, now, YIELD_AFTER_S):
            self._drop_unknown()
        return self._quotas.admit(metric, now)

    def _pasts(self, metric: Metric, fingerprint: float) -> Iterator[tuple[str, _Past]]:
        known = self._known.get(metric)
        if known is None:
            return
        for version, stored in known.versions.items():
            past = _past(stored)
            if past.fingerprint == fingerprint:
                yield version, past

    def _add_version(self, metric: Metric, known: _Known, version: str) -> StoredValues:
        if len(known.versions) >= MAX_VERSIONS:
            last = {
                name: _past(stored).last
                for name, stored in known.versions.items()
                if name != self.pinned.get(metric.series.agent)
            }
            longest_idle = min(last, key=lambda name: last[name])
            self._versions.drop([known.versions.pop(longest_idle).labels])
        stored = known.versions[version] = self._versions.of(*self._values(metric), version)
        return stored

    def _forget(self, before: float) -> None:
        """Drop the days that are not compared any more, and the metrics that had no score since
        `before`.
        """
        self._quotas.retire(before)
        self._drop_unknown()
        _drop(self._days, lambda stored: int(stored.labels[-1]) < self._today - DAYS)

    def _drop_unknown(self) -> None:
        """Drop the metrics that are not in the quota of their tenant."""
        self._known = {
            metric: known for metric, known in self._known.items() if metric in self._quotas
        }
        for family in (self._versions, self._days):
            _drop(family, lambda stored: self._metric(stored) not in self._known)

    def _values(self, metric: Metric) -> tuple[str, ...]:
        series = metric.series
        return self._tenant.values(series.tenant, series.agent, series.scenario, metric.name)

    def _metric(self, stored: StoredValues) -> Metric:
        *tenant, agent, scenario, name, _ = stored.labels
        return Metric(Series(agent, scenario, *tenant), name)


def _drop(family: Family[StoredValues], unwanted: Callable[[StoredValues], bool]) -> None:
    family.drop([stored.labels for stored in family if unwanted(stored)])


def _past(stored: StoredValues) -> _Past:
    fingerprint, since, last, samples, mean, squares = stored.numbers
    return _Past(fingerprint, since, last, RunningStatistics(int(samples), mean, squares))


def _add(stored: StoredValues, fingerprint: float, value: float, now: float) -> None:
    if stored.numbers:
        before, since, _, samples, mean, squares = stored.numbers
    else:
        before, since, samples, mean, squares = fingerprint, now, 0, 0.0, 0.0
    if before != fingerprint:
        samples, mean, squares = 0, 0.0, 0.0
    stored.put(fingerprint, since, now, *plus(samples, mean, squares, value))
