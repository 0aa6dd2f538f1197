"""Evaluations come in, Prometheus series go out: counters and histograms for rules, windows over
recent scores for people.

An evaluation is counted once, at revision 0; revisions and withdrawals move the windows only, as a
counter cannot go back. Given `DurableMetrics`, the sink shows counts when their owner has stored and
settled them; by itself it shows them at once. `docs/metrics.md` lists the series.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    EvaluationKey,
    Evaluator,
)
from pathgauge.collector.core.evaluations.windows import Recent, Series, Windows, series_of
from pathgauge.collector.core.internal_telemetry import InternalTelemetry, Row
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.sinks.prometheus.baselines import Baselines
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.evaluation_metrics import Instruments
from pathgauge.collector.sinks.prometheus.judge_label import Judges, judges_of
from pathgauge.collector.sinks.prometheus.labels import (
    LabelLimits,
    LabelRegistry,
    Labels,
    TenantLabel,
    label_value,
)
from pathgauge.collector.sinks.prometheus.last_seen import LastSeen
from pathgauge.collector.sinks.prometheus.process_metrics import process_metrics
from pathgauge.collector.sinks.prometheus.regressions import (
    Regressions,
    known_version,
    regression_gauges,
)
from pathgauge.collector.sinks.prometheus.scrape_gauges import (
    Queue,
    expected_intervals,
    first_seen_versions,
    judge_info,
    last_evaluations,
    ledger_counters,
    metric_info,
    queue_gauges,
    threshold_gauges,
    window_gauges,
)
from pathgauge.collector.sinks.prometheus.window_restore import Refilling
from pathgauge.scorers.types import Reference


class PrometheusSink:
    """A sink with a registry of its own; `publish`, `configure` and scrapes may each run in a
    thread of their own.
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
        baseline_versions: Mapping[str, str] | None = None,
    ) -> None:
        """`min_samples` is what a window needs before it can breach a threshold; `clock` gives the
        Unix time of scrapes and reloads.

        Counts go into `metrics`; whoever gave them stores and settles them, with those of the
        ledger. With `tenants`, all that is said of agents has a label `tenant`. `baseline_versions`
        are compared with, by agent, instead of the version before the present one.
        """
        self.registry = CollectorRegistry()
        self._telemetry = telemetry
        self._tenant = TenantLabel(tenants)
        self._min_samples = min_samples
        self._queues = dict(queues or {})
        self._clock = clock
        # Guards everything below: evaluations, reloads and scrapes change or read it together. A
        # scrape holds it while it copies, not while it writes text.
        self._lock = threading.Lock()
        self._windows = Windows() if windows is None else windows
        self._judged = self._windows.another()
        limits = limits or LabelLimits()
        self._labels = LabelRegistry(limits, telemetry.series_overflow)
        self._last_evaluations: dict[Series, float | None] = {}
        self._references: dict[str, Reference] = {}
        self._judges = Judges(lambda scenario: (), ())
        self._settles = metrics is None
        self._metrics = DurableMetrics() if metrics is None else metrics
        self._instruments = Instruments(self._metrics, self._tenant)
        self._presence = LastSeen(self._metrics, self._tenant)
        baselines = Baselines(
            self._metrics, self._tenant, limits.max_series, telemetry.series_overflow
        )
        self._regressions = Regressions(baselines, min_samples)
        self._reloaded, self._reload_time = process_metrics(self.registry, traces_open)
        self.registry.register(self)
        self.configure(evaluator, references, baseline_versions)

    def configure(
        self,
        evaluator: Evaluator,
        references: ReferenceSet,
        baseline_versions: Mapping[str, str] | None = None,
    ) -> None:
        """Put other criteria, references and baselines in force. Thresholds follow at once, counts
        stay.

        The windows of scenarios whose reference changed, and of criteria that are gone or have
        another judge, begin anew.
        """
        with self._lock:
            before, judges = self._references, self._judges
            self._references = {
                label_value(reference.scenario_id): reference for reference in references
            }
            self._evaluator, criteria_for = (
                evaluator,
                partial(_criteria_for, evaluator, self._references),
            )
            self._judges = Judges(criteria_for, evaluator.criteria)
            for windows in (self._windows, self._judged):
                windows.forget(
                    lambda series, metric: self._is_outdated(series, metric, before, judges)
                )
            self._labels.configure(self._references)
            self._regressions.configure(criteria_for, self._references, baseline_versions or {})
            self._instruments.keep_judges(judges_of(self._criteria()))
            self._expect()
        self._reloaded.set(1)
        self._reload_time.set(self._clock())

    def configure_failed(self) -> None:
        """Note that a reload was refused, so that what was in force stays."""
        self._reloaded.set(0)

    def restore(self, rows: Iterable[Row], recent: Iterable[Recent], now: float) -> None:
        """Go on from what an earlier process stored; to be called before anything is published.

        `rows` are those of `DurableMetrics.pending`, the newest of each key; `recent` has the last recorded
        first, and only configured tenants. Whatever claims to be later than `now`, in Unix seconds,
        counts as of now.
        """
        with self._lock:
            self._metrics.restore(rows)
            self._labels.restore(self._presence, now)
            self._last_evaluations = {
                labels.series: None for labels in self._labels
            } | self._presence.last_scores()
            self._keep_live()
            self._instruments.keep_judges(judges_of(self._criteria()))
            self._expect()
            self._regressions.restore(now)
            refilling = Refilling(
                self._windows,
                self._judged,
                labels=self._labels,
                shown=self._last_evaluations,
                tenant=self._tenant,
                references=self._references,
                criteria_for=self._criteria_for,
            )
            for past in recent:
                refilling.take(past, now)
            refilling.finish()

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Take an evaluation in; `now` is in Unix seconds."""
        with self._lock:
            labels, shown, version = self._file(evaluation, now)
            self._windows.record(evaluation, now, shown, version)
            if evaluation.revision == 0:
                self._instruments.count(evaluation, labels, now)
                self._regressions.record(evaluation, shown, version, now)
                self._note_score(evaluation, shown, now)

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Take in what judges said of an evaluation; `now` is in Unix seconds."""
        with self._lock:
            evaluation = judged.evaluation
            labels, shown, version = self._file(evaluation, now)
            # Judges are late, and see few of many: among all evaluations theirs would be pushed out
            # before they have scores.
            in_force = self._in_force(evaluation, shown.scenario)
            self._judged.record(
                replace(in_force, revision=0) if judged.first else in_force, now, shown, version
            )
            if judged.first:
                self._instruments.count_results(evaluation, labels, now)
                self._regressions.record(in_force, shown, version, now)
                self._note_score(evaluation, shown, now)

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        """Count a finished conversation; `now` is in Unix seconds."""
        with self._lock:
            names = Labels(
                case.agent or "",
                case.agent_version or "",
                case.reference.scenario_id,
                self._tenant.of(case.tenant),
            )
            self._instruments.count_case(case, self._admit(names, len(case.scores), now))

    def withdraw(self, key: EvaluationKey) -> None:
        """Take the scores of the evaluation `key` out of the windows."""
        with self._lock:
            self._windows.withdraw(key)
            self._judged.withdraw(key)

    def pending(self) -> list[Row]:
        """What was counted, by the ledger as well, and is not settled."""
        return [*self._telemetry.pending(), *self._metrics.pending()]

    def commit(self) -> None:
        """Show what `pending` gave last, all of it at once: no scrape sees a part of it."""
        with self._lock:
            self._telemetry.commit()
            self._metrics.commit()

    def close(self) -> None:
        """Nothing is held back; the registry can still be scraped."""

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks its collectors at a scrape: everything that is rendered from
        the present state.
        """
        with self._lock:
            now = self._clock()
            snapshot = [*self._windows.snapshot(now), *self._judged.snapshot(now)]
            comparisons = self._regressions.comparisons(snapshot, now)
            last = dict(self._last_evaluations)
            criteria, judges = self._criteria(), self._judges
            thresholds = {series: self._thresholds(series.scenario) for series in last}
            references, versions = self._references.values(), self._presence.first_seen()
            if self._settles:
                self._metrics.pending()
                self._metrics.commit()
            tallied, counted = (
                self._metrics.shown(),
                [(counter, counter.items()) for counter in self._telemetry],
            )
        windows = [window for window in snapshot if window.version is None]
        yield from self._metrics.render(tallied)
        yield from window_gauges(windows, judges, self._tenant)
        yield from threshold_gauges(thresholds, windows, self._min_samples, self._tenant)
        yield from regression_gauges(comparisons, self._min_samples, self._tenant)
        yield metric_info(criteria)
        yield judge_info(criteria)
        yield last_evaluations(last, self._tenant)
        yield expected_intervals(references, last, self._tenant)
        yield first_seen_versions(versions, self._tenant)
        yield from ledger_counters(counted)
        yield from queue_gauges(self._queues)

    def _file(self, evaluation: Evaluation, now: float) -> tuple[Labels, Series, str | None]:
        """The labels of an evaluation, the series of its windows, and the version."""
        invocation, series = evaluation.invocation, series_of(evaluation)
        names = Labels(
            series.agent,
            invocation.agent_version or "",
            series.scenario,
            self._tenant.of(invocation.tenant),
        )
        labels = self._admit(
            names,
            max(len(evaluation.results), len(self._evaluator.criteria_for(evaluation.match))),
            now,
        )
        # A window knows no versions: what found no room for its version still belongs to the window
        # of its scenario.
        known = labels.series._replace(scenario=self._labels.scenario(series.scenario))
        shown = known if known in self._last_evaluations else labels.series
        self._last_evaluations.setdefault(shown, None)
        return labels, shown, known_version(labels.agent_version)

    def _note_score(self, evaluation: Evaluation, shown: Series, now: float) -> None:
        if evaluation.scored:
            self._last_evaluations[shown] = now
            self._presence.score(shown, now)

    def _admit(self, names: Labels, criteria: int, now: float) -> Labels:
        if self._labels.retire(now):
            self._keep_live()
        weight = max(1, criteria)
        labels = self._labels.admit(names, now, weight)
        self._presence.see(labels, now, weight)
        return labels

    def _keep_live(self) -> None:
        live = set(self._labels)
        kept = {labels.series for labels in live} | self._awaited()
        self._instruments.keep(live)
        self._presence.keep(live, kept)
        self._last_evaluations = {
            series: time for series, time in self._last_evaluations.items() if series in kept
        }

    def _awaited(self) -> set[Series]:
        """Where each scenario with an expected interval was evaluated last: its silence may be
        longer than that of a name that is gone.
        """
        newest: dict[tuple[str, str], tuple[float, Series]] = {}
        for series, last in self._last_evaluations.items():
            reference = self._references.get(series.scenario)
            if (
                last is not None
                and reference is not None
                and reference.expected_interval is not None
            ):
                key = series.tenant, series.scenario
                newest[key] = max(newest.get(key, (last, series)), (last, series))
        return {series for _, series in newest.values()}

    def _expect(self) -> None:
        for labels in self._labels:
            self._instruments.expect(labels, self._criteria_for(labels.scenario))

    def _in_force(self, evaluation: Evaluation, scenario: str) -> Evaluation:
        """The evaluation without the scores of judges that gave way to others while they were
        asked.
        """
        results = tuple(
            one
            for one in evaluation.results
            if one.criterion.judge == self._judges.of(scenario, one.criterion.name)
        )
        return (
            evaluation
            if len(results) == len(evaluation.results)
            else replace(evaluation, results=results)
        )

    def _is_outdated(
        self, series: Series, metric: str | None, before: Mapping[str, Reference], judges: Judges
    ) -> bool:
        """Whether scores were taken against another reference than the present one, by another
        judge, or by a criterion that is gone.
        """
        old, new = before.get(series.scenario), self._references.get(series.scenario)
        if old is not None and (new is None or new.version != old.version):
            return True
        if metric is None:
            return False
        if judges.of(series.scenario, metric) != self._judges.of(series.scenario, metric):
            return True
        return all(criterion.name != metric for criterion in self._criteria_for(series.scenario))

    def _criteria(self) -> list[Criterion]:
        return [*self._evaluator.criteria, *chain.from_iterable(self._evaluator.overrides.values())]

    def _criteria_for(self, scenario: str) -> tuple[Criterion, ...]:
        return _criteria_for(self._evaluator, self._references, scenario)

    def _thresholds(self, scenario: str) -> dict[str, Criterion]:
        return {
            criterion.name: criterion
            for criterion in self._criteria_for(scenario)
            if criterion.threshold is not None
        }


def _criteria_for(
    evaluator: Evaluator, references: Mapping[str, Reference], scenario: str
) -> tuple[Criterion, ...]:
    return evaluator.criteria_for(Match(references.get(scenario), unmatched="unknown_scenario"))
