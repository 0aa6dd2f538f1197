"""The running time of the collector: seconds, summed over all its processes.

All ages of traces are measured with it. So neither a jump of the wall clock nor a long stop closes
a trace early or delays it. Senders that cannot reach the collector retry, and their time continues
when it is back.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class RunningTime:
    """Continues at the time that the last process reached."""

    def __init__(self, start: float = 0.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset = start - monotonic()

    def __call__(self) -> float:
        """The time in seconds; it never goes back."""
        return self._monotonic() + self._offset
