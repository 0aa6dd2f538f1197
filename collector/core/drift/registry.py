"""All series of scores, and for each agent one more stream over all its scenarios.

The stream of an agent bets each score against the baseline of its own scenario. So it finds many
scenarios that get worse together, each by too little or with too little traffic to be noticed, and
a change of the mix of scenarios is no evidence. Scores without a scenario, and those of
`__other__`, which mixes several, have no common baseline and are ignored.

Memory is bounded by the maximum number of series. Without room, the series that had no value for
the longest time is dropped and counted.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain, islice

from pathgauge.collector.core.drift.drift import (
    Drift,
    SeriesKey,
    of_agent,
    of_series,
    of_version,
    with_adjusted_evidence,
)
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.policy import DriftPolicy
from pathgauge.collector.core.drift.series import Bet, Series
from pathgauge.collector.core.drift.tallies import Row
from pathgauge.collector.core.drift.watch import Watch
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.scorers.types import Json

State = Mapping[str, Json]
"""The state of one series, as JSON values."""
MIXED = "__other__"
"""The label value that stands for several agents or scenarios."""


class Drifts:
    """The drift of all scores that one process sees. Not thread-safe."""

    def __init__(self, policy: DriftPolicy | None = None, max_series: int = 10_000) -> None:
        self._policy = policy or DriftPolicy()
        self._max_series = max_series
        self._pinned: Mapping[str, str] = {}
        self._series: OrderedDict[SeriesKey, Series] = OrderedDict()
        """The one with the latest value is the last."""
        self._agents: dict[SeriesKey, Watch] = {}
        """By keys without a scenario. Each has at least one series."""
        self._scenarios: Counter[SeriesKey] = Counter()
        """How many series each agent has."""
        self._changed: dict[SeriesKey, None] = {}
        """In the order of the changes."""
        self._unread: dict[SeriesKey, None] = {}
        """What changed since `read` looked at it."""
        self._streams: dict[SeriesKey, tuple[Drift, ...]] = {}
        """The streams of each series as `read` found them; of an agent, also that of one scenario
        only.
        """
        self.dropped = 0
        """Series that were dropped for lack of room, since the start of the process."""

    def __len__(self) -> int:
        return len(self._series)

    def configure(
        self, policy: DriftPolicy, max_series: int, pinned: Mapping[str, str] | None = None
    ) -> None:
        """Apply other options and another limit.

        `pinned` has the version that the newest one is compared with, by agent, if it is not the
        previous one.
        """
        self._policy, self._max_series, self._pinned = policy, max_series, pinned or {}
        self._drop_longest_idle()

    def observe(
        self,
        key: SeriesKey,
        measure: Measure,
        value: float,
        now: float,
        *,
        version: str | None = None,
        misses: Collection[Miss] = (),
    ) -> bool:
        """Add a value, in the scale of the metric, `now` in Unix seconds. Returns whether the
        series began anew.

        Call it once for each evaluation and metric, at the first revision that has a value. Later
        revisions and withdrawals must not be passed: what was counted cannot be taken back.

        A series whose values are measured in another way than before begins anew. If that ends an
        alarm, the evidence of its agent begins anew, too: no alarm explains it any more.
        """
        if not key.scenario or MIXED in (key.agent, key.scenario) or not math.isfinite(value):
            return False
        agent, known = _agent_of(key), self._series.get(key)
        was_alarm = known is not None and known.watch.episode is not None
        series = known if known is not None and known.measured_by(measure) else Series(measure)
        self._series[key] = series
        self._scenarios[agent] += known is None
        if was_alarm and series.watch.episode is None and agent in self._agents:
            self._agents[agent] = Watch()
            self._change(agent)
        self._series.move_to_end(key)
        self._change(key)
        bet = series.observe(
            value, version, now, self._policy, misses, pinned=self._pinned.get(key.agent)
        )
        if bet is not None and self._scenarios[agent] > 1:
            self._observe_agent(agent, bet, series.last)
        self._drop_longest_idle()
        return known is not None and known is not series

    def snapshot(self) -> list[Drift]:
        """What is known about each series, each newest version, and each agent with more than one
        scenario, with the evidence adjusted for their number in each tenant.
        """
        return with_adjusted_evidence(self.streams(), self._policy.evidence_days)

    def streams(self) -> list[Drift]:
        """The same with the evidence of each alone."""
        self.read()
        agents = (key for key in self._agents if self._scenarios[key] > 1)
        return [stream for key in chain(self._series, agents) for stream in self._streams[key]]

    def read(self, limit: int | None = None) -> bool:
        """Look at what changed, so that `streams` need not: at `limit` series at most. Returns
        whether that was all.
        """
        for key in list(islice(self._unread, limit)):
            del self._unread[key]
            streams = self._read(key)
            if streams:
                self._streams[key] = streams
            else:
                self._streams.pop(key, None)
        return not self._unread

    def what_changed(self, key: SeriesKey, *, of_version: bool = False) -> list[Row]:
        """Which misses cost more since the open alarm of a series, or of its newest version; the
        most costly first.
        """
        series = self._series.get(key)
        return [] if series is None else series.what_changed(of_version=of_version)

    def forget(self, unwanted: Callable[[SeriesKey], bool]) -> None:
        """Drop the series for whose key `unwanted` returns true, with everything learned. An agent
        has an empty scenario.
        """
        for key in [key for key in (*self._series, *self._agents) if unwanted(key)]:
            self._drop(key)

    @property
    def has_pending(self) -> bool:
        """Whether `pending` would return anything."""
        return bool(self._changed)

    def pending(self, limit: int | None = None) -> list[tuple[SeriesKey, State | None]]:
        """What changed since the last call, for the store: keys and the state of each, JSON values;
        `None` if it was dropped. Of more than `limit`, those that have waited for longest.
        """
        keys = list(islice(self._changed, limit))
        for key in keys:
            del self._changed[key]
        return [(key, self._state(key)) for key in keys]

    def restore(self, rows: Iterable[tuple[SeriesKey, Mapping[str, Json]]]) -> None:
        """Continue from the latest states that an earlier process stored, in any order."""
        series: dict[SeriesKey, Series] = {}
        for key, state in rows:
            if key.scenario:
                series[key] = Series.restored(state)
            else:
                self._agents[key] = Watch.restored(state["watch"])
        self._series = OrderedDict(sorted(series.items(), key=lambda item: item[1].last))
        self._scenarios = Counter(map(_agent_of, self._series))
        self._unread.update(dict.fromkeys((*self._series, *self._agents)))
        self._drop_longest_idle()

    def _observe_agent(self, agent: SeriesKey, bet: Bet, now: float) -> None:
        watch = self._agents.get(agent)
        if watch is None:
            watch = self._agents[agent] = Watch()
        self._change(agent)
        watch.observe(bet.score, bet.baseline, now, self._policy, bet.score)

    def _drop_longest_idle(self) -> None:
        while len(self._series) > self._max_series:
            self._drop(next(iter(self._series)))
            self.dropped += 1

    def _drop(self, key: SeriesKey) -> None:
        """Drop a series, or an agent, and the agent without any series."""
        agent = _agent_of(key)
        if self._series.pop(key, None) is not None:
            self._change(key)
            self._scenarios[agent] -= 1
            if not self._scenarios[agent]:
                del self._scenarios[agent]
        gone = key == agent or agent not in self._scenarios
        if gone and self._agents.pop(agent, None) is not None:
            self._change(agent)

    def _change(self, key: SeriesKey) -> None:
        self._changed[key] = None
        self._unread[key] = None

    def _read(self, key: SeriesKey) -> tuple[Drift, ...]:
        if key in self._agents:
            return (of_agent(key, self._agents[key]),)
        if key not in self._series:
            return ()
        series = self._series[key]
        version = of_version(key, series)
        return (of_series(key, series), *(() if version is None else (version,)))

    def _state(self, key: SeriesKey) -> Mapping[str, Json] | None:
        if key in self._series:
            return self._series[key].state()
        return {"watch": self._agents[key].state()} if key in self._agents else None


def _agent_of(key: SeriesKey) -> SeriesKey:
    return SeriesKey(key.agent, "", key.metric, key.judge, key.tenant)
