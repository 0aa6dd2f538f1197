"""A detector with its alarm: one alarm for each incident, not one for each crossing of a limit.

An alarm is raised when the evidence exceeds its limit. It ends when there is as much evidence for
recovery, from bets of the same kind in the other direction: that scores are above the middle
between the baseline and their mean since the change. Then the evidence starts from zero.

One bet would not do. Half of the largest one loses on average when noisy scores recover from a
small fall, such as from 0.5 to 0.6, and the alarm goes on until it has won by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field

from pathgauge.collector.core.drift.detector import Change, Detector
from pathgauge.collector.core.drift.policy import DAY_S, MAX_BACK_S, MAX_WEIGHT_DAYS, DriftPolicy
from pathgauge.scorers.types import Json

_RECOVERY_BETS = (0.1, 0.4, 0.7)
"""Shares of the largest possible bet. The small ones find a small recovery of noisy scores."""


@dataclass(slots=True)
class Episode:
    """An incident, from the change for the worse until recovery. Scores are from 0 to 1."""

    since: float
    raised: float
    samples: int
    mean: float
    expected: float
    """Mean of the baselines of the same scores."""
    value: float
    """Mean of the values that the scores stand for."""
    evidence: float
    """The most so far. It does not fall before the end, so that an alert does not flap."""
    bets: list[float] = field(default_factory=lambda: [1.0] * len(_RECOVERY_BETS))
    """What each of the bets on recovery has won since its last low, as a factor."""
    suspected: int = 0
    """Scores since one of them suggested a recovery, and their sums."""
    scores: float = 0.0
    baselines: float = 0.0
    values: float = 0.0

    @property
    def recovery(self) -> float:
        """The evidence for recovery."""
        return sum(self.bets) / len(self.bets)

    def add(self, score: float, baseline: float, value: float) -> float:
        """Add a score; returns the evidence for recovery.

        Scores count towards the mean of the incident as soon as nothing suggests a recovery any
        more. Without those of a suspicion that was wrong, the mean would stay as low as it was by
        chance when the alarm was raised, and less than a recovery would end it.
        """
        self.suspected += 1
        self.scores += score
        self.baselines += baseline
        self.values += value
        if self.recovery <= 1:
            self._count()
        gap = max(0.0, self.expected - self.mean)
        # Not the middle of mean and baseline itself: a series over all scenarios of an agent has
        # another baseline for each score.
        middle = max(baseline - gap / 2, baseline / 2)
        if middle > 0:  # no score is below a baseline of 0
            odds = score / middle - 1
            self.bets = [
                max(won, 1.0) * (1 + bet * odds)
                for won, bet in zip(self.bets, _RECOVERY_BETS, strict=True)
            ]
        return self.recovery

    def _count(self) -> None:
        """Count the scores since the suspicion began."""
        before = self.samples
        self.samples += self.suspected
        self.mean = (before * self.mean + self.scores) / self.samples
        self.expected = (before * self.expected + self.baselines) / self.samples
        self.value = (before * self.value + self.values) / self.samples
        self.suspected, self.scores, self.baselines, self.values = 0, 0.0, 0.0, 0.0

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        return list(astuple(self))

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Episode:
        """An episode that continues from a `state`."""
        fields = [*state]
        if not isinstance(fields[7], list):  # of a version with a single bet
            fields[7] = [fields[7]] * len(_RECOVERY_BETS)
        return cls(*fields)


class Watch:
    """The evidence about a stream of scores, and its alarm."""

    __slots__ = ("_detector", "_last", "episode", "episodes")

    def __init__(self, head_days: float = 0.0) -> None:
        self._detector = Detector(head_days)
        self._last: float | None = None
        self.episode: Episode | None = None
        """The open one."""
        self.episodes = 0
        """How many there were, with the open one."""

    @property
    def evidence(self) -> float:
        """The evidence that scores are below the baseline, in days; during an episode the most so
        far.
        """
        return self._detector.evidence if self.episode is None else self.episode.evidence

    @property
    def last(self) -> float | None:
        """When the last score came, in Unix seconds."""
        return self._last

    def observe(
        self, score: float, baseline: float, now: float, policy: DriftPolicy, value: float = 0.0
    ) -> bool:
        """Add a score between 0 and 1; returns whether it raised an alarm. `now` is in Unix
        seconds; time that runs backwards counts as no time, and goes on from there after a jump of
        more than an hour. `value` is what the score stands for.
        """
        last = self._last
        if last is not None and now < last:
            last = now = now if last - now > MAX_BACK_S else last
        weight = 0.0 if last is None else min((now - last) / DAY_S, MAX_WEIGHT_DAYS)
        self._last = now
        evidence = self._detector.update(score, baseline, weight, now, value)
        if self.episode is not None:
            self.episode.evidence = max(self.episode.evidence, evidence)
            if self.episode.add(score, baseline, value) >= policy.recovery:
                self.episode = None
                self._detector = Detector()
            return False
        change = self._detector.change() if evidence > policy.evidence_days else None
        if change is None:
            return False
        self.episode = Episode(change.since, now, *change[1:], evidence)
        self.episodes += 1
        return True

    def change(self) -> Change | None:
        """Since when scores are worse: since the start of the open episode, or else what the
        evidence so far suggests.
        """
        episode = self.episode
        if episode is None:
            return self._detector.change()
        return Change(episode.since, episode.samples, episode.mean, episode.expected, episode.value)

    def state(self) -> list[Json]:
        """Everything, as JSON values."""
        one = self.episode
        return [
            self._detector.state(),
            self._last,
            self.episodes,
            None if one is None else one.state(),
        ]

    @classmethod
    def restored(cls, state: Sequence[Json]) -> Watch:
        """A watch that continues from a `state`."""
        detector, last, episodes, episode = state
        watch = cls()
        watch._detector = Detector.restored(detector)
        watch._last = last
        watch.episodes = episodes
        watch.episode = None if episode is None else Episode.restored(episode)
        return watch
