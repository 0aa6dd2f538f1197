"""Restores windows from stored evaluations after a restart.

Evaluations whose labels are not in use are skipped, so names that senders invented use no memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pathgauge.collector.core.evaluations.window_refill import Refill
from pathgauge.collector.core.evaluations.windows import Recent, Series, Windows
from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.labels import (
    MAX_NAME_BYTES,
    OTHER,
    Labels,
    TenantLabel,
    known_version,
    label_value,
)
from pathgauge.collector.sinks.prometheus.live_series import LiveSeries
from pathgauge.scorers.judge_protocol import asks_model

_MAX_CACHED_NAMES = 1_000


class _Judge(NamedTuple):
    """How a metric is judged."""

    label: str
    """`""` without a judge."""
    asks_model: bool


class _Place(NamedTuple):
    """The windows of an evaluation."""

    series: Series
    version: str | None
    judges: Mapping[str, _Judge]
    """By metric."""


class WindowRestore:
    """Fills the windows of one sink. Call `take` for each evaluation, the last recorded first, then
    `finish`.
    """

    def __init__(
        self,
        windows: Windows,
        judged_windows: Windows,
        *,
        series: LiveSeries,
        tenant: TenantLabel,
        criteria: ActiveCriteria,
    ) -> None:
        self._windows, self._judged_windows = Refill(windows), Refill(judged_windows)
        self._series = series
        self._labels = frozenset(series.labels)
        self._tenant = tenant
        self._criteria = criteria
        self._judges: dict[str, dict[str, _Judge]] = {}
        self._place = lru_cache(_MAX_CACHED_NAMES)(self._find_place)

    def take(self, past: Recent, now: float) -> None:
        """Add an evaluation, as far as its scores would still be in windows without the restart."""
        if past.reference_version is not None:
            reference = self._criteria.references.get(label_value(past.scenario))
            if reference is None or reference.version != past.reference_version:
                return
        scenario = self._series.labels.scenario(past.scenario)
        place = self._place(past.key[0], past.agent, scenario, past.agent_version or "")
        if place is None:
            return
        scores: dict[str, float] = {}
        judged_scores: dict[str, float] = {}
        for metric, value in past.scores.items():
            judge = place.judges.get(metric)
            if judge is None or judge.label != past.judges.get(metric, ""):
                continue
            by_metric = judged_scores if judge.asks_model else scores
            by_metric[metric] = value
        since = min(past.at, now)
        self._windows.take(past.key, place.series, scores, since, place.version)
        if judged_scores:
            self._judged_windows.take(past.key, place.series, judged_scores, since, place.version)

    def finish(self) -> None:
        """Fill the windows."""
        self._windows.finish()
        self._judged_windows.finish()

    def _find_place(self, tenant: str, agent: str, scenario: str, version: str) -> _Place | None:
        agent, version = label_value(agent, MAX_NAME_BYTES), label_value(version, MAX_NAME_BYTES)
        labels = Labels(agent, version, scenario, self._tenant.of(tenant))
        for name in (agent, OTHER):
            for scenario_label in (scenario, OTHER):
                series = Series(name, scenario_label, labels.tenant)
                if series in self._series.last_scores:
                    shown = known_version(version) if labels in self._labels else None
                    return _Place(series, shown, self._judges_of(scenario_label))
        if Series(OTHER, OTHER, OTHER) in self._series.last_scores:
            return _Place(Series(OTHER, OTHER, OTHER), None, self._judges_of(OTHER))
        return None

    def _judges_of(self, scenario: str) -> dict[str, _Judge]:
        judges = self._judges.get(scenario)
        if judges is None:
            judges = self._judges[scenario] = {
                criterion.name: _Judge(criterion.judge, asks_model(criterion.scorer))
                for criterion in self._criteria.of(scenario)
            }
        return judges
