"""Publishes evaluations as Prometheus series: counters and histograms for rules, windows of recent
scores for people.

An evaluation is counted once, at revision 0. Revisions and withdrawals change only the windows,
because a counter cannot go back. If the sink is given `DurableMetrics`, scrapes see counts after
their owner has stored and committed them, otherwise at once. `docs/metrics.md` lists the series.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from prometheus_client.core import Metric

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey, Evaluator
from pathgauge.collector.core.evaluations.recent import Past
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.agent_gauges import Shown
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore, current_scores
from pathgauge.collector.sinks.prometheus.drift.recording import (
    NAME as DRIFT,
    DriftRecording,
    Explained,
)
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.evaluation_metrics import EvaluationMetrics
from pathgauge.collector.sinks.prometheus.expected_scenarios import Expected, expected_scenarios
from pathgauge.collector.sinks.prometheus.exposition.blocks import Block
from pathgauge.collector.sinks.prometheus.exposition.registry import Registry
from pathgauge.collector.sinks.prometheus.exposition.text import Form
from pathgauge.collector.sinks.prometheus.judge_label import judges_of
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.labels import Labels, TenantLabel
from pathgauge.collector.sinks.prometheus.live_series import LiveSeries, Place
from pathgauge.collector.sinks.prometheus.moment import Moment, MomentGauges
from pathgauge.collector.sinks.prometheus.process_metrics import process_metrics
from pathgauge.collector.sinks.prometheus.recent_scores import RecentScores
from pathgauge.collector.sinks.prometheus.scenario_gauges import (
    ScenarioChunks,
    ScenarioGauges,
    ScenarioState,
)
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.collector.sinks.prometheus.traffic.recording import NAME as TRAFFIC, TrafficRecording
from pathgauge.collector.sinks.prometheus.window_restore import WindowRestore

MAX_AHEAD_S = 3600.0
"""A clock that goes back by more was wrong before."""
CLOCK_CHECK_S = 60.0
"""Scorers on other machines may have a wrong clock all the time."""
DRIFTS_OF_STEP = 100
"""Streams of scores that a scrape looks at before publications go on."""


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
        self.registry = Registry()
        self._min_samples = min_samples
        self._clock = clock
        # Guards everything below: evaluations, reloads and scrapes change or read it together. A
        # scrape holds the lock while it copies, not while it writes text.
        self._lock = threading.Lock()
        self._scores = RecentScores(windows)
        self._changed = self._scores.changed
        self._publishes_at_once = metrics is None
        self._metrics = metrics or DurableMetrics()
        self._tenant = TenantLabel(tenants)
        self._moment_gauges = MomentGauges(
            self._tenant,
            min_samples,
            queues=dict(queues or {}),
            records=records,
            content_settings=content_settings or {},
        )
        self._gauges = ScenarioGauges(self._tenant, min_samples)
        self._chunks = ScenarioChunks(self._gauges)
        self._evaluation_metrics = EvaluationMetrics(self._metrics, self._tenant)
        limits, overflow = limits or LabelLimits(), telemetry.series_overflow
        self._limits = limits
        self._series = LiveSeries(
            self._metrics,
            self._evaluation_metrics,
            self._tenant,
            limits,
            overflow,
            changed=self._changed,
        )
        self._drift = DriftRecording(overflow)
        self._traffic = TrafficRecording(overflow)
        self._metrics.add_telemetry(telemetry)
        self._criteria = ActiveCriteria(evaluator, references)
        self._expected: Mapping[str, Expected] = {}
        self._latest = self._checked_at = -math.inf
        self._reloaded, self._reload_time = process_metrics(self.registry, traces_open)
        self.registry.register(self)
        self.configure(evaluator, references, drift=drift)
        self._reloaded_counts = False

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
        with self._lock:
            self._latest = max(self._latest, self._clock())
            before = self._criteria
            now_active = self._criteria = ActiveCriteria(evaluator, references)
            self._expected = expected_scenarios(
                now_active.references, self._expected, self._clock()
            )
            self._limits = limits or self._limits
            self._series.configure(now_active, self._limits)
            self._scores.forget(
                lambda series, metric: (
                    series not in self._series.last_scores
                    or now_active.invalidates(before, series, metric)
                )
            )
            self._drift.configure(now_active, drift)
            self._traffic.configure(
                None if drift is None else drift.limit_days,
                0 if drift is None else drift.max_agents,
            )
            self._start_expected_series()
            self._changed.add_all()
            self._reloaded_counts = True
        self._reloaded.set(1)
        self._reload_time.set(self._clock())

    def configure_failed(self) -> None:
        """Show that a reload was refused and the active configuration was kept."""
        self._reloaded.set(0)

    def restore(self, rows: Iterable[Row], past: Past, now: float) -> None:
        """Continue from what an earlier process stored; call it before anything is published.

        `rows` are those that `pending` returned, the latest of each key. `past` finds only
        configured tenants. Times after `now`, in Unix seconds, count as `now`.
        """
        with self._lock:
            rows = list(rows)
            self._metrics.restore(row for row in rows if row.key[0] not in (DRIFT, TRAFFIC))
            self._drift.restore(row for row in rows if row.key[0] == DRIFT)
            self._traffic.restore(row for row in rows if row.key[0] == TRAFFIC)
            self._series.restore(now)
            self._start_expected_series()
            windows = WindowRestore(
                self._scores,
                series=self._series,
                tenant=self._tenant,
                criteria=self._criteria,
                metrics=self._evaluation_metrics,
            )
            for evaluation in past(windows.wants):
                windows.take(evaluation, now)
            windows.finish()
            self._changed.add_all()

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Publish an evaluation; `now` is in Unix seconds."""
        with self._lock:
            place = self._place(evaluation, now)
            has_first_score = self._scores.record(evaluation, place, now)
            if evaluation.revision > 0:
                if has_first_score:  # late spans may bring a scenario: it is not silent
                    self._series.scored(place, now)
                return
            if evaluation.session is not None:
                self._evaluation_metrics.count_results(evaluation, place.labels, now)
            else:
                self._evaluation_metrics.count(evaluation, place.labels, now)
                self._traffic.record(evaluation, place.series, place.version, now)
            self._record_scores(evaluation, evaluation, place, now)

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Publish the results of judges for an evaluation; `now` is in Unix seconds."""
        with self._lock:
            evaluation = judged.evaluation
            place = self._place(evaluation, now)
            active = self._criteria.with_active_judges(evaluation, place.series.scenario)
            has_first_score = self._scores.record_judged(active, place, now, first=judged.first)
            if judged.first:
                self._evaluation_metrics.count_results(evaluation, place.labels, now)
                self._record_scores(evaluation, active, place, now)
                if not judged.failed_before and evaluation.session is None:
                    self._evaluation_metrics.count_failure(evaluation, place.labels, now)
            elif has_first_score:
                self._series.scored(place, now)

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        """Count a finished conversation; `now` is in Unix seconds."""
        names = Labels(
            result.agent or "",
            result.agent_version or "",
            result.reference.scenario_id,
            result.tenant,
        )
        with self._lock:
            self._latest = max(self._latest, now)
            labels = self._series.admit(names, len(result.scores), now)
            self._evaluation_metrics.count_conversation(result, labels)

    def withdraw(self, key: EvaluationKey) -> None:
        """Remove the scores of the evaluation `key` from the windows."""
        with self._lock:
            self._scores.withdraw(key)

    def pending(self) -> list[Row]:
        """All changes of counts that are not committed, for the store."""
        with self._lock:
            self._follow_clock()
        return [
            *self._metrics.pending(),
            *self._drift.pending(),
            *self._traffic.pending(self._clock()),
        ]

    @property
    def needs_commit(self) -> bool:
        """Whether there are changes that no event announces."""
        return (
            self._reloaded_counts
            or self._drift.has_pending
            or self._traffic.has_pending(self._clock())
        )

    def finish(self) -> None:
        """Have the next commits store everything, as the process stops; for any thread."""
        self._traffic.finish()

    def commit(self) -> None:
        """Show what `pending` returned last. No scrape sees a part of it."""
        self._reloaded_counts = False
        self._metrics.commit()

    def close(self) -> None:
        """Nothing is buffered; the registry can still be scraped."""

    def collect(self) -> Iterator[Metric]:
        """All series, as prometheus_client has them."""
        with self._lock:
            moment = self._moment()
            shown = dict.fromkeys(self._scores.series())
            states = self._states([*{**self._series.last_scores, **shown}])
        yield from self._metrics.render(moment.counts)
        for family in self._gauges.families(states):
            yield family.metric()
        windows = [
            window
            for state in states
            for window in state.windows
            if window.metric in state.aggregated
        ]
        for family in self._moment_gauges.families(moment, self._explained(moment), windows):
            yield family.metric()

    def parts(self, form: Form) -> Iterator[bytes | Block]:
        """All series as text. One thread at a time may write it: what is written is kept."""
        while not self._read_drift():
            pass
        with self._lock:
            moment = self._moment()
            changed = self._changed.take()
            if changed is None:
                self._chunks.start_again({*self._series.last_scores, *self._scores.series()})
            else:
                self._chunks.change(changed)
        yield from self._metrics.parts(moment.counts, form)
        yield from self._chunks.parts(form, self._read, self._scores.is_stale)
        windows = [*self._chunks.windows()]
        for family in self._moment_gauges.families(moment, self._explained(moment), windows):
            yield from family.parts(form)

    def current_scores(self) -> list[CurrentScore]:
        """The recent scores that the gauges show; for any thread."""
        with self._lock:
            now, criteria = self._clock(), self._criteria
            windows = self._scores.snapshot(now)
        return current_scores(windows, criteria.of, self._min_samples)

    def drifts(self) -> list[Explained]:
        """What is known about each stream of scores; for any thread."""
        with self._lock:
            return self._drift.explained(self._series.first_seen())

    def traffic(self) -> Sequence[TrafficStatus]:
        """What is known about the tool calls of each agent; for any thread."""
        with self._lock:
            return self._traffic.snapshot(self._clock())

    def _moment(self) -> Moment:
        now = self._clock()
        self._scores.advance(now)
        if self._publishes_at_once:
            self._metrics.pending()
            self._metrics.commit()
        versions = self._series.first_seen()
        return Moment(
            now,
            self._criteria,
            self._expected,
            self._metrics.published(),
            self._traffic.snapshot(now),
            self._drift.streams(),
            self._drift.limit_days,
            versions,
            tuple(self._series.last_scores),
            tuple(self._series.labels),
            self._evaluation_metrics.dialects(),
        )

    def _explained(self, moment: Moment) -> list[Explained]:
        """The streams of scores of a moment, with what explains their changes."""
        return self._drift.explain(moment.streams, moment.versions, self._lock)

    def _read_drift(self) -> bool:
        """Look at some of the streams of scores, a few at a time as all of them take long."""
        with self._lock:
            return self._drift.read(DRIFTS_OF_STEP)

    def _read(self, series: Sequence[Series]) -> list[ScenarioState]:
        with self._lock:
            return self._states(series)

    def _states(self, series: Sequence[Series]) -> list[ScenarioState]:
        """What the gauges of these series show, without those that are gone."""
        criteria, last_scores = self._criteria, self._series.last_scores
        states = []
        for one in series:
            windows = self._scores.of(one)
            if not windows and one not in last_scores:
                continue
            thresholds = criteria.thresholds(one.scenario) if one in last_scores else {}
            judge = partial(criteria.judge, one.scenario)
            aggregated = criteria.aggregated(one.scenario)
            last = last_scores.get(one)
            states.append(ScenarioState(one, windows, thresholds, aggregated, judge, last))
        return states

    def _place(self, evaluation: Evaluation, now: float) -> Place:
        self._latest = max(self._latest, now)
        of_session = evaluation.session is not None
        evaluator = self._criteria.evaluator
        criteria = evaluator.criteria_for(evaluation.match, session=of_session)
        return self._series.place(evaluation, max(len(evaluation.results), len(criteria)), now)

    def _record_scores(
        self, evaluation: Evaluation, active: Evaluation, place: Place, now: float
    ) -> None:
        self._drift.record(active, place.series, place.version, now)
        if evaluation.scored:
            self._series.scored(place, now)

    def _follow_clock(self) -> None:
        """When the clock was ahead, and was set back, times after the present count as the present.
        Otherwise nothing would be stale, idle or silent before that time has come.
        """
        now = self._clock()
        if abs(now - self._checked_at) < CLOCK_CHECK_S:
            return
        self._checked_at = now
        if self._latest <= now + MAX_AHEAD_S:
            return
        self._latest = now
        self._scores.set_back(now)
        self._series.set_back(now)
        self._expected = {
            scenario: one._replace(since=min(one.since, now))
            for scenario, one in self._expected.items()
        }

    def _start_expected_series(self) -> None:
        """Drop the series of replaced judges; start those of all active criteria at 0."""
        self._evaluation_metrics.keep_judges(judges_of(self._criteria))
        for labels in self._series.labels:
            self._evaluation_metrics.expect(labels, self._criteria.of(labels.scenario))
