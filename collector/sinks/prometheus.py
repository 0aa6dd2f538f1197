"""Evaluations come in, Prometheus series go out: counters and histograms for rules, windows over recent scores for people.

An evaluation is counted once, at revision 0; revisions and withdrawals move the windows only, as a counter cannot go back.
`docs/metrics.md` lists the series.
"""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from itertools import chain

from prometheus_client import CollectorRegistry, Gauge, GCCollector, Info, PlatformCollector, ProcessCollector, disable_created_metrics
from prometheus_client.core import Metric

from collector.conversations import Case
from collector.evaluator import Criterion, Evaluation, Evaluator
from collector.references import Match, ReferenceSet
from collector.sinks.gauges import (
    Queue,
    last_evaluations,
    ledger_counters,
    metric_info,
    queue_gauges,
    threshold_gauges,
    window_gauges,
)
from collector.sinks.instruments import Instruments
from collector.sinks.labels import LabelRegistry, Labels, Limits, label_value
from collector.telemetry import Ledger
from collector.windows import EvaluationKey, Series, Windows, series_of
from scorers.types import Reference


class PrometheusSink:
    """A sink with a registry of its own; `publish`, `configure` and scrapes may each run in a thread of their own."""

    def __init__(
        self,
        evaluator: Evaluator,
        references: ReferenceSet,
        ledger: Ledger,
        *,
        windows: Windows | None = None,
        limits: Limits | None = None,
        min_samples: int = 20,
        traces_open: Callable[[], int] = lambda: 0,
        queues: Mapping[str, Queue] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`min_samples` is what a window needs before it can breach a threshold; `clock` gives the Unix time of scrapes and reloads."""
        self.registry = CollectorRegistry()
        self._ledger = ledger
        self._min_samples = min_samples
        self._queues = dict(queues or {})
        self._clock = clock
        # Guards everything below: evaluations, reloads and scrapes change or read it together. A scrape holds it while it copies,
        # not while it writes text; the instruments are read without it, as prometheus_client locks each of them.
        self._lock = threading.Lock()
        self._windows = Windows() if windows is None else windows
        self._labels = LabelRegistry(limits or Limits())
        self._last_evaluations: dict[Series, float | None] = {}
        self._references: dict[str, Reference] = {}
        self._instruments = Instruments(self.registry)
        self._reloaded, self._reload_time = _process_metrics(self.registry, traces_open)
        self.registry.register(self)
        self.configure(evaluator, references)

    def configure(self, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Put other criteria and references in force. Thresholds follow at once, counts stay.

        The windows of scenarios whose reference changed, and of criteria that are gone, begin anew.
        """
        with self._lock:
            self._evaluator = evaluator
            before, self._references = self._references, {label_value(reference.scenario_id): reference for reference in references}
            self._windows.forget(lambda series, metric: self._is_outdated(series, metric, before))
            self._labels.configure(self._references)
            for labels in self._labels:
                self._instruments.expect(labels, self._criteria_for(labels.scenario))
        self._reloaded.set(1)
        self._reload_time.set(self._clock())

    def configure_failed(self) -> None:
        """Note that a reload was refused, so that what was in force stays."""
        self._reloaded.set(0)

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Take an evaluation in; `now` is in Unix seconds."""
        with self._lock:
            invocation, series = evaluation.invocation, series_of(evaluation)
            labels = self._admit(Labels(series.agent, invocation.agent_version or "", series.scenario), len(evaluation.results), now)
            # A window knows no versions: what found no room for its version still belongs to the window of its scenario.
            known = Series(labels.agent, self._labels.scenario(series.scenario))
            shown = known if known in self._last_evaluations else labels.series
            self._last_evaluations.setdefault(shown, None)
            self._windows.record(evaluation, now, shown)
            if evaluation.revision == 0:
                self._instruments.count(evaluation, labels, now)
                if evaluation.scored:
                    self._last_evaluations[shown] = now

    def publish_case(self, case: Case, now: float) -> None:
        """Count a finished conversation; `now` is in Unix seconds."""
        with self._lock:
            names = Labels(case.agent or "", case.agent_version or "", case.reference.scenario_id)
            self._instruments.count_case(case, self._admit(names, len(case.scores), now))

    def withdraw(self, key: EvaluationKey) -> None:
        """Take the scores of the evaluation `key` out of the windows."""
        with self._lock:
            self._windows.withdraw(key)

    def close(self) -> None:
        """Nothing is held back; the registry can still be scraped."""

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks its collectors at a scrape: everything that is rendered from the present state."""
        with self._lock:
            windows = self._windows.snapshot(self._clock())
            last = dict(self._last_evaluations)
            criteria = [*self._evaluator.criteria, *chain.from_iterable(self._evaluator.overrides.values())]
            thresholds = {series: self._thresholds(series.scenario) for series in last}
        yield from window_gauges(windows)
        yield from threshold_gauges(thresholds, windows, self._min_samples)
        yield metric_info(criteria)
        yield last_evaluations(last)
        yield from ledger_counters([*self._ledger, self._labels.overflow])
        yield from queue_gauges(self._queues)

    def _admit(self, names: Labels, criteria: int, now: float) -> Labels:
        gone = self._labels.retire(now)
        if gone:
            self._instruments.remove(gone, self._labels)
            live = {labels.series for labels in self._labels}
            self._last_evaluations = {series: time for series, time in self._last_evaluations.items() if series in live}
        return self._labels.admit(names, now, weight=max(1, criteria))

    def _is_outdated(self, series: Series, metric: str | None, before: Mapping[str, Reference]) -> bool:
        """Whether scores were taken against another reference than the present one, or by a criterion that is gone."""
        old, new = before.get(series.scenario), self._references.get(series.scenario)
        if old is not None and (new is None or new.version != old.version):
            return True
        return metric is not None and all(criterion.name != metric for criterion in self._criteria_for(series.scenario))

    def _criteria_for(self, scenario: str) -> tuple[Criterion, ...]:
        return self._evaluator.criteria_for(Match(self._references.get(scenario), unmatched="unknown_scenario"))

    def _thresholds(self, scenario: str) -> dict[str, Criterion]:
        return {criterion.name: criterion for criterion in self._criteria_for(scenario) if criterion.threshold is not None}


def _process_metrics(registry: CollectorRegistry, traces_open: Callable[[], int]) -> tuple[Gauge, Gauge]:
    disable_created_metrics()  # type: ignore[no-untyped-call]  # for the whole process: there is no switch per registry
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("pathgauge_build", "The running collector.", registry=registry)
    build.info({"version": version("pathgauge"), "pythonversion": platform.python_version()})
    Gauge("pathgauge_traces_open", "Traces that wait for more spans.", registry=registry).set_function(traces_open)
    return (
        Gauge("pathgauge_config_last_reload_successful", "Whether the last reload was put in force.", registry=registry),
        Gauge("pathgauge_config_last_reload_success_timestamp_seconds", "Unix time of the last successful reload.", registry=registry),
    )
