"""Restores windows from stored evaluations after a restart.

Evaluations whose labels are not in use are skipped, so names that senders invented use no memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, product, starmap
from typing import NamedTuple

from pathgauge.collector.core.evaluations.label_values import label_value
from pathgauge.collector.core.evaluations.recent import Recent
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.window_refill import Refill, VersionMetric
from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.evaluation_metrics import EvaluationMetrics
from pathgauge.collector.sinks.prometheus.labels import OTHER, Labels, TenantLabel, known_version
from pathgauge.collector.sinks.prometheus.live_series import LiveSeries
from pathgauge.collector.sinks.prometheus.recent_scores import RecentScores
from pathgauge.scorers.judge_protocol import asks_model

_MAX_CACHED_NAMES = 1_000


class _Judge(NamedTuple):
    """How a metric is judged."""

    label: str
    """`""` without a judge."""
    asks_model: bool


class WindowRestore:
    """Fills the windows of one sink. Call `take` for each evaluation that it `wants`, the last
    recorded first, then `finish`.
    """

    def __init__(
        self,
        scores: RecentScores,
        *,
        series: LiveSeries,
        tenant: TenantLabel,
        criteria: ActiveCriteria,
        metrics: EvaluationMetrics,
    ) -> None:
        """`metrics` know which criteria ever gave a score."""
        self._windows, self._judged_windows = Refill(scores.windows), Refill(scores.judged)
        self._series = series
        self._labels = frozenset(series.labels)
        self._tenant = tenant
        self._criteria = criteria
        self._metrics = metrics
        self._judges: dict[str, dict[str, _Judge]] = {}
        self._labels_in: defaultdict[Series, list[Labels]] = defaultdict(list)
        for labels in series.labels:
            self._labels_in[labels.series].append(labels)
        self._series_of = lru_cache(_MAX_CACHED_NAMES)(self._find_series)
        self._version_of = lru_cache(_MAX_CACHED_NAMES)(self._find_version)

    def wants(self, tenant: str, agent: str, scenario: str) -> bool:
        """Whether an evaluation may fit into a window."""
        series = self._series_of(tenant, agent, scenario)
        if series is None:
            return False
        return self._windows.has_room(series) or self._judged_windows.has_room(series)

    def take(self, past: Recent, now: float) -> None:
        """Add an evaluation, as far as its scores would still be in windows without the restart."""
        if past.reference_version is not None:
            reference = self._criteria.references.get(label_value(past.scenario))
            if reference is None or reference.version != past.reference_version:
                return
        names = past.key[0], past.agent, past.scenario
        series = self._series_of(*names)
        if series is None:
            return
        version = self._version_of(*names, past.agent_version or "")
        judges = self._judges_of(series.scenario)
        scores: dict[str, float] = {}
        judged_scores: dict[str, float] = {}
        for metric, value in past.scores.items():
            judge = judges.get(metric)
            if judge is None or judge.label != past.judges.get(metric, ""):
                continue
            by_metric = judged_scores if judge.asks_model else scores
            by_metric[metric] = value
        since = min(past.at, now)
        self._windows.take(past.key, series, scores, since, version)
        if judged_scores:
            self._judged_windows.take(past.key, series, judged_scores, since, version)

    def finish(self) -> None:
        """Fill the windows."""
        self._windows.finish()
        self._judged_windows.finish()

    def _find_series(self, tenant: str, agent: str, scenario: str) -> Series | None:
        first = self._labels_of(tenant, agent, scenario).series
        places = product((first.agent, OTHER), (first.scenario, OTHER), (first.tenant,))
        for series in (*starmap(Series, places), Series(OTHER, OTHER, OTHER)):
            if self._series.has_windows(series):
                self._expect(series)
                return series
        return None

    def _find_version(self, tenant: str, agent: str, scenario: str, version: str) -> str | None:
        labels = self._labels_of(tenant, agent, scenario, version)
        return known_version(labels.agent_version) if labels in self._labels else None

    def _labels_of(self, tenant: str, agent: str, scenario: str, version: str = "") -> Labels:
        return self._series.labels.named(Labels(agent, version, scenario, self._tenant.of(tenant)))

    def _expect(self, series: Series) -> None:
        scored: dict[bool, set[VersionMetric]] = {False: set(), True: set()}
        for criterion in self._criteria.of(series.scenario):
            of_kind = scored[asks_model(criterion.scorer)]
            for labels in self._counted_in(series):
                if self._metrics.has_scores(labels, criterion):
                    of_kind.add((known_version(labels.agent_version), criterion.name))
        self._windows.expect(series, scored[False])
        if scored[True]:
            self._judged_windows.expect(series, scored[True])

    def _counted_in(self, series: Series) -> Iterable[Labels]:
        """The labels under which the scores of a window are counted. Those of a version that had no
        room have `__other__` in place of the scenario, or of the agent and the tenant, too.
        """
        without_scenario = series._replace(scenario=OTHER)
        without_agent = without_scenario._replace(agent=OTHER)
        places = {series, without_scenario, without_agent, Series(OTHER, OTHER, OTHER)}
        return chain.from_iterable(self._labels_in.get(place, ()) for place in places)

    def _judges_of(self, scenario: str) -> dict[str, _Judge]:
        judges = self._judges.get(scenario)
        if judges is None:
            judges = self._judges[scenario] = {
                criterion.name: _Judge(criterion.judge, asks_model(criterion.scorer))
                for criterion in self._criteria.of(scenario)
            }
        return judges
