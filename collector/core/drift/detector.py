"""The evidence that the mean of a stream of scores has fallen below a baseline.

It is a mixture of Shiryaev-Roberts e-detectors (Shin, Ramdas and Rinaldo, "E-detectors: a
nonparametric framework for sequential change detection", arXiv:2203.03532). Each of eight bets
multiplies its evidence by a factor whose mean is at most 1 while the conditional mean of each score
is at least the baseline. Before that, the weight of the score is added, which must be known before
the score is.

So, whatever the distribution of the scores, the expected evidence at any stopping time is at most
the head plus the sum of the weights. With weights in days, the mean time until the evidence reaches
A by chance is at least A less the head, in days, for any traffic and without a minimum of samples.

The baseline may be another one for each score, as long as it is chosen before the score is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

BETS = (0.02, 0.035, 0.06, 0.10, 0.18, 0.32, 0.56, 0.95)
"""Shares of the largest possible bet. Each is the best one against a fall by this share."""

MAX_EVIDENCE = 1e9
"""Bounds the state, and the time that evidence needs to vanish."""

MAX_BASELINE = 0.999
"""The largest bet is infinite for a baseline of 1. A lower baseline only makes alarms rarer."""


class Change(NamedTuple):
    """The most likely time since when scores are worse, and the scores since then."""

    since: float
    """The time of the first of these scores."""
    samples: int
    mean: float
    expected: float
    """Mean of the baselines of these scores."""
    value: float
    """Mean of the values that the scores stand for."""


class Detector:
    """The evidence about one stream. Its size is constant."""

    __slots__ = (
        "_evidence",
        "_expected",
        "_gains",
        "_is_winning",
        "_samples",
        "_since",
        "_sums",
        "_values",
    )

    def __init__(self, head: float = 0.0) -> None:
        """`head` is the evidence to start with."""
        self._evidence = [head] * len(BETS)
        self._gains = [0.0] * len(BETS)
        """How much each bet has won since its last low, as a logarithm (CUSUM)."""
        self._since = [0.0] * len(BETS)
        self._samples = [0] * len(BETS)
        self._sums = [0.0] * len(BETS)
        self._expected = [0.0] * len(BETS)
        self._values = [0.0] * len(BETS)
        self._is_winning = False
        """Whether a bet has won anything since its last low."""

    @property
    def evidence(self) -> float:
        """The evidence, in the unit of the weights."""
        return sum(self._evidence) / len(BETS)

    def update(
        self, score: float, baseline: float, weight: float, now: float, value: float
    ) -> float:
        """Add a score between 0 and 1, where more is better; returns the evidence.

        `weight` is the time since the score before, in days. `value` is what the score stands for,
        in the scale of its metric.
        """
        baseline = min(baseline, MAX_BASELINE)
        odds = (baseline - score) / (1 - baseline)
        if odds <= 0 and not self._is_winning:
            return self._lose(odds, weight)
        evidence, gains = self._evidence, self._gains
        samples, sums, expected, values = self._samples, self._sums, self._expected, self._values
        for k, bet in enumerate(BETS):
            factor = 1 + bet * odds
            evidence[k] = min((evidence[k] + weight) * factor, MAX_EVIDENCE)
            gain = gains[k] + math.log(factor)
            if gain <= 0:
                gains[k], samples[k] = 0.0, 0
                sums[k] = expected[k] = values[k] = 0.0
            else:
                if not samples[k]:
                    self._since[k] = now
                gains[k] = gain
                samples[k] += 1
                sums[k] += score
                expected[k] += baseline
                values[k] += value
        self._is_winning = any(samples)
        return self.evidence

    def _lose(self, odds: float, weight: float) -> float:
        """The usual case, and all that it changes: every bet loses, and none has anything to
        lose.
        """
        self._evidence = [
            min((evidence + weight) * (1 + bet * odds), MAX_EVIDENCE)
            for evidence, bet in zip(self._evidence, BETS, strict=True)
        ]
        return self.evidence

    def change(self) -> Change | None:
        """When scores began to be worse, as the bet that won most sees it. `None` if no bet has
        won anything.
        """
        if not self._is_winning:
            return None
        best = max(range(len(BETS)), key=self._gains.__getitem__)
        samples = self._samples[best]
        if not samples:
            return None
        sums = (self._sums[best], self._expected[best], self._values[best])
        return Change(self._since[best], samples, *(total / samples for total in sums))

    def state(self) -> list[list[float]]:
        """Everything, as JSON values."""
        return [
            list(numbers)
            for numbers in (
                self._evidence,
                self._gains,
                self._since,
                self._samples,
                self._sums,
                self._expected,
                self._values,
            )
        ]

    @classmethod
    def restored(cls, state: Sequence[Sequence[float]]) -> Detector:
        """A detector that continues from a `state`."""
        detector = cls()
        evidence, gains, since, samples, sums, expected, values = map(list, state)
        detector._evidence, detector._gains, detector._since = evidence, gains, since
        detector._samples = [int(number) for number in samples]
        detector._sums, detector._expected, detector._values = sums, expected, values
        detector._is_winning = any(detector._samples)
        return detector
