"""What recent scores are compared with: scores come in one by one, those of earlier versions and of
a week ago go out as `RunningStatistics`.

Of each agent, scenario and metric two things are kept: all scores of each version, and all scores
of each day (UTC) of the last week. They are stored beside the counts, so that they outlive a
restart. Like the counters they hold each evaluation once, as it first was.

A mark stands for what the scores were measured with: the scorer, its options, and the reference
where the scorer needs one. Scores with another mark are of no use any more, and what was kept of
them begins anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pathgauge.collector.core.evaluations.statistics import RunningStatistics, plus
from pathgauge.collector.core.evaluations.windows import Series
from pathgauge.collector.core.internal_telemetry import Counter
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics, Family
from pathgauge.collector.sinks.prometheus.durable_series import Note
from pathgauge.collector.sinks.prometheus.label_slots import Quota
from pathgauge.collector.sinks.prometheus.labels import TenantLabel

DAY_S = 86_400
DAYS = 7
"""How long ago the same day of the week was."""
KEPT_S = (DAYS + 1) * DAY_S
"""What was silent for so long is forgotten."""
SEEN_S = 60
"""How often it is noted that a metric is in use."""
MAX_VERSIONS = 10
"""Of each metric. The longest silent gives way."""


class Metric(NamedTuple):
    """A metric of an agent in a scenario."""

    series: Series
    name: str


class _Past(NamedTuple):
    """The scores of a version, or of a day, as their note has them."""

    mark: float
    since: float
    """When the first of them came, in Unix seconds."""
    last: float
    moments: RunningStatistics


@dataclass(slots=True)
class _Known:
    """The notes of a metric, at hand for the next score."""

    seen: float
    day: int = -1
    today: Note | None = None
    versions: dict[str, Note] = field(default_factory=dict)


class Baselines:
    """The past of all metrics of one sink. Only one thread at a time may call its methods."""

    def __init__(
        self, metrics: DurableMetrics, tenant: TenantLabel, most: int, overflow: Counter
    ) -> None:
        """`most` metrics of each tenant have a past; beyond that, `overflow` counts what has none."""
        names = tenant.names("agent", "scenario", "metric")
        self._tenant = tenant
        self._versions = metrics.notes("scores_of_version", (*names, "agent_version"))
        self._days = metrics.notes("scores_of_day", (*names, "day"))
        self._most = most
        self._overflow = overflow
        overflow.add("baselines", n=0)
        self._rooms: dict[str, Quota[Metric]] = {}
        self._known: dict[Metric, _Known] = {}
        """The metrics that have a past."""
        self._today = -1
        self.pinned: Mapping[str, str] = {}
        """The versions to compare with, by agent, where it is not to be the one before."""

    def record(
        self, metric: Metric, version: str | None, mark: float, value: float, now: float
    ) -> None:
        """Add a score; `version` is `None` when it is not known."""
        day = int(now // DAY_S)
        if day > self._today:
            self._today = day
            self._forget(now - KEPT_S)
        known = self._known.get(metric)
        if known is None or not 0 <= now - known.seen <= SEEN_S:
            if not self._admit(metric, now):
                self._overflow.add("baselines")
                return
            known = self._known.setdefault(metric, _Known(now))
            known.seen = now
        if known.today is None or known.day != day:
            known.day, known.today = day, self._days.of(*self._values(metric), str(day))
        _add(known.today, mark, value, now)
        if version is not None:
            note = known.versions.get(version)
            if note is None:
                note = self._begin(metric, known, version)
            _add(note, mark, value, now)

    def restore(self, now: float) -> None:
        """Go on with what was restored of the notes; whatever claims to be later than `now` counts
        as of now.
        """
        seen: dict[Metric, float] = {}
        for family in (self._versions, self._days):
            for note in family:
                metric = self._metric(note)
                seen[metric] = max(seen.get(metric, 0.0), _past(note).last)
        for metric, last in sorted(seen.items(), key=lambda item: -item[1]):
            if self._room(metric.series.tenant).restore(metric, min(last, now)):
                self._known[metric] = _Known(min(last, now))
        for room in self._rooms.values():
            room.sort()
        for note in self._versions:
            if (metric := self._metric(note)) in self._known:
                self._known[metric].versions[note.labels[-1]] = note
        self._today = int(now // DAY_S)
        self._forget(now - KEPT_S)

    def week_ago(self, metric: Metric, mark: float, now: float) -> RunningStatistics | None:
        """The scores of the same day of the week before, if there were any."""
        return self._of(self._days, metric, str(int(now // DAY_S) - DAYS), mark)

    def newest(self, metric: Metric, versions: Collection[str], mark: float) -> str | None:
        """That of `versions` which came last."""
        since = {
            version: past.since
            for version, past in self._pasts(metric, mark)
            if version in versions
        }
        return max(since, key=lambda version: since[version], default=None)

    def version_before(
        self, metric: Metric, version: str, mark: float, least_samples: int
    ) -> RunningStatistics | None:
        """The scores of the pinned version, or else of the newest that is older than `version`.

        Versions with less than `least_samples` are passed over where there is one that has them.
        """
        pasts = dict(self._pasts(metric, mark))
        pinned = self.pinned.get(metric.series.agent)
        if pinned is not None:
            return pasts[pinned].moments if pinned in pasts and pinned != version else None
        earlier = sorted(
            (past for past in pasts.values() if past.since < pasts[version].since),
            key=lambda past: past.since,
        )
        enough = [past for past in earlier if past.moments.samples >= least_samples]
        return (enough or earlier)[-1].moments if earlier else None

    def _admit(self, metric: Metric, now: float) -> bool:
        admitted = self._room(metric.series.tenant).admit(metric, now)
        if (
            metric not in self._known
            and sum(map(len, self._rooms.values())) < len(self._known) + admitted
        ):
            self._prune()  # others were silent for so long that they had to give way
        return admitted

    def _pasts(self, metric: Metric, mark: float) -> Iterator[tuple[str, _Past]]:
        known = self._known.get(metric)
        for version, note in known.versions.items() if known is not None else ():
            past = _past(note)
            if past.mark == mark:
                yield version, past

    def _of(
        self, family: Family[Note], metric: Metric, label: str, mark: float
    ) -> RunningStatistics | None:
        note = family.get(*self._values(metric), label)
        past = None if note is None else _past(note)
        return None if past is None or past.mark != mark else past.moments

    def _begin(self, metric: Metric, known: _Known, version: str) -> Note:
        if len(known.versions) >= MAX_VERSIONS:
            silent = {
                name: _past(note).last
                for name, note in known.versions.items()
                if name != self.pinned.get(metric.series.agent)
            }
            longest = min(silent, key=lambda name: silent[name])
            self._versions.drop([known.versions.pop(longest).labels])
        note = known.versions[version] = self._versions.of(*self._values(metric), version)
        return note

    def _forget(self, before: float) -> None:
        """Drop the days that no comparison reaches, and the metrics that were silent since
        `before`.
        """
        for room in self._rooms.values():
            room.retire(before)
        self._prune()
        self._days.drop(
            [note.labels for note in self._days if int(note.labels[-1]) < self._today - DAYS]
        )

    def _prune(self) -> None:
        """Drop what has no room any more."""
        self._known = {
            metric: known
            for metric, known in self._known.items()
            if metric in self._room(metric.series.tenant)
        }
        for family in (self._versions, self._days):
            family.drop([note.labels for note in family if self._metric(note) not in self._known])

    def _room(self, tenant: str) -> Quota[Metric]:
        room = self._rooms.get(tenant)
        if room is None:
            room = self._rooms[tenant] = Quota(self._most, DAY_S)
        return room

    def _values(self, metric: Metric) -> tuple[str, ...]:
        series = metric.series
        return self._tenant.values(series.tenant, series.agent, series.scenario, metric.name)

    def _metric(self, note: Note) -> Metric:
        *tenant, agent, scenario, name, _ = note.labels
        return Metric(Series(agent, scenario, *tenant), name)


def _past(note: Note) -> _Past:
    mark, since, last, samples, mean, squares = note.numbers
    return _Past(mark, since, last, RunningStatistics(int(samples), mean, squares))


def _add(note: Note, mark: float, value: float, now: float) -> None:
    before, since, _, samples, mean, squares = note.numbers or (mark, now, now, 0, 0.0, 0.0)
    if before != mark:
        samples, mean, squares = 0, 0.0, 0.0
    note.put(mark, since, now, *plus(samples, mean, squares, value))
