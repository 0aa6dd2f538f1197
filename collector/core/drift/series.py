"""One series of scores: whether they fall below their baseline, and whether the newest version of
the agent is worse than the version before it.

A value is added once and for good. A revision or a withdrawal of a value that was counted changes
nothing: evidence is a product over all values in the order in which they came, so none of them can
be taken back, and counting one twice would break the guarantee of the detector.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

from pathgauge.collector.core.drift.baseline import Baseline
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.policy import MAX_BACK_S, DriftPolicy
from pathgauge.collector.core.drift.quantiles import Quantiles
from pathgauge.collector.core.drift.tallies import Row, Tallies
from pathgauge.collector.core.drift.versions import Versions
from pathgauge.collector.core.drift.watch import Episode, Watch
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.scorers.types import Json

_LARGEST = 1e150
"""Larger values count as this, so that sums stay finite."""


class Bet(NamedTuple):
    """A score and the baseline that was set before it came. Both are between 0 and 1."""

    score: float
    baseline: float


class Series:
    """The scores of one agent, scenario, metric and judge."""

    __slots__ = (
        "_baseline",
        "_last",
        "_mean_before",
        "_quantiles",
        "_tallies",
        "measure",
        "versions",
        "watch",
    )

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self._baseline = Baseline()
        self._quantiles = None if measure.bounded else Quantiles()
        self._tallies: Tallies | None = None
        self._last = -math.inf
        self._mean_before: float | None = None
        """Mean score before the open episode."""
        self.watch = Watch()
        self.versions: Versions | None = None

    @property
    def last(self) -> float:
        """When the last value came, in Unix seconds."""
        return self._last

    @property
    def baseline(self) -> float | None:
        """The present baseline, as a score; `None` while it is being learned."""
        target = self.measure.target
        if target is not None or self._quantiles is None:
            return self._baseline.value if target is None else target
        learned = self._baseline.value
        return None if learned is None else min(learned, self._quantiles.highest_baseline)

    @property
    def mean_before(self) -> float | None:
        """Mean of the values of the last days before the change, or of all if there is none; for
        an unbounded metric, of last week.
        """
        if self._quantiles is not None:
            return self._quantiles.mean
        mean = self._known_before() if self.watch.episode is None else self._mean_before
        return None if mean is None else self.measure.value(mean)

    def measured_by(self, measure: Measure) -> bool:
        """Apply a measure, unless scores of it are not comparable with those so far. Evidence
        against one target says nothing about another, so it starts again.
        """
        if measure is self.measure:
            return True
        if not measure.comparable(self.measure):
            return False
        if measure.target != self.measure.target:
            if self.watch.episode is not None and self._tallies is not None:
                self._tallies.end()
            self.watch = Watch()
        self.measure = measure
        return True

    def observe(
        self,
        value: float,
        version: str | None,
        now: float,
        policy: DriftPolicy,
        misses: Collection[Miss] = (),
        *,
        pinned: str | None = None,
    ) -> Bet | None:
        """Add a value, in the scale of the metric; returns the bet on it, `None` while the
        baseline is being learned. `now` is in Unix seconds; a time up to an hour before the
        latest one counts as that. `pinned` is the version that the newest one is compared with;
        `None`: the previous one.
        """
        if now < self._last <= now + MAX_BACK_S:
            now = self._last
        self._last = now
        value = max(-_LARGEST, min(_LARGEST, value))
        score = self._score(value)
        bet = None
        if score is not None:
            before = self.watch.episode
            bet = self._bet(score, value, now, policy)
            self._tally(misses, 1 - score, before)
            if version is not None:
                self.versions = self.versions or Versions()
                self.versions.observe(
                    version, score, now, policy, value, misses=misses, pinned=pinned
                )
        if self._quantiles is not None and self.watch.episode is None:
            self._quantiles.add(value, now, policy)
        return bet

    def what_changed(self, *, of_version: bool = False) -> list[Row]:
        """Which misses cost more since the open episode began, or that of the newest version; the
        most costly first.
        """
        if of_version:
            return [] if self.versions is None else self.versions.misses.changes()
        return [] if self._tallies is None else self._tallies.changes()

    def value(self, score: float) -> float | None:
        """A mean score in the scale of the metric; for an unbounded metric the value that has this
        score.
        """
        if self._quantiles is None:
            return self.measure.value(score)
        return self._quantiles.number(score, higher_is_better=self.measure.higher_is_better)

    def _score(self, value: float) -> float | None:
        if self._quantiles is None:
            return self.measure.score(value)
        return self._quantiles.score(value, higher_is_better=self.measure.higher_is_better)

    def _bet(self, score: float, value: float, now: float, policy: DriftPolicy) -> Bet | None:
        baseline = self.baseline
        in_episode = self.watch.episode is not None
        raised = baseline is not None and self.watch.observe(score, baseline, now, policy, value)
        if in_episode:  # an incident must not become the new normal
            self._baseline.hold(now)
        else:
            self._baseline.add(score, now, policy)
        if raised:
            self._mean_before = self._known_before()
        return None if baseline is None else Bet(score, baseline)

    def _tally(self, misses: Collection[Miss], loss: float, before: Episode | None) -> None:
        """Count the misses of an evaluation; `before` is the episode before it."""
        if self._tallies is None:
            if not misses:
                return
            self._tallies = Tallies(max(0, int(self._baseline.scores.totals().samples) - 1))
        self._tallies.add(misses, loss)
        self._tallies.follow(before, self.watch)

    def _known_before(self) -> float | None:
        change = self.watch.change()
        if change is None:
            return self._baseline.mean_before(0, 0.0)
        return self._baseline.mean_before(change.samples, change.mean)

    def state(self) -> dict[str, Json]:
        """Everything, as JSON values. Floats are finite, so JSON keeps them exactly."""
        return {
            "measure": self.measure.state(),
            "last": self._last if math.isfinite(self._last) else None,
            "mean_before": self._mean_before,
            "watch": self.watch.state(),
            "baseline": self._baseline.state(),
            "versions": self.versions.state() if self.versions else None,
            "quantiles": self._quantiles.state() if self._quantiles else None,
            "misses": self._tallies.state() if self._tallies else None,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Json]) -> Series:
        """A series that continues from a `state`."""
        series = cls(Measure.restored(state["measure"]))
        series._last = -math.inf if state["last"] is None else state["last"]
        series._mean_before = state["mean_before"]
        series.watch = Watch.restored(state["watch"])
        series._baseline = Baseline.restored(state["baseline"])
        if state["versions"] is not None:
            series.versions = Versions.restored(state["versions"])
        if state["quantiles"] is not None:
            series._quantiles = Quantiles.restored(state["quantiles"])
        if state["misses"] is not None:
            series._tallies = Tallies.restored(state["misses"])
        return series
