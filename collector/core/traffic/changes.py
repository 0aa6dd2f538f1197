"""What is different since a change: the events whose shares differ most from the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pathgauge.collector.core.traffic.baseline import divergence
from pathgauge.collector.core.traffic.counts import Counts
from pathgauge.collector.core.traffic.events import Kind, kind_of, name_of

LARGEST: Final = 10
_EVIDENT = 3.0
"""Log likelihood ratio below which a difference may be chance."""
_NEW_SHARE = 0.005
"""An event that was rarer is called new."""


@dataclass(frozen=True, slots=True)
class Change:
    """One event that became more or less frequent."""

    kind: Kind
    name: str
    direction: Literal["new", "more", "fewer", "vanished"]
    before: float
    """Share of the invocations of the baseline."""
    since: float
    """Share of the invocations since the change."""
    share: float
    """Share of the divergence of all changed events. Events overlap, so that this ranks them, and
    is not a sum of independent parts.
    """


def changes(before: Counts, since: Counts) -> tuple[Change, ...]:
    """The events that changed most, at most ten, largest first."""
    found: list[tuple[float, str, float, float]] = []
    for key in dict.fromkeys([*before.events(), *since.events()]):
        old = min(1.0, before.count(key) / before.total)
        new = min(1.0, since.count(key) / since.total)
        size = _size(old, new, before.total, since.total)
        if size * since.total >= _EVIDENT:
            found.append((size, key, old, new))
    found.sort(key=lambda change: (-change[0], change[1]))
    total = sum(size for size, *_ in found)
    return tuple(
        Change(kind_of(key), name_of(key), _direction(old, new), old, new, size / total)
        for size, key, old, new in found[:LARGEST]
    )


def _size(old: float, new: float, invocations_before: float, invocations_since: float) -> float:
    """Divergence of the share since from the share before, both moved off zero and one by half a
    invocation.
    """
    smooth_old = (old * invocations_before + 0.5) / (invocations_before + 1)
    smooth_new = (new * invocations_since + 0.5) / (invocations_since + 1)
    return divergence(smooth_new, smooth_old)


def _direction(old: float, new: float) -> Literal["new", "more", "fewer", "vanished"]:
    if new > old:
        return "new" if old < _NEW_SHARE else "more"
    return "vanished" if new == 0 else "fewer"
