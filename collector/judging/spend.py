"""What judges spent, kept through restarts: a `Budget` comes in, rows for the store go out, and
back.

A process that is restarted over and over would spend its budgets anew each time.
"""

from __future__ import annotations

from collections.abc import Iterable

from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.scorers.judges.model_client.budget import Budget

_NAME = "judge_spent"


class Spending:
    """Counts of one budget, for the thread of the pipeline."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._stored: dict[str, tuple[float, ...]] = {}
        self._offered: dict[str, tuple[float, ...]] = {}

    @property
    def has_pending(self) -> bool:
        """Whether anything was spent that is not stored."""
        return self._budget.spent() != self._stored

    def pending(self) -> list[Row]:
        """What was spent and is not stored."""
        self._offered = self._budget.spent()
        return [
            Row((_NAME, window), spent)
            for window, spent in self._offered.items()
            if spent != self._stored.get(window)
        ]

    def commit(self) -> None:
        """What was staged last is stored."""
        self._stored = self._offered

    def restore(self, rows: Iterable[Row]) -> None:
        """Charge what an earlier process spent. Rows of anything else are passed over."""
        self._budget.restore(
            {
                key[1]: tuple(state)
                for key, state in rows
                if len(key) == 2 and key[0] == _NAME and state is not None
            }
        )
