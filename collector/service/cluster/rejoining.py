"""How long a process waits before it joins the consumer group again.

Two scorers with the same name evict each other each time one of them joins. So the pauses of a
process that is evicted again and again become longer, and the other one can work meanwhile.
"""

from __future__ import annotations

from pathgauge.collector.config.kafka import Kafka

FIRST_S = 3.0
"""A process that was stopped for a while learns from a refused commit that it has lost partitions.
It must not claim them from their new owner before the group has told it.
"""
MAX_S = 60.0
STEADY_S = 60.0
"""A process that was a member for so long begins with the first pause again."""


class Pauses:
    """The pauses of one process."""

    def __init__(self) -> None:
        self._last = 0.0
        self._steady_at = 0.0

    def next(self, now: float) -> float:
        """The seconds until it joins, after it was evicted at `now`, in monotonic time."""
        again = self._last and now < self._steady_at
        self._last = min(MAX_S, 2 * self._last) if again else FIRST_S
        self._steady_at = now + self._last + STEADY_S
        return self._last


def fenced(config: Kafka) -> str:
    """Why PostgreSQL may have refused a commit."""
    text = "another process has claimed a partition of this one"
    if config.group_instance_id is None:
        return text
    return f"{text}: does it have the same kafka.group_instance_id {config.group_instance_id!r}?"
