"""Windows as they were before a restart: stored evaluations come in, the last recorded first, and
fill those of the labels that are in use.

However many names senders invented since, nothing is kept of one that found no room.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.windows import Recent, Series, Windows
from pathgauge.collector.sinks.prometheus.labels import (
    NAME_BYTES,
    OTHER,
    LabelRegistry,
    Labels,
    TenantLabel,
    label_value,
)
from pathgauge.collector.sinks.prometheus.regressions import known_version
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.types import Reference

_NAMES_KEPT = 1_000


class _Filed(NamedTuple):
    """What the windows of an evaluation are."""

    series: Series
    version: str | None
    criteria: Mapping[str, tuple[str, bool]]
    """By metric the judge, and whether a model is asked."""


class Refilling:
    """The windows of one sink, and those of its judges."""

    def __init__(
        self,
        windows: Windows,
        judged: Windows,
        *,
        labels: LabelRegistry,
        shown: Collection[Series],
        tenant: TenantLabel,
        references: Mapping[str, Reference],
        criteria_for: Callable[[str], tuple[Criterion, ...]],
    ) -> None:
        """`labels` and `shown` are the labels and the series in use; `references` and
        `criteria_for` are by the label of a scenario.
        """
        self._windows, self._judged = windows.refill(), judged.refill()
        self._labels, self._live = labels, frozenset(labels)
        self._shown = shown
        self._tenant = tenant
        self._references = references
        self._criteria_for = criteria_for
        self._criteria: dict[str, dict[str, tuple[str, bool]]] = {}
        self._filed = lru_cache(_NAMES_KEPT)(self._file)

    def take(self, past: Recent, now: float) -> None:
        """Put an evaluation into the windows where it would be, if it would be in any, had the
        process not ended.
        """
        if past.reference_version is not None:
            reference = self._references.get(label_value(past.scenario))
            if reference is None or reference.version != past.reference_version:
                return
        filed = self._filed(
            past.key[0], past.agent, self._labels.scenario(past.scenario), past.agent_version or ""
        )
        if filed is None:
            return
        plain: dict[str, float] = {}
        judged: dict[str, float] = {}
        for metric, value in past.scores.items():
            judge, asks = filed.criteria.get(metric, (None, False))
            if judge == past.judges.get(metric, ""):
                (judged if asks else plain)[metric] = value
        since = min(past.at, now)
        self._windows.take(past.key, filed.series, plain, since, filed.version)
        if judged:
            self._judged.take(past.key, filed.series, judged, since, filed.version)

    def finish(self) -> None:
        """Fill the windows."""
        self._windows.finish()
        self._judged.finish()

    def _file(self, tenant: str, agent: str, scenario: str, version: str) -> _Filed | None:
        agent, version = label_value(agent, NAME_BYTES), label_value(version, NAME_BYTES)
        names = Labels(agent, version, scenario, self._tenant.of(tenant))
        for series in (
            Series(a, s, names.tenant) for a in (agent, OTHER) for s in (scenario, OTHER)
        ):
            if series in self._shown:
                return _Filed(
                    series,
                    known_version(version) if names in self._live else None,
                    self._criteria_of(series.scenario),
                )
        return None

    def _criteria_of(self, scenario: str) -> dict[str, tuple[str, bool]]:
        known = self._criteria.get(scenario)
        if known is None:
            criteria = self._criteria_for(scenario)
            known = self._criteria[scenario] = {
                criterion.name: (criterion.judge, asks_model(criterion.scorer))
                for criterion in criteria
            }
        return known
