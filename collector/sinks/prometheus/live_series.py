"""The series of a sink: their labels, when they last had a score, and when they are dropped."""

from __future__ import annotations

from collections.abc import Mapping, Set
from heapq import nlargest
from typing import NamedTuple

from pathgauge.collector.core.counters import Counter
from pathgauge.collector.core.evaluations.changed_series import ChangedSeries
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.series import Series, series_of
from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.evaluation_metrics import EvaluationMetrics
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.label_registry import LabelRegistry
from pathgauge.collector.sinks.prometheus.labels import (
    OTHER,
    AgentVersion,
    Labels,
    TenantLabel,
    known_version,
)
from pathgauge.collector.sinks.prometheus.last_seen import LastSeen
from pathgauge.scorers.types import Reference


class Place(NamedTuple):
    """Where the results of an evaluation are shown."""

    labels: Labels
    """Labels of the counters and histograms."""
    series: Series
    """Series of the windows."""
    version: str | None
    """Version of the windows; `None` if it is unknown."""
    expected: Series | None = None
    """Where else to show when it had a score: its scenario has no room, and is expected."""


class LiveSeries:
    """The series of one sink. Only one thread at a time may call its methods."""

    def __init__(
        self,
        metrics: DurableMetrics,
        evaluation_metrics: EvaluationMetrics,
        tenant: TenantLabel,
        limits: LabelLimits,
        overflow: Counter,
        *,
        changed: ChangedSeries[Series],
    ) -> None:
        """`overflow` counts how often a limit turned a label into `__other__`. `changed` is told
        which series are new, have another last score, or are gone.
        """
        self._changed = changed
        self._evaluation_metrics = evaluation_metrics
        self._tenant = tenant
        self._last_seen = LastSeen(metrics, tenant)
        self._has_idle = False
        """Whether there are series that are kept only as the last ones of their scenario."""
        self._without_room: set[Series] = set()
        """Those that say only when an expected scenario had a score, see `_expected_without_room`.
        """
        self._references: Mapping[str, Reference] = {}
        self._max_expected = limits.max_series_total
        self._tenants = limits.tenants
        self.labels = LabelRegistry(limits, overflow)
        self.last_scores: dict[Series, float | None] = {}
        """Unix time of the last score of each series; `None` if it never had one."""

    def configure(self, criteria: ActiveCriteria, limits: LabelLimits) -> None:
        """Apply other criteria, references and limits. Series that have no room any more are
        dropped.
        """
        self._references = criteria.references
        self._max_expected = limits.max_series_total
        self._tenants = limits.tenants
        before = set(self.labels)
        self.labels.configure(
            criteria.references,
            lambda scenario: len(criteria.of(scenario)),
            len({criterion.name for criterion in criteria}),
            limits,
        )
        if before - set(self.labels):
            self._drop_unused()

    def restore(self, now: float) -> None:
        """Continue with what the store restored. Times after `now` count as `now`. A tenant that
        was removed has no series: nothing may be expected of it.
        """
        self._last_seen.set_back(now)
        uses = [use for use in self._last_seen if self.is_configured(use.labels.tenant)]
        self.labels.restore(uses, now)
        without_score = dict.fromkeys((labels.series for labels in self.labels), None)
        last = self._last_seen.last_scores().items()
        with_score = {one: time for one, time in last if self.is_configured(one.tenant)}
        self.last_scores = without_score | with_score
        self._drop_unused()

    def set_back(self, now: float) -> None:
        """The clock was ahead: later times count as `now`."""
        self.labels.set_back(now)
        self._last_seen.set_back(now)
        self.last_scores = {
            series: None if time is None else min(time, now)
            for series, time in self.last_scores.items()
        }
        self._drop_unused()

    def first_seen(self) -> dict[AgentVersion, float]:
        """Unix time of the first use of each version."""
        return self._last_seen.first_seen()

    def place(self, evaluation: Evaluation, criteria: int, now: float) -> Place:
        """Where an evaluation with so many criteria is shown."""
        invocation, series = evaluation.invocation, series_of(evaluation)
        names = Labels(
            series.agent, invocation.agent_version or "", series.scenario, invocation.tenant
        )
        labels = self.admit(names, criteria, now)
        # Windows have no version: if the labels had no room because the version is new, the window
        # of the scenario is still the right one.
        known = self.labels.named(names).series._replace(tenant=self._tenant.of(names.tenant))
        shown = known if self.has_windows(known) else labels.series
        self._without_room.discard(shown)
        if shown not in self.last_scores:
            self.last_scores[shown] = None
            self._changed.add(shown)
        expected = self._expected_without_room(known, shown)
        return Place(labels, shown, known_version(labels.agent_version), expected)

    def admit(self, names: Labels, criteria: int, now: float) -> Labels:
        """The labels for names as senders gave them, under which so many criteria are counted."""
        has_forgotten = self.labels.sweep(now)
        if has_forgotten is not None and (has_forgotten or self._has_idle):
            self._drop_unused()
        weight = max(1, criteria)
        names = names._replace(tenant=self._tenant.of(names.tenant))
        labels = self.labels.admit(names, now, weight)
        self._last_seen.see(labels, now, weight)
        return labels

    def has_windows(self, series: Series) -> bool:
        """Whether scores of a series are shown, not only when it had the last one."""
        return series in self.last_scores and series not in self._without_room

    def scored(self, place: Place, now: float) -> None:
        """Record that an evaluation had a score."""
        self._scored(place.series, now)
        if place.expected is not None:
            self._without_room.add(place.expected)
            self._scored(place.expected, now)

    def _scored(self, series: Series, now: float) -> None:
        self.last_scores[series] = now
        self._changed.add(series)
        self._last_seen.score(series, now)

    def _expected_without_room(self, known: Series, shown: Series) -> Series | None:
        """The series of the scenario alone, if it is shown as `__other__`: it would be taken for
        silent otherwise.
        """
        if shown.scenario == known.scenario or not self._is_expected(known.scenario):
            return None
        alone = known._replace(agent=OTHER)
        has_room = len(self._without_room) < self._max_expected
        return alone if has_room or alone in self._without_room else None

    def _is_expected(self, scenario: str) -> bool:
        reference = self._references.get(scenario)
        return reference is not None and reference.expected_interval is not None

    def is_configured(self, tenant: str) -> bool:
        """Whether a tenant, as the store has it, has series."""
        if tenant == OTHER:
            return True
        is_label = self._tenant.of(tenant) == tenant
        return is_label and (not self._tenants or tenant in self._tenants)

    def _drop_unused(self) -> None:
        live = set(self.labels)
        kept = {labels.series for labels in live}
        idle = self._last_of_expected(kept)
        self._has_idle = bool(idle)
        self._without_room = {series for series in idle if series.agent == OTHER}
        kept |= idle
        self._evaluation_metrics.keep(live)
        self._last_seen.keep(live, kept)
        for series in self.last_scores:
            if series not in kept:
                self._changed.add(series)
        self.last_scores = {
            series: time for series, time in self.last_scores.items() if series in kept
        }

    def _last_of_expected(self, live: Set[Series]) -> set[Series]:
        """The series that was scored last for each scenario with an expected interval, if it is not
        live. The interval may be longer than the time after which idle names are forgotten.
        """
        newest: dict[tuple[str, str], tuple[float, Series]] = {}
        for series, last in self.last_scores.items():
            if last is None or not self._is_expected(series.scenario):
                continue
            key = series.tenant, series.scenario
            newest[key] = max(newest.get(key, (last, series)), (last, series))
        idle = [(last, series) for last, series in newest.values() if series not in live]
        if len(idle) > self._max_expected:
            self.labels.overflow.add("total", n=len(idle) - self._max_expected)
        return {series for _, series in nlargest(self._max_expected, idle)}
