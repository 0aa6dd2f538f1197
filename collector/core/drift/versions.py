"""Compares the newest version of an agent with the version before it.

The baseline of a new version is learned from the scores of the previous one, which may go on beside
it. So a version that is worse from its first day on is found, although its scores never fell.

A version is new when it is not among the last few that were seen. An older version that comes back
does not become the newest again: after a rollback, `last` of the newest version tells that it is
gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathgauge.collector.core.drift.baseline import Baseline
from pathgauge.collector.core.drift.policy import DriftPolicy
from pathgauge.collector.core.drift.watch import Watch
from pathgauge.scorers.types import Json

MAX_VERSIONS = 10
"""So many names are remembered."""


class Versions:
    """The newest version of an agent, and the one that it is compared with."""

    __slots__ = ("_before", "_newest", "_previous", "_seen", "watch")

    def __init__(self) -> None:
        self._seen: list[str] = []
        """In the order of their first score. The last one is the newest."""
        self._newest = Baseline()
        self._previous: str | None = None
        self._before = Baseline()
        """The scores of the previous version."""
        self.watch = Watch()

    @property
    def newest(self) -> str | None:
        """The version whose first score is the latest."""
        return self._seen[-1] if self._seen else None

    @property
    def previous(self) -> str | None:
        """The version that the newest one is compared with."""
        return self._previous

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
        pinned: str | None = None,
    ) -> None:
        """Add a score of a version, and the value that it stands for. Time must not run
        backwards. `pinned` is the version to compare with; `None`: the previous one.
        """
        if version not in self._seen:
            self._start(version, policy, pinned)
        if version == pinned and version not in (self._previous, self.newest):
            self._compare_with(version, Baseline(), policy)
        if version == self._previous:
            self._learn(self._before, score, now, policy)
        elif version == self.newest:
            if self.baseline is not None:
                self.watch.observe(score, self.baseline, now, policy, value)
            self._learn(self._newest, score, now, policy)

    def _learn(self, baseline: Baseline, score: float, now: float, policy: DriftPolicy) -> None:
        if self.watch.episode is None:
            baseline.add(score, now, policy)
        else:
            baseline.hold(now)

    def _start(self, version: str, policy: DriftPolicy, pinned: str | None) -> None:
        """A version is compared with the one before it, unless that one had too few scores or was
        found to be worse: then with the same one as that. So it is if that one is pinned.
        """
        previous, before = self._previous, self._before
        usable = self._newest.value is not None and self.watch.episode is None
        is_pinned = pinned is not None and previous == pinned
        if self._seen and not is_pinned and (usable or previous is None):
            previous, before = self._seen[-1], self._newest
        self._seen = [*self._seen[-MAX_VERSIONS + 1 :], version]
        self._newest = Baseline()
        self._compare_with(previous, before, policy)

    def _compare_with(self, version: str | None, scores: Baseline, policy: DriftPolicy) -> None:
        self._previous, self._before = version, scores
        self.watch = Watch(policy.version_head_days)

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        return [
            list(self._seen),
            self._previous,
            self._newest.state(),
            self._before.state(),
            self.watch.state(),
        ]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Versions:
        """Versions that continue from a `state`."""
        seen, previous, newest, before, watch = state
        versions = cls()
        versions._seen, versions._previous = list(seen), previous
        versions._newest, versions._before = Baseline.restored(newest), Baseline.restored(before)
        versions.watch = Watch.restored(watch)
        return versions
