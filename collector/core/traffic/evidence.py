"""Evidence that events happen more often than their bounds, in days.

Each event has a mixture of Shiryaev-Roberts e-detectors (Shin, Ramdas, Rinaldo: E-detectors, 2023),
as the drift of scores has. The detector of one bet multiplies its value with a factor for each
invocation: `factor` if the event did not happen, and `(1 - factor * (1 - limit)) / limit` if it
did. While the event's conditional probability is at most the limit, the expectation of that is at
most 1, whatever happened before, and however events depend on each other. Before each invocation,
the weight of the invocation is added: the days since the last one. So the expectation of the
evidence at any moment is at most the days that passed, and evidence of 365 days comes by chance at
most once in 365 days on average. The evidence of all events is their weighted mean, for which the
same is true.

An invocation has few events and there are many bounds. All events have the same factors for
invocations in which they do not happen, so the value of an event that never happened is the same
for all; only the excess over it is kept for each event, and decays by the factor. An invocation
costs time for its own events only, and the result is that of the simple form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pathgauge.collector.core.traffic.baseline import Bound

FACTORS: Final = (0.96, 0.85, 0.6, 0.2)
"""What a bet keeps after an invocation without the event. The complement is about the share of the
event against which the bet is best, if the limit is small.
"""


class Evidence:
    """The evidence against `bounds`, from the moment of creation on. It has no upper end: stop at
    the alarm.
    """

    def __init__(self, bounds: Sequence[Bound]) -> None:
        self._bounds = bounds
        self._places = {bound.key: place for place, bound in enumerate(bounds)}
        total = sum(bound.weight for bound in bounds) * len(FACTORS)
        self._weights = [bound.weight / total for bound in bounds]
        self._gains = [[gain(bound.limit, factor) for bound in bounds] for factor in FACTORS]
        self._invocations = 0
        self._updated = [0] * len(bounds)
        """By bound: how many invocations there were when its event happened last."""
        self._never = [0.0] * len(FACTORS)
        """By bet: the value of an event that never happened."""
        self._excess = [[0.0] * len(bounds) for _ in FACTORS]
        """By bet and bound: how much larger the value was when its event happened last."""
        self._total = [0.0] * len(FACTORS)
        """By bet: the weighted sum of the excess now."""

    @property
    def days(self) -> float:
        """The evidence in days, from all events."""
        return sum(self._never) / len(FACTORS) + sum(self._total)

    def places(self, keys: Iterable[str]) -> tuple[int, ...]:
        """Where the bounds `keys` are, without those that do not exist."""
        return tuple(self._places[key] for key in keys if key in self._places)

    def update(self, places: Sequence[int], weight: float) -> float:
        """Add an invocation that speaks against the bounds at `places`; the evidence in days after
        it. `weight`: days since the last invocation.
        """
        invocations, weights = self._invocations, self._weights
        missed = [invocations - self._updated[place] for place in places]
        for bet, factor in enumerate(FACTORS):
            grown = self._never[bet] + weight
            never = self._never[bet] = grown * factor
            total = self._total[bet] * factor
            excess, gains = self._excess[bet], self._gains[bet]
            for place, pause in zip(places, missed, strict=True):
                old = excess[place]
                if pause:
                    old *= factor**pause
                new = excess[place] = (grown + old) * gains[place] - never
                total += weights[place] * (new - old * factor)
            self._total[bet] = max(0.0, total)
        self._invocations = invocations + 1
        for place in places:
            self._updated[place] = invocations + 1
        return self.days

    def strongest(self) -> tuple[Bound, float]:
        """The bound against which there is most evidence, and the factor of its best bet."""
        place, bet = max(
            ((place, bet) for place in range(len(self._bounds)) for bet in range(len(FACTORS))),
            key=lambda pair: self._weighted(*pair),
        )
        return self._bounds[place], FACTORS[bet]

    def state(self) -> dict[str, Any]:
        """All of it but the bounds, as JSON values."""
        return {
            "invocations": self._invocations,
            "updated": list(self._updated),
            "never": list(self._never),
            "excess": [list(values) for values in self._excess],
            "total": list(self._total),
        }

    @classmethod
    def restore(cls, bounds: Sequence[Bound], state: Mapping[str, Any]) -> Evidence:
        """The evidence against the same bounds as before, in the same order."""
        evidence = cls(bounds)
        evidence._invocations, evidence._updated = state["invocations"], list(state["updated"])
        evidence._never, evidence._total = list(state["never"]), list(state["total"])
        evidence._excess = [list(values) for values in state["excess"]]
        return evidence

    def _weighted(self, place: int, bet: int) -> float:
        decay = FACTORS[bet] ** (self._invocations - self._updated[place])
        return self._weights[place] * self._excess[bet][place] * decay


def gain(limit: float, factor: float) -> float:
    """The factor of an invocation with the event, so that the expectation at the limit is 1."""
    return (1 - factor * (1 - limit)) / limit
