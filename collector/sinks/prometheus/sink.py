"""Publishes evaluations as Prometheus series: counters and histograms for rules, windows of recent
scores for people.

An evaluation is counted once, at revision 0. Revisions and withdrawals change only the windows,
because a counter cannot go back. If the sink is given `DurableMetrics`, scrapes see counts after
their owner has stored and committed them, otherwise at once. `docs/metrics.md` lists the series.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey, Evaluator
from pathgauge.collector.core.evaluations.recent import Past
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.agent_gauges import Shown
from pathgauge.collector.sinks.prometheus.drift.recording import NAME as DRIFT, DriftRecording
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.evaluation_metrics import EvaluationMetrics
from pathgauge.collector.sinks.prometheus.expected_scenarios import (
    expected_scenarios,
    restored_since,
    store_since,
)
from pathgauge.collector.sinks.prometheus.exposition.registry import Registry
from pathgauge.collector.sinks.prometheus.judge_label import judges_of
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.labels import Labels, TenantLabel
from pathgauge.collector.sinks.prometheus.live_series import LiveSeries, Place
from pathgauge.collector.sinks.prometheus.moment import MomentGauges
from pathgauge.collector.sinks.prometheus.process_metrics import process_metrics
from pathgauge.collector.sinks.prometheus.recent_scores import RecentScores
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.collector.sinks.prometheus.shown_series import ShownSeries
from pathgauge.collector.sinks.prometheus.sink_state import SinkState
from pathgauge.collector.sinks.prometheus.traffic.recording import NAME as TRAFFIC, TrafficRecording
from pathgauge.collector.sinks.prometheus.wall_clock import WallClock
from pathgauge.collector.sinks.prometheus.window_restore import WindowRestore


class PrometheusSink:
    """A sink with its own registry. `publish`, `configure` and scrapes may run in different
    threads.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        references: ReferenceSet,
        telemetry: InternalTelemetry,
        *,
        windows: Windows | None = None,
        limits: LabelLimits | None = None,
        min_samples: int = 20,
        traces_open: Callable[[], int] = lambda: 0,
        queues: Mapping[str, Queue] | None = None,
        clock: Callable[[], float] = time.time,
        metrics: DurableMetrics | None = None,
        tenants: bool = False,
        drift: Drift | None = None,
        records: Callable[[], Shown] = dict,
        content_settings: Mapping[str, str] | None = None,
    ) -> None:
        """A window needs `min_samples` to breach a threshold. `clock` returns the Unix time of
        scrapes and reloads. With `tenants`, all series about agents have a label `tenant`.

        `records` returns what the telemetry of each agent version has shown. `content_settings`:
        by dialect, the setting that makes it record content.
        """
        self._clock, self._wall_clock = clock, WallClock()
        self._limits = limits or LabelLimits()
        self._tenant = TenantLabel(tenants)
        self._state = self._new_state(
            ActiveCriteria(evaluator, references),
            RecentScores(windows),
            metrics or DurableMetrics(),
            telemetry,
        )
        self.shown = ShownSeries(
            self._state,
            self._tenant,
            min_samples,
            gauges=MomentGauges(
                self._tenant,
                min_samples,
                queues=dict(queues or {}),
                records=records,
                content_settings=content_settings or {},
            ),
            clock=clock,
            commits_itself=metrics is None,
        )
        """What scrapes and pages see."""
        self.registry = Registry()
        self._reloaded, self._reload_time = process_metrics(self.registry, traces_open)
        self.registry.register(self.shown)
        self.configure(evaluator, references, drift=drift)
        self._reloaded_counts = False

    def _new_state(
        self,
        criteria: ActiveCriteria,
        scores: RecentScores,
        metrics: DurableMetrics,
        telemetry: InternalTelemetry,
    ) -> SinkState:
        overflow = telemetry.series_overflow
        evaluation_metrics = EvaluationMetrics(metrics, self._tenant)
        series = LiveSeries(
            metrics,
            evaluation_metrics,
            self._tenant,
            self._limits,
            overflow,
            changed=scores.changed,
        )
        metrics.add_telemetry(telemetry)
        return SinkState(
            criteria,
            scores,
            series,
            metrics,
            evaluation_metrics,
            DriftRecording(overflow),
            TrafficRecording(overflow),
            metrics.stored_values("expected_since", ("scenario",)),
        )

    def configure(
        self,
        evaluator: Evaluator,
        references: ReferenceSet,
        limits: LabelLimits | None = None,
        drift: Drift | None = None,
    ) -> None:
        """Apply other criteria, references and limits; `None` keeps the limits. Without `drift`, no
        drift is detected.

        Thresholds change at once, counts stay.

        The windows of scenarios with a changed reference, and of criteria that were removed or have
        another judge, start empty. If all series have no room any more, those that were seen last
        are kept.
        """
        state, now = self._state, self._clock()
        with state.lock:
            self._wall_clock.see(now)
            before = state.criteria
            active = state.criteria = ActiveCriteria(evaluator, references)
            state.expected = expected_scenarios(active.references, state.expected, now)
            store_since(state.expected, state.expected_since)
            self._limits = limits or self._limits
            state.series.configure(active, self._limits)
            state.scores.forget(
                lambda series, metric: (
                    series not in state.series.last_scores
                    or active.invalidates(before, series, metric)
                )
            )
            state.drift.configure(active, drift)
            state.traffic.configure(
                None if drift is None else drift.limit_days,
                0 if drift is None else drift.max_agents,
            )
            self._start_expected_series()
            state.scores.changed.add_all()
            self._reloaded_counts = True
        self._reloaded.set(1)
        self._reload_time.set(now)

    def configure_failed(self) -> None:
        """Show that a reload was refused and the active configuration was kept."""
        self._reloaded.set(0)

    def restore(self, rows: Iterable[Row], past: Past, now: float) -> None:
        """Continue from what an earlier process stored; call it before anything is published.

        `rows` are those that `pending` returned, the latest of each key. `past` finds only
        configured tenants. Times after `now`, in Unix seconds, count as `now`.
        """
        state, rows = self._state, list(rows)
        with state.lock:
            state.metrics.restore(row for row in rows if row.key[0] not in (DRIFT, TRAFFIC))
            has_series = state.series.is_configured
            state.drift.restore((row for row in rows if row.key[0] == DRIFT), has_series)
            state.traffic.restore((row for row in rows if row.key[0] == TRAFFIC), has_series)
            state.expected = restored_since(state.expected, state.expected_since)
            store_since(state.expected, state.expected_since)
            state.series.restore(now)
            self._start_expected_series()
            windows = WindowRestore(
                state.scores,
                series=state.series,
                tenant=self._tenant,
                criteria=state.criteria,
                metrics=state.evaluation_metrics,
            )
            for evaluation in past(windows.wants):
                windows.take(evaluation, now)
            windows.finish()
            state.scores.changed.add_all()

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Publish an evaluation; `now` is in Unix seconds."""
        state = self._state
        with state.lock:
            place = self._place(evaluation, now)
            has_first_score = state.scores.record(evaluation, place, now)
            if evaluation.revision > 0:
                if has_first_score:  # late spans may bring a scenario: it is not silent
                    state.series.scored(place, now)
                return
            if evaluation.session is not None:
                state.evaluation_metrics.count_results(evaluation, place.labels, now)
            else:
                state.evaluation_metrics.count(evaluation, place.labels, now)
                state.traffic.record(evaluation, place.series, place.version, now)
            self._record_scores(evaluation, evaluation, place, now)

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Publish the results of judges for an evaluation; `now` is in Unix seconds."""
        state, evaluation = self._state, judged.evaluation
        with state.lock:
            place = self._place(evaluation, now)
            active = state.criteria.with_active_judges(evaluation, place.series.scenario)
            has_first_score = state.scores.record_judged(active, place, now, first=judged.first)
            if judged.first:
                state.evaluation_metrics.count_results(evaluation, place.labels, now)
                self._record_scores(evaluation, active, place, now)
                if not judged.failed_before and evaluation.session is None:
                    state.evaluation_metrics.count_failure(evaluation, place.labels, now)
            elif has_first_score:
                state.series.scored(place, now)

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        """Count a finished conversation; `now` is in Unix seconds."""
        names = Labels(
            result.agent or "",
            result.agent_version or "",
            result.reference.scenario_id,
            result.tenant,
        )
        with self._state.lock:
            self._wall_clock.see(now)
            labels = self._state.series.admit(names, len(result.scores), now)
            self._state.evaluation_metrics.count_conversation(result, labels)

    def withdraw(self, key: EvaluationKey) -> None:
        """Remove the scores of the evaluation `key` from the windows."""
        with self._state.lock:
            self._state.scores.withdraw(key)

    def pending(self) -> list[Row]:
        """All changes of counts that are not committed, for the store."""
        state, now = self._state, self._clock()
        with state.lock:
            if self._wall_clock.is_set_back(now):
                state.set_back(now)
        return [*state.metrics.pending(), *state.drift.pending(), *state.traffic.pending(now)]

    @property
    def needs_commit(self) -> bool:
        """Whether there are changes that no event announces."""
        state = self._state
        return (
            self._reloaded_counts
            or state.drift.has_pending
            or state.traffic.has_pending(self._clock())
        )

    def finish(self) -> None:
        """Have the next commits store everything, as the process stops; for any thread."""
        self._state.traffic.finish()

    def commit(self) -> None:
        """Show what `pending` returned last. No scrape sees a part of it."""
        self._reloaded_counts = False
        self._state.metrics.commit()

    def close(self) -> None:
        """Nothing is buffered; the registry can still be scraped."""

    def _place(self, evaluation: Evaluation, now: float) -> Place:
        self._wall_clock.see(now)
        state, of_session = self._state, evaluation.session is not None
        criteria = state.criteria.evaluator.criteria_for(
            evaluation.match, evaluation.invocation, session=of_session
        )
        return state.series.place(evaluation, max(len(evaluation.results), len(criteria)), now)

    def _record_scores(
        self, evaluation: Evaluation, active: Evaluation, place: Place, now: float
    ) -> None:
        self._state.drift.record(active, place.series, place.version, now)
        if evaluation.scored:
            self._state.series.scored(place, now)

    def _start_expected_series(self) -> None:
        """Drop the series of replaced judges; start those of all active criteria at 0."""
        state = self._state
        state.evaluation_metrics.keep_judges(judges_of(state.criteria))
        for labels in state.series.labels:
            state.evaluation_metrics.expect(labels, state.criteria.of(labels.scenario))
