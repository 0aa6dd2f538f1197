"""The collector's own time: seconds that it has been running in all, over every restart.

All ages of traces are measured with it. So neither a wall clock that jumps nor a stop of any length
ends a trace early or keeps it waiting: senders that cannot reach the collector try again, and their
time begins when it is back.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class RunningTime:
    """Goes on from the time that the last process reached."""

    def __init__(self, start: float = 0.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset = start - monotonic()

    def __call__(self) -> float:
        """The time now, in seconds; it never goes back."""
        return self._monotonic() + self._offset
