"""What changed: which misses cost more of the score during an incident than before.

The start of an incident is known only after its alarm. So the latest misses are kept one by one
until then, and older ones as sums. Both are bounded: rare misses are summed up as "other", and sums
from before an incident fade.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from sys import intern
from typing import NamedTuple

from pathgauge.collector.core.drift.watch import Episode, Watch
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.scorers.types import Json

MAX_LATEST = 100
"""So many misses are kept one by one,"""
MAX_PER_EVALUATION = 10
"""and so many of each evaluation; the rest of them is other. So there is always more than one
evaluation.
"""
MAX_MISSES = 64
"""So many different misses are summed up separately."""
MAX_ROWS = 10
FADE_AFTER = 10_000
"""The sums from before an incident are halved after so many evaluations."""


OTHER = Miss("other")


class Row(NamedTuple):
    """A miss that costs more since the change."""

    miss: Miss
    rate: float
    """How often per evaluation, since the change."""
    rate_before: float
    share: float
    """Its share of the additional loss of all misses."""


class _Late(NamedTuple):
    """A miss that is kept one by one."""

    evaluation: int
    """Number of the evaluation."""
    miss: Miss
    loss: float


class Tallies:
    """The misses of one series."""

    __slots__ = ("_before", "_evaluations", "_latest", "_moved", "_since")

    def __init__(self, evaluations: int = 0) -> None:
        """`evaluations` without any miss came before."""
        self._evaluations = evaluations
        self._latest: deque[_Late] = deque()
        self._moved = 0
        """Number of the last evaluation in `_before`."""
        self._before = Sums()
        self._since: Sums | None = None
        """The misses of the open incident."""

    def add(self, misses: Collection[Miss], loss: float) -> None:
        """Add an evaluation that lost so much of its score, by each of its misses equally."""
        self._evaluations += 1
        losses = _divided(misses, loss)
        if self._since is not None:
            self._since.evaluations += 1
            for miss, lost in losses:
                self._since.add(miss, lost)
            return
        self._latest.extend(_Late(self._evaluations, miss, lost) for miss, lost in losses)
        while len(self._latest) > MAX_LATEST:
            self._move()

    def begin(self, samples: int) -> None:
        """Begin an incident with the latest `samples` evaluations."""
        start = self._evaluations - samples
        while self._latest and self._latest[0].evaluation <= start:
            self._move()
        start = max(start, self._moved)
        self._before.evaluations += start - self._moved
        self._since = Sums(self._evaluations - start)
        for late in self._latest:
            self._since.add(late.miss, late.loss)
        self._latest.clear()
        self._moved = self._evaluations

    def end(self) -> None:
        """End the incident, whose misses are forgotten."""
        self._since = None
        self._moved = self._evaluations

    def follow(self, before: Episode | None, watch: Watch) -> None:
        """Begin or end the incident that the latest evaluation began or ended: `before` is the
        episode of the `watch` before it.
        """
        change, episode = watch.change(), watch.episode
        if before is None and episode is not None and change is not None:
            self.begin(change.samples)
        elif before is not None and episode is None:
            self.end()

    def sums(self) -> Sums:
        """All misses outside an incident. Nothing may be added after this."""
        while self._latest:
            self._move()
        self._before.evaluations += self._evaluations - self._moved
        self._moved = self._evaluations
        return self._before

    def changes(self, before: Sums | None = None) -> list[Row]:
        """What costs more since the open incident began than before it, or than in other
        evaluations; the most costly first.
        """
        before = before or self._before
        since = self._since
        if since is None or not since.evaluations:
            return []
        losses: dict[Miss, float] = {}
        for miss in since:
            additional = since.rates(miss)[1] - before.rates(miss)[1]
            if additional > 0:
                losses[miss] = additional
        total = sum(losses.values())
        ranked = sorted(losses, key=lambda miss: (-losses[miss], miss))
        return [
            Row(miss, since.rates(miss)[0], before.rates(miss)[0], losses[miss] / total)
            for miss in ranked[:MAX_ROWS]
        ]

    def _move(self) -> None:
        late = self._latest.popleft()
        self._before.evaluations += late.evaluation - self._moved
        self._moved = late.evaluation
        self._before.add(late.miss, late.loss)
        self._before.fade()

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        return [
            self._evaluations,
            self._moved,
            [[late.evaluation, *late.miss, late.loss] for late in self._latest],
            self._before.state(),
            None if self._since is None else self._since.state(),
        ]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Tallies:
        """Tallies that continue from a `state`."""
        evaluations, moved, latest, before, since = state
        tallies = cls()
        tallies._evaluations, tallies._moved = evaluations, moved
        tallies._latest.extend(
            _Late(evaluation, Miss(*miss), loss) for evaluation, *miss, loss in latest
        )
        tallies._before = Sums.restored(before)
        tallies._since = None if since is None else Sums.restored(since)
        return tallies


def _divided(misses: Collection[Miss], loss: float) -> list[tuple[Miss, float]]:
    """The loss of each miss."""
    each = loss / max(1, len(misses))
    losses = [
        (Miss(kind, intern(tool), intern(argument)), each)
        for kind, tool, argument in islice(misses, MAX_PER_EVALUATION)
    ]
    if len(misses) > MAX_PER_EVALUATION:
        losses.append((OTHER, each * (len(misses) - MAX_PER_EVALUATION)))
    return losses


class Sums:
    """Number and loss of each miss over some evaluations."""

    __slots__ = ("_sums", "evaluations")

    def __init__(self, evaluations: float = 0) -> None:
        self.evaluations = evaluations
        self._sums: dict[Miss, tuple[float, float]] = {}

    def __iter__(self) -> Iterator[Miss]:
        return iter(self._sums)

    def add(self, miss: Miss, loss: float) -> None:
        """Add a miss. Without room, the least costly one becomes other."""
        if miss not in self._sums and len(self._sums) >= MAX_MISSES:
            named = (one for one in self._sums if one != OTHER)
            least = min(named, key=lambda one: self._sums[one][1])
            self._increase(OTHER, *self._sums.pop(least))
        self._increase(miss, 1, loss)

    def rates(self, miss: Miss) -> tuple[float, float]:
        """Number and loss per evaluation."""
        count, loss = self._sums.get(miss, (0.0, 0.0))
        evaluations = max(1, self.evaluations)
        return count / evaluations, loss / evaluations

    def add_evaluation(self, misses: Collection[Miss], loss: float) -> None:
        """Add an evaluation that lost so much of its score, by each of its misses equally."""
        self.evaluations += 1
        for miss, lost in _divided(misses, loss):
            self.add(miss, lost)
        self.fade()

    def fade(self) -> None:
        """Give past evaluations half the weight if there are many."""
        if self.evaluations <= FADE_AFTER:
            return
        self.evaluations /= 2
        self._sums = {miss: (count / 2, loss / 2) for miss, (count, loss) in self._sums.items()}

    def _increase(self, miss: Miss, count: float, loss: float) -> None:
        known, lost = self._sums.get(miss, (0.0, 0.0))
        self._sums[miss] = known + count, lost + loss

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        return [self.evaluations, [[*miss, *sums] for miss, sums in self._sums.items()]]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Sums:
        """The sums of a `state`."""
        evaluations, rows = state
        sums = cls(evaluations)
        sums._sums = {Miss(*miss): (count, loss) for *miss, count, loss in rows}
        return sums
