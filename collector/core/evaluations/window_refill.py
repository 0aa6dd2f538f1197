"""Restores windows from stored evaluations, without loading more of them than the windows hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.windows import Windows

VersionMetric: TypeAlias = "tuple[str | None, str | None]"
"""Version and metric of a window. Without a version: of all versions. Without a metric: counts all
evaluations.
"""


class Refill:
    """Restores the evaluations of an earlier process. They are taken newest first, and only those
    that fit into a window are kept in memory.
    """

    def __init__(self, windows: Windows) -> None:
        """`windows` must be empty."""
        self._windows = windows
        self._size = windows.size
        self._found: defaultdict[Series, Counter[VersionMetric]] = defaultdict(Counter)
        """Number of evaluations."""
        self._missing: dict[Series, set[VersionMetric]] = {}
        """The windows of expected series that are not full."""
        self._kept: list[tuple[EvaluationKey, Series, Mapping[str, float], float, str | None]] = []

    def expect(self, series: Series, windows: Iterable[VersionMetric]) -> None:
        """Name the windows of a series that may get scores; does nothing the second time."""
        self._missing.setdefault(series, {(None, None), *windows})

    def has_room(self, series: Series) -> bool:
        """Whether one of the expected windows of a series is not full."""
        return bool(self._missing.get(series))

    def take(
        self,
        key: EvaluationKey,
        series: Series,
        scores: Mapping[str, float],
        since: float,
        version: str | None = None,
    ) -> None:
        """Add an evaluation. The parameters are those of `Windows.restore`."""
        windows: list[VersionMetric] = [(None, metric) for metric in (None, *scores)]
        if version is not None:
            windows += [(version, metric) for metric in scores]
        found = self._found[series]
        if all(found[window] >= self._size for window in windows):
            return
        found.update(windows)
        self._kept.append((key, series, scores, since, version))
        if missing := self._missing.get(series):
            missing.difference_update(one for one in windows if found[one] >= self._size)

    def finish(self) -> None:
        """Fill the windows."""
        for evaluation in reversed(self._kept):
            self._windows.restore(*evaluation)
