"""The windows of a sink. Those of judges are apart.

Judges are late and sample few evaluations. In the windows of all evaluations, theirs would be
pushed out before they have scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.windows import Window, Windows
from pathgauge.collector.sinks.prometheus.live_series import Place


class RecentScores:
    """Both kinds of windows. Not thread-safe."""

    def __init__(self, windows: Windows | None = None) -> None:
        """`windows` are those of all evaluations."""
        self.windows = Windows() if windows is None else windows
        self.judged = self.windows.another()
        self.changed = self.judged.changed = self.windows.changed
        """The series whose windows of either kind changed."""
        self._both = self.windows, self.judged

    def record(self, evaluation: Evaluation, place: Place, now: float) -> bool:
        """Add an evaluation; returns whether it has its first score in this series."""
        key, series = evaluation.key, place.series
        had_score = self.windows.has_score(key, series)
        self.windows.record(evaluation, now, series, place.version)
        return not had_score and self.windows.has_score(key, series)

    def record_judged(
        self, evaluation: Evaluation, place: Place, now: float, *, first: bool
    ) -> bool:
        """Add the results of judges. `first`: there were none of this evaluation before, and no
        earlier revision. Without an earlier one that was judged, a revision counts while the
        evaluation is in the windows of all. Returns what `record` does.
        """
        key, series = evaluation.key, place.series
        recorded = replace(evaluation, revision=0) if first else evaluation
        had_score = self.judged.has_score(key, series)
        self.judged.record(recorded, now, series, place.version, begins=key in self.windows)
        return not had_score and self.judged.has_score(key, series)

    def withdraw(self, key: EvaluationKey) -> None:
        """Remove the scores of an evaluation."""
        for windows in self._both:
            windows.withdraw(key)

    def forget(self, unwanted: Callable[[Series, str | None], bool]) -> None:
        """Empty the windows for whose series and metric `unwanted` returns true."""
        for windows in self._both:
            windows.forget(unwanted)

    def advance(self, now: float) -> None:
        """Remove what is too old at `now`."""
        for windows in self._both:
            windows.advance(now)

    def set_back(self, now: float) -> None:
        """The clock was ahead: later times count as `now`."""
        for windows in self._both:
            windows.set_back(now)

    def of(self, series: Series) -> list[Window]:
        """The windows of one series that are not stale, without those of single versions."""
        return [*self.windows.of(series), *self.judged.of(series)]

    def snapshot(self, now: float) -> list[Window]:
        """All windows that are not stale at `now`, those of single versions included."""
        return [*self.windows.snapshot(now), *self.judged.snapshot(now)]

    def series(self) -> Iterator[Series]:
        """The series with windows; some come twice."""
        for windows in self._both:
            yield from windows.series()

    def is_stale(self, last: float) -> bool:
        """Whether a window is not shown any more whose newest evaluation was recorded at `last`."""
        return any(windows.is_stale(last) for windows in self._both)
