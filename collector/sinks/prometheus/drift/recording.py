"""Passes first scores to the drift detection, and its state to the store.

The state of a series is larger than a count. So each commit stores at most `MAX_ROWS` of those that
changed, the ones that have waited longest first. What a crash loses is left out of the evidence,
never counted twice; that can delay an alarm by the scores of a few seconds, and cannot cause one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import structlog

from pathgauge.collector.config.drifting import Drift as Options
from pathgauge.collector.core.counters import Counter
from pathgauge.collector.core.drift.drift import Drift, SeriesKey, with_adjusted_evidence
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.policy import DriftPolicy
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.core.drift.tallies import Row as Change
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.drift.nearest_version import by_agent, nearest_version
from pathgauge.collector.sinks.prometheus.judge_label import judge_value
from pathgauge.collector.sinks.prometheus.labels import AgentVersion
from pathgauge.collector.sinks.prometheus.measure_fingerprint import MeasureFingerprints
from pathgauge.scorers.types import Json

_log = structlog.get_logger(__name__)

NAME = "drift"
"""First part of the keys of stored states."""
MAX_ROWS = 100
"""Of one commit."""


class Explained(NamedTuple):
    """A stream of scores."""

    drift: Drift
    changes: Sequence[Change]
    """Which misses cost more since its open alarm, the most costly first."""
    after_version: str = ""
    """The version of the agent that was first seen about when its scores became worse."""


def explained(
    drifts: Drifts, first_seen: Mapping[AgentVersion, float] = MappingProxyType({})
) -> list[Explained]:
    """What is known about each stream. `first_seen` has the Unix time of the first use of each
    version.
    """
    return _explained(drifts.snapshot(), partial(_changes, drifts), first_seen)


def _explained(
    streams: Iterable[Drift],
    changes: Callable[[Drift], Sequence[Change]],
    first_seen: Mapping[AgentVersion, float],
) -> list[Explained]:
    versions = by_agent(first_seen)
    return [Explained(one, changes(one), nearest_version(one, versions)) for one in streams]


def states_of(rows: Iterable[Row]) -> Iterator[tuple[SeriesKey, Mapping[str, Json]]]:
    """The stored states, by key; other rows are ignored."""
    for (name, *key), state in rows:
        if name == NAME and state:
            tenant, agent, scenario, metric, judge = key
            yield SeriesKey(agent, scenario, metric, judge, tenant), state[0]


class DriftRecording:
    """The drift detection of one sink. Only one thread at a time may call its methods."""

    def __init__(self, overflow: Counter) -> None:
        """`overflow` counts the series that are dropped because there are too many."""
        overflow.add("drift", n=0)
        self._overflow = overflow
        self._dropped = 0
        self._drifts: Drifts | None = None
        self._policy = DriftPolicy()
        self._criteria = ActiveCriteria(Evaluator(()), ())
        self._measures: dict[str, Mapping[str, Measure]] = {}

    def configure(self, criteria: ActiveCriteria, options: Options | None) -> None:
        """Apply other criteria and options; without options nothing is detected.

        Series of criteria that do not exist any more, or have another judge, are forgotten.
        """
        self._criteria, self._measures = criteria, {}
        if options is None:
            self._drifts = None
            return
        self._policy = options.policy()
        pinned = {
            label_value(agent, MAX_NAME_BYTES): label_value(version, MAX_NAME_BYTES)
            for agent, version in options.baseline_versions.items()
        }
        if self._drifts is None:
            self._drifts = Drifts()
        self._drifts.configure(self._policy, options.max_series, pinned)
        self._drifts.forget(lambda key: bool(key.scenario) and not self._is_measured(key))

    def record(
        self, evaluation: Evaluation, series: Series, version: str | None, now: float
    ) -> None:
        """Add the scores of an evaluation, `now` in Unix seconds; its revisions and its withdrawal
        must not be passed.
        """
        if self._drifts is None:
            return
        measures = self._measures_of(series.scenario)
        for result in evaluation.results:
            criterion, value = result.criterion, result.score.value
            measure = measures.get(criterion.name)
            if measure is None or value is None:
                continue
            key = _key(series, criterion)
            misses = evaluation.misses
            if self._drifts.observe(key, measure, value, now, version=version, misses=misses):
                _log.info(
                    "drift begins anew: the reference or the options of the criterion changed",
                    **{name: label for name, label in key._asdict().items() if label},
                )
        if self._drifts.dropped > self._dropped:
            self._overflow.add("drift", n=self._drifts.dropped - self._dropped)
            self._dropped = self._drifts.dropped

    @property
    def limit_days(self) -> float | None:
        """The evidence that raises an alarm; `None`: no drift is detected."""
        return None if self._drifts is None else self._policy.evidence_days

    def explained(self, first_seen: Mapping[AgentVersion, float]) -> list[Explained]:
        """What is known about each stream of scores. `first_seen` has the Unix time of the first
        use of each version.
        """
        return [] if self._drifts is None else explained(self._drifts, first_seen)

    def read(self, limit: int) -> bool:
        """Look at what changed, so that `streams` need not: at `limit` series at most. Returns
        whether that was all.
        """
        return self._drifts is None or self._drifts.read(limit)

    def streams(self) -> list[Drift]:
        """All streams of scores, with the evidence of each alone."""
        return [] if self._drifts is None else self._drifts.streams()

    def explain(
        self,
        streams: list[Drift],
        first_seen: Mapping[AgentVersion, float],
        lock: AbstractContextManager[object],
    ) -> list[Explained]:
        """What is known about `streams`, for another thread than the one that records. `lock` is
        what that thread holds.
        """
        return _explained(
            with_adjusted_evidence(streams, self._policy.evidence_days),
            partial(self._changes, lock),
            first_seen,
        )

    def _changes(self, lock: AbstractContextManager[object], drift: Drift) -> Sequence[Change]:
        if not drift.alarm:
            return ()
        with lock:
            return () if self._drifts is None else _changes(self._drifts, drift)

    @property
    def has_pending(self) -> bool:
        """Whether states wait for the next commit."""
        return self._drifts is not None and self._drifts.has_pending

    def pending(self) -> list[Row]:
        """States that changed, for the store."""
        if self._drifts is None:
            return []
        rows = self._drifts.pending(MAX_ROWS)
        return [
            Row(
                (NAME, key.tenant, key.agent, key.scenario, key.metric, key.judge),
                None if state is None else [state],
            )
            for key, state in rows
        ]

    def restore(self, rows: Iterable[Row], has_series: Callable[[str], bool]) -> None:
        """Continue with the latest stored states. Those of tenants for which `has_series` returns
        false are forgotten: scrapes would take them for those of another tenant.
        """
        if self._drifts is None:
            return
        self._drifts.restore(states_of(rows))
        self._drifts.forget(lambda key: not has_series(key.tenant))
        self._drifts.forget(lambda key: bool(key.scenario) and not self._is_measured(key))

    def _is_measured(self, key: SeriesKey) -> bool:
        return any(
            criterion.name == key.metric and judge_value(criterion.judge) == key.judge
            for criterion in self._criteria.of(key.scenario)
        )

    def _measures_of(self, scenario: str) -> Mapping[str, Measure]:
        measures = self._measures.get(scenario)
        if measures is None:
            reference = self._criteria.references.get(scenario)
            fingerprints = MeasureFingerprints(reference)
            measures = self._measures[scenario] = {
                criterion.name: _measure(criterion, fingerprints.of(criterion))
                for criterion in self._criteria.of(scenario)
            }
        return measures


def _changes(drifts: Drifts, drift: Drift) -> Sequence[Change]:
    if not drift.alarm or drift.against == "scenarios":
        return ()
    return drifts.what_changed(drift.key, of_version=drift.against == "version")


def _key(series: Series, criterion: Criterion) -> SeriesKey:
    judge = judge_value(criterion.judge) if criterion.judge else ""
    return SeriesKey(series.agent, series.scenario, criterion.name, judge, series.tenant)


def _measure(criterion: Criterion, fingerprint: float) -> Measure:
    scorer = criterion.scorer
    has_threshold = criterion.threshold is not None and criterion.aggregation is None
    return Measure(
        scorer.low,
        scorer.high,
        scorer.higher_is_better,
        threshold=criterion.threshold if has_threshold else None,
        objective=criterion.objective,
        fingerprint=fingerprint,
    )
