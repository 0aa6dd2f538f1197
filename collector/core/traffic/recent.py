"""The last invocations of an agent one by one, to find when a change began and what else changed
then."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from sys import intern
from typing import Any, Final

INVOCATIONS: Final = 512
"""How many are kept. A change that began earlier is reported as old as the oldest of them."""
CHARACTERS: Final = 100_000
"""Fewer are kept if the names of their events are longer than this in all, each counted once."""

Events = tuple[str, ...]


class Recent:
    """The events of the last invocations, with their times."""

    def __init__(self) -> None:
        self._invocations: deque[Events] = deque()
        self._times: deque[float] = deque()
        self._uses: dict[str, int] = {}
        """How many of the invocations have each event."""
        self._characters = 0

    def __len__(self) -> int:
        return len(self._invocations)

    def add(self, events: Events, now: float) -> None:
        """Add an invocation. Invocations with the same events should share one tuple."""
        self._invocations.append(events)
        self._times.append(now)
        uses = self._uses
        for key in events:
            count = uses.get(key, 0)
            uses[key] = count + 1
            if not count:
                self._characters += len(key)
        # The newest one always stays.
        while self._is_too_much():
            self._drop_oldest()

    def _is_too_much(self) -> bool:
        kept = len(self._invocations)
        return kept > INVOCATIONS or (kept > 1 and self._characters > CHARACTERS)

    def _drop_oldest(self) -> None:
        self._times.popleft()
        for key in self._invocations.popleft():
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._uses[key]
                self._characters -= len(key)

    def set_back(self, now: float) -> None:
        """Later times count as `now`."""
        self._times = deque(min(at, now) for at in self._times)

    def after(self, start: int) -> Iterator[tuple[Events, float]]:
        """The invocations from position `start` on, oldest first."""
        return islice(zip(self._invocations, self._times, strict=True), start, None)

    def since(self, time: float) -> int:
        """Number of invocations at `time` or later."""
        return sum(at >= time for at in self._times)

    def change(self, happened: Callable[[Events], bool], gain: float, loss: float) -> int:
        """The position of the first invocation after the likeliest change: from there on, the
        product of `gain` for invocations with the event and `loss` for others is the largest.
        """
        yes, no = math.log(gain), math.log(loss)
        known: dict[int, float] = {}
        total, best, position = 0.0, -math.inf, len(self._invocations)
        for index, events in enumerate(reversed(self._invocations), start=1):
            step = known.get(id(events))
            if step is None:
                step = known[id(events)] = yes if happened(events) else no
            total += step
            if total > best:
                best, position = total, len(self._invocations) - index
        return position

    def state(self) -> dict[str, Any]:
        """All of it, as JSON values; equal events and invocations are written once."""
        shapes = {events: index for index, events in enumerate(dict.fromkeys(self._invocations))}
        names = dict.fromkeys(key for events in shapes for key in events)
        numbers = {key: number for number, key in enumerate(names)}
        return {
            "names": list(names),
            "shapes": [[numbers[key] for key in events] for events in shapes],
            "invocations": [shapes[events] for events in self._invocations],
            "times": list(self._times),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Recent:
        """What `state` was made of."""
        recent = cls()
        names = [intern(key) for key in state["names"]]
        shapes = [tuple(names[number] for number in events) for events in state["shapes"]]
        for index, at in zip(state["invocations"], state["times"], strict=True):
            recent.add(shapes[index], at)
        return recent
