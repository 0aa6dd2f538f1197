"""Counts events of many invocations in bounded memory.

Each kind of event has a Space-Saving sketch (Metwally et al. 2005) of fixed capacity: a new event
takes the place of the rarest one and inherits its count as possible error. A count is never too
small, and never too large by more than `items / capacity` (all events of the kind by the capacity);
each counter knows its own bound.

How much the share of an event wanders is measured as well. Invocations are grouped into blocks of
about an hour; if shares were constant, two invocations of one block would agree no more often than
two invocations of different blocks. The excess is the variance of the share, without what chance
adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pathgauge.collector.core.traffic.events import KINDS, Kind, kind_of

CAPACITY: Final[Mapping[Kind, int]] = {"tool": 48, "transition": 96, "path": 48, "calls": 16}

_HOUR = 3600.0
_BLOCK_INVOCATIONS = 20
"""A block of an hour with fewer invocations goes on, up to six hours."""
_BLOCK_LIMIT = 1000
"""A block ends after so many invocations or different events."""


class Counts:
    """Events of the invocations since `started`. Times are Unix seconds."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.ended = started
        self.invocations = 0.0
        self._paired = 0.0
        """Invocations in blocks of at least two."""
        self._items = dict.fromkeys(KINDS, 0.0)
        self._cells: dict[Kind, dict[str, list[float]]] = {kind: {} for kind in KINDS}
        """By event: count, agreement within blocks, possible error. Agreement: for each invocation
        with the event, the share of the others in its block that have it too.
        """
        self._block_started = started
        self._block_invocations = 0
        self._block: dict[str, int] = {}

    @property
    def total(self) -> float:
        """Invocations counted, those of the block that has not ended included."""
        return self.invocations + self._block_invocations

    def add(self, events: Sequence[str], now: float) -> None:
        """Count one invocation."""
        self.ended = now
        if self._block_ends(now):
            self.close_block()
        if not self._block_invocations:
            self._block_started = now
        self._block_invocations += 1
        block = self._block
        for key in events:
            block[key] = block.get(key, 0) + 1

    def set_back(self, now: float) -> None:
        """Later times count as `now`."""
        self.started, self.ended = min(self.started, now), min(self.ended, now)
        self._block_started = min(self._block_started, now)

    def close_block(self) -> None:
        """Add the invocations of the last block, so that queries see all."""
        invocations = self._block_invocations
        self.invocations += invocations
        self._paired += invocations if invocations > 1 else 0
        for key, count in self._block.items():
            self._count(key, count, count * (count - 1) / max(1, invocations - 1), 0.0)
        self._block, self._block_invocations = {}, 0

    def merge(self, other: Counts, share: float = 1.0) -> None:
        """Add `share` of what `other` counted."""
        self.close_block()
        other.close_block()
        self.started = min(self.started, other.started)
        self.ended = max(self.ended, other.ended)
        self.invocations += share * other.invocations
        self._paired += share * other._paired
        for kind, cells in other._cells.items():
            known = 0.0
            for key, (count, agreed, error) in cells.items():
                self._count(key, share * count, share * agreed, share * error)
                known += share * count
            self._items[kind] += share * other._items[kind] - known

    def events(self) -> list[str]:
        """All events that have a counter."""
        counted = dict.fromkeys(key for cells in self._cells.values() for key in cells)
        return list(counted | dict.fromkeys(self._block))

    def count(self, key: str) -> float:
        """In how many invocations the event happened; 0 without a counter."""
        return self._cells[kind_of(key)].get(key, (0.0,))[0] + self._block.get(key, 0)

    def certain(self, key: str) -> float:
        """In how many invocations the event happened at least."""
        count, _, error = self._cells[kind_of(key)].get(key, (0.0, 0.0, 0.0))
        return count - error

    def items(self, kind: Kind) -> float:
        """Number of events of this kind; an invocation may have several."""
        return self._items[kind]

    def wander(self, key: str) -> float:
        """Standard deviation of the event's share between blocks, beyond sampling."""
        if self._paired <= 0:
            return 0.0
        count, agreed, _ = self._cells[kind_of(key)].get(key, (0.0, 0.0, 0.0))
        share = min(1.0, count / self.invocations)
        across = share**2 - share * (1 - share) / self.invocations
        return math.sqrt(max(0.0, agreed / self._paired - across))

    def state(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return {
            "started": self.started,
            "ended": self.ended,
            "invocations": self.invocations,
            "paired": self._paired,
            "items": dict(self._items),
            "cells": [
                [key, *cell] for cells in self._cells.values() for key, cell in cells.items()
            ],
            "block_started": self._block_started,
            "block_invocations": self._block_invocations,
            "block": dict(self._block),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Counts:
        """What `state` was made of."""
        counts = cls(state["started"])
        counts.ended, counts.invocations, counts._paired = (
            state["ended"],
            state["invocations"],
            state["paired"],
        )
        counts._items.update(state["items"])
        for key, *cell in state["cells"]:
            counts._cells[kind_of(key)][key] = cell
        counts._block_started = state["block_started"]
        counts._block_invocations = state["block_invocations"]
        counts._block = dict(state["block"])
        return counts

    def _block_ends(self, now: float) -> bool:
        if self._block_invocations >= _BLOCK_LIMIT or len(self._block) >= _BLOCK_LIMIT:
            return True
        age = now - self._block_started
        return age >= 6 * _HOUR or (age >= _HOUR and self._block_invocations >= _BLOCK_INVOCATIONS)

    def _count(self, key: str, count: float, agreed: float, error: float) -> None:
        kind = kind_of(key)
        cells = self._cells[kind]
        self._items[kind] += count
        cell = cells.get(key)
        if cell is None:
            cell = cells[key] = [0.0, 0.0, self._make_room(cells, CAPACITY[kind])]
            cell[0] = cell[2]
        cell[0] += count
        cell[1] += agreed
        cell[2] += error

    @staticmethod
    def _make_room(cells: dict[str, list[float]], capacity: int) -> float:
        """The count of the rarest event, which loses its counter; 0 if one is free."""
        if len(cells) < capacity:
            return 0.0
        rarest = min(cells, key=lambda key: cells[key][0])
        return cells.pop(rarest)[0]
