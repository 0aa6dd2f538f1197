"""A simulated agent whose mix of tasks wanders: traffic for tests of drift without references.

Eight tasks with Zipf-like shares; each run is one of them, sometimes with an optional tool and
sometimes with a repeated call. The mix wanders from hour to hour (log shares: an autoregression
with standard deviation 0.2), and differs between day and night and at the weekend (log shares up to
0.3). There is less traffic at night. All of it follows from the seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
START: Final = 1_700_000_000.0

Names = tuple[str, ...]
Run = tuple[float, Names]
Change = Callable[[Names, random.Random], Names]

TASKS: Final[tuple[Names, ...]] = (
    ("search", "fetch", "answer"),
    ("search", "answer"),
    ("lookup_order", "answer"),
    ("lookup_order", "check_policy", "refund", "answer"),
    ("search", "fetch", "fetch", "summarize", "answer"),
    ("lookup_user", "lookup_order", "answer"),
    (),
    ("lookup_user", "update_user", "send_mail", "answer"),
)
_SHARES = tuple(1 / (rank + 1) for rank in range(len(TASKS)))
_PERSISTENCE = 0.7
_WANDER = 0.2
_NIGHT = 0.3


class SimulatedAgent:
    """Runs of one agent at `rate` an hour on average, beginning at `START`."""

    def __init__(self, seed: int, rate: float) -> None:
        self._random = random.Random(seed)
        self.luck = random.Random(seed + 1)
        """For changes that the caller makes."""
        self._rate = rate
        self._hour = 0
        self._wander = [0.0] * len(TASKS)
        self._night = [self._random.uniform(-_NIGHT, _NIGHT) for _ in TASKS]

    def runs(self, hours: float, change: Change | None = None) -> Iterator[Run]:
        """The runs of the next hours. `change` changes the calls of a run."""
        for _ in range(round(hours)):
            cumulated = self._mix()
            begin = START + self._hour * HOUR
            count = self._count(self._rate * (0.6 if self._is_night() else 1.4))
            for at in sorted(self._random.random() for _ in range(count)):
                names = self._run(cumulated)
                yield begin + at * HOUR, names if change is None else change(names, self._random)
            self._hour += 1

    def _is_night(self) -> bool:
        day, hour = divmod(self._hour, 24)
        return day % 7 >= 5 or not 7 <= hour < 19

    def _mix(self) -> list[float]:
        innovation = _WANDER * math.sqrt(1 - _PERSISTENCE**2)
        self._wander = [
            _PERSISTENCE * value + self._random.gauss(0, innovation) for value in self._wander
        ]
        night = 1.0 if self._is_night() else -1.0
        logs = zip(_SHARES, self._wander, self._night, strict=True)
        return list(accumulate(s * math.exp(w + night * n) for s, w, n in logs))

    def _run(self, cumulated: list[float]) -> Names:
        names = self._random.choices(TASKS, cum_weights=cumulated)[0]
        luck = self._random.random()
        if luck < 0.05 and names:
            return (names[0], *names)
        if luck > 0.85 and names:
            return (*names[:-1], "rate", names[-1])
        return names

    def _count(self, mean: float) -> int:
        """A Poisson number."""
        if mean > 30:
            return max(0, round(self._random.gauss(mean, math.sqrt(mean))))
        limit, product, count = math.exp(-mean), self._random.random(), 0
        while product > limit:
            product *= self._random.random()
            count += 1
        return count


def replaced(old: str, new: str, share: float) -> Change:
    """One tool is replaced by another in a share of the runs that call it."""

    def change(names: Names, luck: random.Random) -> Names:
        if luck.random() >= share:
            return names
        return tuple(new if name == old else name for name in names)

    return change


def added(new: str, share: float) -> Change:
    """A new tool is called first in a share of all runs."""

    def change(names: Names, luck: random.Random) -> Names:
        return (new, *names) if luck.random() < share else names

    return change


def retried(share: float) -> Change:
    """Each call is made twice in a share of all runs."""

    def change(names: Names, luck: random.Random) -> Names:
        if luck.random() >= share:
            return names
        return tuple(name for name in names for _ in range(2))

    return change


def vanished(tool: str) -> Change:
    """A tool is not called any more."""

    def change(names: Names, luck: random.Random) -> Names:
        return tuple(name for name in names if name != tool)

    return change
