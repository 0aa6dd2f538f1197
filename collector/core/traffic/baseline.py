"""What is usual for an agent: how often each event may happen before it counts as divergence.

The bound of an event is an upper limit of its share of the invocations. It is the largest share
that the counts allow with an error probability of 0.1 % (Chernoff), plus a margin for what is of no
interest or wanders: three standard deviations of the share between hours, and never less than a
quarter of the share or one percentage point. Events too rare for a bound of their own share that of
all unlisted events of their kind; a tool that was never seen is one of these.

Only rises have bounds, since whatever falls lets something else rise: another path is taken,
another step follows. For tools the event "was not called" is added, which a tool that vanishes lets
rise directly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pathgauge.collector.core.traffic.counts import Counts
from pathgauge.collector.core.traffic.events import KINDS, Kind, kind_of

_CONFIDENCE = -math.log(0.001)
_MARGIN = 0.01
_RELATIVE_MARGIN = 0.25
_WANDER = 3.0
_LISTED_SHARE = 0.005
_LISTED_INVOCATIONS = 3
_MISSED_SHARE = 0.03
"""From this share on, a tool is missed when it is not called."""
_LARGEST_BOUND = 0.97
"""Events that are so common cannot rise."""

_WEIGHTS: Final[dict[Kind, float]] = {
    "tool": 0.25,
    "transition": 0.25,
    "path": 0.15,
    "calls": 0.15,
}
_MISSING_WEIGHT = 0.2
_UNLISTED_WEIGHT = 0.25
"""Of the weight of the kind."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper limit of how often an event happens, and the event's share of the evidence."""

    key: str
    limit: float
    weight: float


class Baseline:
    """The bounds that follow from `counts`, which must not change any more."""

    def __init__(self, counts: Counts) -> None:
        counts.close_block()
        self.counts = counts
        listed = [key for key in counts.events() if self._is_listed(key)]
        self._listed = frozenset(listed)
        self._missed = tuple(
            key for key in listed if kind_of(key) == "tool" and self.share(key) >= _MISSED_SHARE
        )
        self.bounds = tuple(self._bounds(listed))

    def share(self, key: str) -> float:
        """The share of the invocations in which the event happened."""
        return min(1.0, self.counts.count(key) / self.counts.invocations)

    def watched(self, events: Sequence[str]) -> list[str]:
        """The bounds that an invocation with these events speaks against, by key."""
        keys = [key if key in self._listed else unlisted(kind_of(key)) for key in events]
        happened = set(events)
        keys += [missing(key) for key in self._missed if key not in happened]
        return list(dict.fromkeys(keys))

    def _is_listed(self, key: str) -> bool:
        return self.counts.certain(key) >= max(
            _LISTED_INVOCATIONS, _LISTED_SHARE * self.counts.invocations
        )

    def _bounds(self, listed: Sequence[str]) -> list[Bound]:
        bounds: list[Bound] = []
        for kind in KINDS:
            keys = [key for key in listed if kind_of(key) == kind]
            known = sum(self.counts.certain(key) for key in keys)
            rest = min(1.0, max(0.0, self.counts.items(kind) - known) / self.counts.invocations)
            limits = [(key, self._limit(self.share(key), self.counts.wander(key))) for key in keys]
            weight = _WEIGHTS[kind]
            bounds.append(Bound(unlisted(kind), self._limit(rest, 0.0), _UNLISTED_WEIGHT * weight))
            bounds += _weighted(limits, (1 - _UNLISTED_WEIGHT) * weight)
        limits = [
            (missing(key), self._limit(1 - self.share(key), self.counts.wander(key)))
            for key in self._missed
        ]
        bounds += _weighted(limits, _MISSING_WEIGHT)
        return [bound for bound in bounds if bound.limit <= _LARGEST_BOUND]

    def _limit(self, share: float, wander: float) -> float:
        margin = max(_MARGIN, _RELATIVE_MARGIN * min(share, 1 - share), _WANDER * wander)
        return min(1.0, upper_limit(share, self.counts.invocations) + margin)


def unlisted(kind: Kind) -> str:
    """The key of all events of this kind that have no bound of their own."""
    return f"{kind} "


def missing(tool: str) -> str:
    """The key of invocations without this tool."""
    return f"no {tool}"


def upper_limit(share: float, invocations: float) -> float:
    """The largest probability that gives so small a share with a chance of 0.1 %, by Chernoff."""
    low, high = share, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if invocations * divergence(share, middle) > _CONFIDENCE:
            high = middle
        else:
            low = middle
    return high


def lower_limit(share: float, invocations: float) -> float:
    """The smallest probability that gives so large a share with a chance of 0.1 %, by Chernoff."""
    return 1 - upper_limit(1 - share, invocations)


def divergence(share: float, limit: float) -> float:
    """Kullback-Leibler divergence of two probabilities of one event, in nats."""
    result = 0.0
    if share > 0:
        result += share * math.log(share / limit) if limit > 0 else math.inf
    if share < 1:
        result += (1 - share) * math.log((1 - share) / (1 - limit)) if limit < 1 else math.inf
    return result


def _weighted(limits: Sequence[tuple[str, float]], weight: float) -> list[Bound]:
    return [Bound(key, limit, weight / len(limits)) for key, limit in limits]
