"""Compares the newest version of an agent with the version before it.

The baseline of a new version is learned from the scores of the previous one, which may go on beside
it. So a version that is worse from its first day on is found, although its scores never fell.

A version is new when it is not among the last few that were seen. An older version that comes back
does not become the newest again: after a rollback, `last` of the newest version tells that it is
gone.

A release is not to blame for what happens later, or to both versions. So the comparison ends some
days after its start, once the newest version has a baseline of its own, but not during an alarm.
And while there is evidence that the previous version falls, too, or fell before it was replaced,
scores of the newest one are left out. That is decided before they come, so it can only make false
alarms rarer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pathgauge.collector.core.drift.baseline import Baseline
from pathgauge.collector.core.drift.policy import DAY_S, HOUR_S, DriftPolicy
from pathgauge.collector.core.drift.version_misses import VersionMisses
from pathgauge.collector.core.drift.watch import Watch
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.scorers.types import Json

MAX_VERSIONS = 10
"""So many names are remembered."""
FALLING_DAYS = 10.0
"""The previous version falls, too, with so much evidence. The newest one has hardly so much by
chance, so whether scores of the previous one suggest a similar fall matters from here on.
"""
_HINT_DAYS = 1.0
"""With less, scores of the previous version suggest nothing."""


class Versions:
    """The newest version of an agent, and the one that it is compared with."""

    __slots__ = (
        "_before",
        "_began",
        "_is_over",
        "_newest",
        "_previous",
        "_seen",
        "_steady",
        "misses",
        "watch",
    )

    def __init__(self) -> None:
        self._seen: list[str] = []
        """In the order of their first score. The last one is the newest."""
        self._newest = Baseline()
        self._previous: str | None = None
        self._before = Baseline()
        """The scores of the previous version."""
        self._began = 0.0
        """When the comparison began, in Unix seconds."""
        self._is_over = False
        self._steady = Watch()
        """Whether the version falls that others are compared with: the previous one, or without a
        comparison the newest one.
        """
        self.watch = Watch()
        self.misses = VersionMisses()

    @property
    def newest(self) -> str | None:
        """The version whose first score is the latest."""
        return self._seen[-1] if self._seen else None

    @property
    def previous(self) -> str | None:
        """The version that the newest one is compared with; `None` if there is only one version,
        or the comparison is over.
        """
        return None if self._is_over else self._previous

    @property
    def baseline(self) -> float | None:
        """The baseline of the newest version; `None` if there are too few scores to compare
        with.
        """
        return self._before.value

    @property
    def mean_before(self) -> float | None:
        """Mean of the scores of the previous version in the last days."""
        totals = self._before.scores.totals()
        return totals.mean if totals.samples else None

    def observe(
        self,
        version: str,
        score: float,
        now: float,
        policy: DriftPolicy,
        value: float = 0.0,
        *,
        misses: Collection[Miss] = (),
        pinned: str | None = None,
    ) -> None:
        """Add a score of a version, and the value that it stands for. Time must not run
        backwards. `pinned` is the version to compare with; `None`: the previous one.
        """
        if version not in self._seen:
            self._start(version, now, policy, pinned)
        if version == pinned and version not in (self._previous, self.newest):
            self.misses.compare_anew(is_alarm=self.watch.episode is not None)
            self._compare_with(version, Baseline(), now, policy)
        if version == self._previous:
            self._observe_previous(score, now, policy, misses)
        elif version == self.newest:
            self._observe_newest(score, now, policy, value, misses)
            self._end(now, policy)

    def _observe_previous(
        self, score: float, now: float, policy: DriftPolicy, misses: Collection[Miss]
    ) -> None:
        if self.previous is not None and self.baseline is not None:
            self._steady.observe(score, self.baseline, now, policy)
        if self._steady.episode is None:
            self.misses.add_before(misses, 1 - score, self._before)
        self._learn(self._before, score, now, policy)

    def _observe_newest(
        self,
        score: float,
        now: float,
        policy: DriftPolicy,
        value: float,
        misses: Collection[Miss],
    ) -> None:
        before, baseline, is_counted = self.watch.episode, self.baseline, True
        if self.previous is None:
            if self._newest.value is not None:
                self._steady.observe(score, self._newest.value, now, policy)
            is_counted = self._steady.episode is None
        elif baseline is not None:
            is_counted = not self._falls_too()
            if is_counted:
                self.watch.observe(score, baseline, now, policy, value)
        if is_counted:
            self.misses.add(misses, 1 - score, scores=self._newest, before=before, watch=self.watch)
        self._learn(self._newest, score, now, policy)

    def _falls_too(self) -> bool:
        """Whether the previous version falls, or seems to fall as far as the newest one."""
        if self._steady.evidence >= FALLING_DAYS:
            return True
        if self.watch.evidence < FALLING_DAYS:
            return False
        newest, previous = self.watch.change(), self._steady.change()
        if newest is None or previous is None or self._steady.evidence < _HINT_DAYS:
            return False
        middle = (newest.mean + newest.expected) / 2
        return previous.since >= newest.since - HOUR_S and previous.mean < middle

    def _learn(self, baseline: Baseline, score: float, now: float, policy: DriftPolicy) -> None:
        """An incident of either version must not become what others are compared with."""
        if self.watch.episode is None and self._steady.episode is None:
            baseline.add(score, now, policy)
        else:
            baseline.hold(now)

    def _end(self, now: float, policy: DriftPolicy) -> None:
        """End the comparison if it is time."""
        if self.previous is None or self._newest.value is None or self.watch.episode is not None:
            return
        if now - self._began >= policy.version_days * DAY_S:
            self._is_over, self._steady = True, Watch()

    def _start(self, version: str, now: float, policy: DriftPolicy, pinned: str | None) -> None:
        """A version is compared with the one before it, unless that one had too few scores or was
        found to be worse: then with the same one as that. So it is if that one is pinned.
        """
        previous, before = self._previous, self._before
        usable = self._newest.value is not None and self.watch.episode is None
        is_pinned = pinned is not None and previous == pinned
        replaced = bool(self._seen) and not is_pinned and (usable or previous is None)
        if replaced:
            previous, before = self._seen[-1], self._newest
        self.misses.next_version(replaced=replaced)
        self._compare_with(previous, before, now, policy)
        self._seen = [*self._seen[-MAX_VERSIONS + 1 :], version]
        self._newest = Baseline()

    def _compare_with(
        self, version: str | None, scores: Baseline, now: float, policy: DriftPolicy
    ) -> None:
        watched = self.newest if self.previous is None else self._previous
        self._previous, self._before = version, scores
        self._began, self._is_over = now, False
        if version != watched:
            self._steady = Watch()
        self.watch = Watch(policy.version_head_days)

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        return [
            list(self._seen),
            self._previous,
            self._newest.state(),
            self._before.state(),
            self.watch.state(),
            self._began,
            self._is_over,
            self._steady.state(),
            self.misses.state(),
        ]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Versions:
        """Versions that continue from a `state`."""
        seen, previous, newest, before, watch, *comparison = state
        versions = cls()
        versions._seen, versions._previous = list(seen), previous
        versions._newest, versions._before = Baseline.restored(newest), Baseline.restored(before)
        versions.watch = Watch.restored(watch)
        if comparison:  # a development version stored none
            versions._began, versions._is_over, steady, misses = comparison
            versions._steady = Watch.restored(steady)
            versions.misses = VersionMisses.restored(misses)
        return versions
