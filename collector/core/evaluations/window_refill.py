"""Restores windows from stored evaluations, without loading more of them than the windows hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.windows import Series, Windows


class Refill:
    """Restores the evaluations of an earlier process. They are taken newest first, and only those
    that fit into a window are kept in memory.
    """

    def __init__(self, windows: Windows) -> None:
        """`windows` must be empty."""
        self._windows = windows
        self._size = windows.size
        self._found: defaultdict[tuple[Series, str | None], Counter[str | None]] = defaultdict(
            Counter
        )
        """Number of evaluations by metric, for each series and each version in it. The metric
        `None` counts all evaluations.
        """
        self._kept: list[tuple[EvaluationKey, Series, Mapping[str, float], float, str | None]] = []

    def take(
        self,
        key: EvaluationKey,
        series: Series,
        scores: Mapping[str, float],
        since: float,
        version: str | None = None,
    ) -> None:
        """Add an evaluation. The parameters are those of `Windows.restore`."""
        wanted: list[tuple[Counter[str | None], tuple[str | None, ...]]] = [
            (self._found[series, None], (None, *scores))
        ]
        if version is not None:
            wanted.append((self._found[series, version], tuple(scores)))
        if any(found[metric] < self._size for found, metrics in wanted for metric in metrics):
            for found, metrics in wanted:
                found.update(metrics)
            self._kept.append((key, series, scores, since, version))

    def finish(self) -> None:
        """Fill the windows."""
        for evaluation in reversed(self._kept):
            self._windows.restore(*evaluation)
