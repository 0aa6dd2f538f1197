"""How fast this machine is at the moment, so that a bar in seconds of CPU holds on slow ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import mean

YARDSTICK_S = 0.002
"""What the yardstick takes where the bars were set."""
_COMPARED = tuple({"order_id": f"A-{i}", "limit": i % 7} for i in range(250))


def timed(work: Callable[[], object]) -> float:
    """Seconds of CPU."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


class Pace:
    """How much slower this machine is than the one where the bars were set, in the mean of a run;
    never less than 1.
    """

    def __init__(self) -> None:
        self._took: list[float] = []

    def measure(self) -> None:
        """Work with the yardstick once."""
        self._took.append(timed(_yardstick))

    @property
    def slower(self) -> float:
        """The factor by which bars give way."""
        return max(1.0, mean(self._took) / YARDSTICK_S)


def _yardstick() -> int:
    """Compares each of some arguments with each other."""
    return sum(one == other for one in _COMPARED for other in _COMPARED)
