"""Keeps what judges spent over restarts. Otherwise a process that restarts again and again would
spend its whole budget each time.
"""

from __future__ import annotations

from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.scorers.judges.model_client.budget import Budget


class Spending(DurableMetrics):
    """Durable counts of one budget. For the pipeline thread only."""

    def __init__(self, budget: Budget, name: str) -> None:
        """`name` is one of `NAMES` of `collector/store/resharding/spending.py`."""
        super().__init__()
        self._budget = budget
        self._spent = self.stored_values(name, ("window",))
        self.add_source(self._collect_spent, self._charge_restored)

    @property
    def has_pending(self) -> bool:
        """Whether something was spent that is not stored yet."""
        stored = {series.labels[0]: tuple(series.numbers) for series in self._spent}
        return self._budget.spent() != stored

    def _collect_spent(self) -> None:
        for window, spent in self._budget.spent().items():
            self._spent.of(window).put(*spent)

    def _charge_restored(self) -> None:
        self._budget.restore({series.labels[0]: tuple(series.numbers) for series in self._spent})
