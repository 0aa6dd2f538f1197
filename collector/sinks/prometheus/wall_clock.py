"""Notices that the clock of the process was ahead and has been set back.

Times of scores and names are then in the future. Nothing would be stale, idle or silent before they
have come.
"""

from __future__ import annotations

import math

MAX_AHEAD_S = 3600.0
"""A clock that goes back by more was wrong before."""
CHECK_S = 60.0
"""Scorers on other machines may have a wrong clock all the time."""


class WallClock:
    """The latest time that was seen. Times are in Unix seconds."""

    def __init__(self) -> None:
        self._latest = self._checked_at = -math.inf

    def see(self, now: float) -> None:
        """Something happened at `now`."""
        self._latest = max(self._latest, now)

    def is_set_back(self, now: float) -> bool:
        """Whether something has the time after `now`, which then counts as the latest one. It is
        looked at once a minute.
        """
        if abs(now - self._checked_at) < CHECK_S:
            return False
        self._checked_at = now
        if self._latest <= now + MAX_AHEAD_S:
            return False
        self._latest = now
        return True
