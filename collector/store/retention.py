"""Removes results that are too old, or that take space which requests need, a few at a time."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass

from pathgauge.collector.store import results
from pathgauge.collector.store.recent_results import WindowBounds

CLEAN_S = 10.0
_MAX_ROWS = 20_000
"""Rows that one transaction removes at most."""
_KEPT_TRACES = 200_000


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept, and for how long."""

    max_bytes: int = 10 << 30
    """Journal and results together."""
    results_s: float = 7 * 86_400.0


class SteadyWall:
    """The wall clock without the jumps ahead that happen while the process runs. A result that was
    removed too early would still be missing after the clock is corrected.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset = math.inf

    def __call__(self, wall: float) -> float:
        """The Unix time; `wall` is the reading of the wall clock."""
        now = self._monotonic()
        self._offset = min(self._offset, wall - now)
        return now + self._offset


class Cleaning:
    """Removes results that are no longer kept."""

    def __init__(self, retention: Retention, windows: WindowBounds) -> None:
        """Results that `windows` need after a restart are kept even when space is short."""
        self._retention = retention
        self._windows = windows
        self._steady = SteadyWall()
        self._cleaned_at = -math.inf

    def clean(self, connection: sqlite3.Connection, wall: float, *, nearly_full: bool) -> None:
        """Remove some results within a transaction, if it is time to; `wall` in Unix seconds."""
        now = self._steady(wall)
        if time.monotonic() < self._cleaned_at + CLEAN_S:
            return
        kept = self._retention.results_s
        if nearly_full:
            kept = min(kept, self._windows.max_age_s)
        if results.drop_old(connection, now - kept, _KEPT_TRACES, _MAX_ROWS) < _MAX_ROWS:
            self._cleaned_at = time.monotonic()
