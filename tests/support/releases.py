"""Simulated releases: scores of two versions that arrive one by one, looked at all the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from pathgauge.collector.core.verdicts.confidence import Differences, Interval
from pathgauge.collector.core.verdicts.pairing import pairs
from pathgauge.collector.core.verdicts.scale import Scale

Draw = Callable[[Random], float]


ERROR = 0.05
SHARE = Scale(0.0, 1.0, higher_is_better=True)


def passes(share: float) -> Draw:
    """A score of 1 with this probability, else 0."""
    return lambda random: float(random.random() < share)


@dataclass(frozen=True, slots=True)
class Rollout:
    """How the results of two versions arrive."""

    baseline: Draw
    candidate: Draw
    before: int = 0
    """Results of the baseline before the candidate has any."""
    each: int = 1
    """Results of the baseline for each one of the candidate, since then."""
    scale: Scale = SHARE

    def differences(self, random: Random, results: int) -> Iterator[tuple[int, Differences]]:
        """After each pair: the number of results of the candidate, and all differences."""
        found, arrived = Differences(), 0

        def values() -> Iterator[tuple[bool, float]]:
            nonlocal arrived
            for _ in range(self.before):
                yield False, self.baseline(random)
            while arrived < results:
                arrived += 1
                yield True, self.candidate(random)
                for _ in range(self.each):
                    yield False, self.baseline(random)

        for pair in pairs(values()):
            found.add(self.scale.difference(pair))
            yield arrived, found

    def results_until_worse(self, random: Random, most: int) -> int | None:
        """Results of the candidate until it is found to be worse."""
        return self._results_until(random, most, 0.0, lambda found: found.high < 0)

    def results_until_not_worse(self, random: Random, most: int, margin: float) -> int | None:
        """Results of the candidate until it is certainly worse by less than `margin`."""
        return self._results_until(random, most, -margin, lambda found: found.low > -margin)

    def _results_until(
        self, random: Random, most: int, mean: float, is_decided: Callable[[Interval], bool]
    ) -> int | None:
        """`mean` has to be refuted first, which takes less time than the interval."""
        for number, one in self.differences(random, most):
            if one.refutes(mean, ERROR) and is_decided(one.interval(ERROR)):
                return number
        return None

    def is_ever_wrong(self, random: Random, results: int, difference: float = 0.0) -> bool:
        """Whether an interval ever leaves out the true difference."""
        return any(one.refutes(difference, ERROR) for _, one in self.differences(random, results))
