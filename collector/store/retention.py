"""How long results are kept: what is too old, or in the way of requests, is removed a little at a
time.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass

from pathgauge.collector.store import results
from pathgauge.collector.store.restore import WindowBounds

CLEAN_S = 10.0
_CLEAN_ROWS = 20_000
_TRACES_KEPT = 200_000


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept, and for how long."""

    max_bytes: int = 10 << 30
    """Journal and results together."""
    results_s: float = 7 * 86_400.0


class SteadyWall:
    """The wall clock of a process without its jumps ahead: what was removed as too old is gone when
    the clock is right again.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset = math.inf

    def __call__(self, wall: float) -> float:
        """The time, given what the wall clock says."""
        now = self._monotonic()
        self._offset = min(self._offset, wall - now)
        return now + self._offset


class Cleaning:
    """Removes from results what is not kept."""

    def __init__(self, retention: Retention, windows: WindowBounds) -> None:
        """`windows` is what is needed after a restart, and is not given up for requests."""
        self._retention = retention
        self._windows = windows
        self._steady = SteadyWall()
        self._cleaned_at = -math.inf

    def clean(self, connection: sqlite3.Connection, wall: float, *, nearly_full: bool) -> None:
        """Remove some, within a transaction, when it is time to; `wall` in Unix seconds."""
        now = self._steady(wall)
        if time.monotonic() < self._cleaned_at + CLEAN_S:
            return
        kept = self._retention.results_s
        if nearly_full:
            kept = min(kept, self._windows.max_age_s)
        if results.drop_old(connection, now - kept, _TRACES_KEPT, _CLEAN_ROWS) < _CLEAN_ROWS:
            self._cleaned_at = time.monotonic()
