"""The time by which conversations end.

In a cluster a turn may be read by another partition than that of its conversation, and each reads
its requests at its own pace. While one of them is behind, it may still forward turns that were read
before the present of this partition. So a conversation waits for it: time is that of the partition
that is furthest behind. It never goes back. A partition without others has its own time.
"""

from __future__ import annotations

import math

LEVEL_S = 60.0
"""A partition that is behind by no more than this does not hold up conversations. Partitions
announce their time when they commit, and those without requests do so seldom.
"""
PATIENCE_S = 6 * 3600.0
"""How far the time of conversations may be behind that of the partition. Another partition without
a scorer must not keep them open for ever.
"""


class ConversationClock:
    """The caller passes the time of its own partition; there is no clock."""

    def __init__(self) -> None:
        self._own = self._reached = -math.inf
        self._others = math.inf

    def hear(self, reached: float) -> None:
        """No turn that arrives from now on was read by another partition before `reached`;
        `-math.inf` means that nothing is known of the others, `math.inf` that there are none.
        """
        self._others = reached

    def advance(self, now: float) -> float:
        """The time of conversations when it is `now` in this partition."""
        self._own = max(self._own, now)
        self._reached = max(self._reached, self._at(self._own))
        return self._reached

    def of_turn(self, read_at: float | None, now: float) -> float:
        """The time of a turn that arrives `now`. `read_at` is `None` if this partition has read it,
        or if it is unknown when the other one has.
        """
        return now if read_at is None else max(read_at, self.advance(now))

    def when(self, time: float) -> float:
        """What time it is in this partition when that of conversations reaches `time`, if the
        others do not go on.
        """
        if time <= max(self._reached, self._others):
            return time
        if self._others == -math.inf:
            return math.inf
        is_level = max(self._own, time) <= self._others + LEVEL_S
        return time if is_level else time + PATIENCE_S

    def _at(self, now: float) -> float:
        if self._others == -math.inf:
            return -math.inf
        if now <= self._others + LEVEL_S:
            return now
        return max(self._others, now - PATIENCE_S)
