"""What a sink shows to scrapes and pages, while evaluations are published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from prometheus_client.core import Metric

from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore, current_scores
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.exposition.blocks import Block
from pathgauge.collector.sinks.prometheus.exposition.text import Form
from pathgauge.collector.sinks.prometheus.labels import TenantLabel
from pathgauge.collector.sinks.prometheus.moment import Moment, MomentGauges
from pathgauge.collector.sinks.prometheus.scenario_gauges import (
    ScenarioChunks,
    ScenarioGauges,
    ScenarioState,
)
from pathgauge.collector.sinks.prometheus.sink_state import SinkState

DRIFTS_OF_STEP = 100
"""Streams of scores that a scrape looks at before publications go on."""


class ShownSeries:
    """The series of a sink, as a collector of prometheus_client that writes its own parts."""

    def __init__(
        self,
        state: SinkState,
        tenant: TenantLabel,
        min_samples: int,
        *,
        gauges: MomentGauges,
        clock: Callable[[], float],
        commits_itself: bool,
    ) -> None:
        """`gauges` are those that each scrape writes again. With `commits_itself`, a scrape sees
        all counts at once; otherwise those that their owner has committed. Other parameters are
        those of `PrometheusSink`.
        """
        self._state = state
        self._min_samples = min_samples
        self._moment_gauges = gauges
        self._clock = clock
        self._commits_itself = commits_itself
        self._gauges = ScenarioGauges(tenant, min_samples)
        self._chunks = ScenarioChunks(self._gauges)

    def collect(self) -> Iterator[Metric]:
        """All series, as prometheus_client has them."""
        with self._state.lock:
            moment = self._moment()
            shown = dict.fromkeys(self._state.scores.series())
            states = self._states([*{**self._state.series.last_scores, **shown}])
        yield from self._state.metrics.render(moment.counts)
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
        state = self._state
        while not self._read_drift():
            pass
        with state.lock:
            moment = self._moment()
            changed = state.scores.changed.take()
            if changed is None:
                self._chunks.start_again({*state.series.last_scores, *state.scores.series()})
            else:
                self._chunks.change(changed)
        yield from state.metrics.parts(moment.counts, form)
        yield from self._chunks.parts(form, self._read, state.scores.is_stale)
        windows = [*self._chunks.windows()]
        for family in self._moment_gauges.families(moment, self._explained(moment), windows):
            yield from family.parts(form)

    def current_scores(self) -> list[CurrentScore]:
        """The recent scores that the gauges show; for any thread."""
        with self._state.lock:
            now, criteria = self._clock(), self._state.criteria
            windows = self._state.scores.snapshot(now)
        return current_scores(windows, criteria.of, self._min_samples)

    def drifts(self) -> list[Explained]:
        """What is known about each stream of scores; for any thread."""
        with self._state.lock:
            return self._state.drift.explained(self._state.series.first_seen())

    def traffic(self) -> Sequence[TrafficStatus]:
        """What is known about the tool calls of each agent; for any thread."""
        with self._state.lock:
            return self._state.traffic.snapshot(self._clock())

    def _moment(self) -> Moment:
        state, now = self._state, self._clock()
        state.scores.advance(now)
        if self._commits_itself:
            state.metrics.pending()
            state.metrics.commit()
        return Moment(
            now,
            state.criteria,
            state.expected,
            state.metrics.published(),
            state.traffic.snapshot(now),
            state.drift.streams(),
            state.drift.limit_days,
            state.series.first_seen(),
            tuple(state.series.last_scores),
            tuple(state.series.labels),
            state.evaluation_metrics.dialects(),
        )

    def _explained(self, moment: Moment) -> list[Explained]:
        """The streams of scores of a moment, with what explains their changes."""
        return self._state.drift.explain(moment.streams, moment.versions, self._state.lock)

    def _read_drift(self) -> bool:
        """Look at some of the streams of scores, a few at a time as all of them take long."""
        with self._state.lock:
            return self._state.drift.read(DRIFTS_OF_STEP)

    def _read(self, series: Sequence[Series]) -> list[ScenarioState]:
        with self._state.lock:
            return self._states(series)

    def _states(self, series: Sequence[Series]) -> list[ScenarioState]:
        """What the gauges of these series show, without those that are gone."""
        criteria, last_scores = self._state.criteria, self._state.series.last_scores
        states = []
        for one in series:
            windows = self._state.scores.of(one)
            if not windows and one not in last_scores:
                continue
            thresholds = criteria.thresholds(one.scenario) if one in last_scores else {}
            judge = partial(criteria.judge, one.scenario)
            aggregated = criteria.aggregated(one.scenario)
            last = last_scores.get(one)
            states.append(ScenarioState(one, windows, thresholds, aggregated, judge, last))
        return states
