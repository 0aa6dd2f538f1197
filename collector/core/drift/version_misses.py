"""What explains the loss of the newest version: its misses since the change, compared with those of
the version before it, which is another one to compare with than the time before the change.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pathgauge.collector.core.drift.baseline import Baseline
from pathgauge.collector.core.drift.tallies import Row, Sums, Tallies
from pathgauge.collector.core.drift.watch import Episode, Watch
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.scorers.types import Json


class VersionMisses:
    """The misses of two versions. Without any miss it takes no memory."""

    __slots__ = ("_before", "_newest")

    def __init__(self) -> None:
        self._newest: Tallies | None = None
        self._before: Sums | None = None

    def add(
        self,
        misses: Collection[Miss],
        loss: float,
        *,
        scores: Baseline,
        before: Episode | None,
        watch: Watch,
    ) -> None:
        """Add an evaluation of the newest version, with its scores so far. `before` is
        the episode of the `watch` before it.
        """
        if self._newest is None:
            if not misses:
                return
            self._newest = Tallies(int(scores.scores.totals().samples))
        self._newest.add(misses, loss)
        self._newest.follow(before, watch)

    def add_before(self, misses: Collection[Miss], loss: float, scores: Baseline) -> None:
        """Add an evaluation of the version before, with its scores so far."""
        if self._before is None:
            if not misses:
                return
            self._before = Sums(scores.scores.totals().samples)
        self._before.add_evaluation(misses, loss)

    def next_version(self, *, replaced: bool) -> None:
        """Another version is the newest; it is compared with the last one if that is `replaced`."""
        if replaced:
            self._before = None if self._newest is None else self._newest.sums()
        self._newest = None

    def compare_anew(self, *, is_alarm: bool) -> None:
        """Another version is compared with, of which nothing is known. That ends an alarm."""
        self._before = None
        if is_alarm and self._newest is not None:
            self._newest.end()

    def changes(self) -> list[Row]:
        """Which misses cost more since the open episode began, the most costly first."""
        return [] if self._newest is None else self._newest.changes(self._before or Sums())

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        return [
            None if self._newest is None else self._newest.state(),
            None if self._before is None else self._before.state(),
        ]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> VersionMisses:
        """Misses that continue from a `state`."""
        newest, before = state
        misses = cls()
        misses._newest = None if newest is None else Tallies.restored(newest)
        misses._before = None if before is None else Sums.restored(before)
        return misses
