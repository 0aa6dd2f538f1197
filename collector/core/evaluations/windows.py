"""Sliding windows of recent scores, one for each agent, scenario and metric.

Rules:
1. A window holds at most the `size` newest scores, each at most `max_age_s` old. Only scores with a
   value count.
2. The age of a score is the age of its evaluation's first revision. A later revision does not make
   it younger.
3. A revision replaces the scores of the earlier revision. It may change, add or remove scores, or
   move all of them to another agent or scenario. A score that newer scores pushed out of a window
   never returns to it. A revision of an evaluation that has left all windows has no effect, and
   neither has one that is lower than another that came before it. Several scorers may send the
   first revision after a later one; then the later one counts from that moment.
4. A withdrawn evaluation leaves all windows. Scores that it pushed out do not return.
5. A window without a score younger than `stale_after_s` is not reported, because its mean no longer
   describes the present.
6. Time never runs backwards: an earlier `now` is treated as the latest one seen, until `set_back`.
7. Each version of an agent has windows of its own as well, with the same rules. Otherwise the
   scores of a version with little traffic would be lost among those of the others.

Memory is bounded by `size` times the number of windows. The caller bounds the number of agents,
versions and scenarios.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pathgauge.collector.core.evaluations.changed_series import ChangedSeries
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evaluations.series import Series, series_of
from pathgauge.scorers.matching.measures import mean_of

_MAX_EARLY = 1_000
"""Revisions that may wait for the first one."""


@dataclass(slots=True, unsafe_hash=True)
class Window:
    """The recent scores of one metric, at least one, in the scorer's own scale. Nobody changes one,
    but it is not frozen: a scrape makes many, and to make a frozen one takes twice as long.
    """

    agent: str
    scenario: str
    metric: str
    mean: float
    minimum: float
    samples: int
    last: float
    """When the newest of its evaluations was recorded, in the unit of `now`."""
    tenant: str = ""
    version: str | None = None
    """The version of the agent; `None`: scores of all versions."""
    values: tuple[float, ...] = field(default=(), compare=False, repr=False)
    """The scores, oldest first."""


class _WindowKey(NamedTuple):
    series: Series
    metric: str | None
    """`None`: the list of all evaluations of the series, with or without scores. It allows a
    revision to add the first score of an evaluation.
    """
    version: str | None = None
    """`None`: all versions."""


class _Told(NamedTuple):
    """The scores of one revision."""

    revision: int
    scores: Mapping[_WindowKey, float]


@dataclass(slots=True)
class _Recorded:
    """An evaluation that is in at least one window."""

    since: float
    order: int
    revision: int = 0
    """The highest one, as far as it is known."""
    held: set[_WindowKey] = field(default_factory=set)
    """The windows that contain it."""
    lost: set[_WindowKey] = field(default_factory=set)
    """The windows from which newer evaluations pushed it out."""


class Windows:
    """All windows of a process. Not thread-safe."""

    def __init__(
        self, size: int = 100, max_age_s: float = 3600, stale_after_s: float = 3600
    ) -> None:
        self._size = size
        self._max_age_s = max_age_s
        self._stale_after_s = stale_after_s
        self._now = -math.inf
        self._order = 0
        self._early: OrderedDict[EvaluationKey, _Told] = OrderedDict()
        """Revisions of evaluations that are in no window: their first one may follow."""
        self._recorded: dict[EvaluationKey, _Recorded] = {}
        """In the order of recording, which is the order of age."""
        self._scores: dict[Series, dict[_WindowKey, dict[EvaluationKey, float]]] = {}
        """The scores of each window, in the same order, by series. No window is empty, and no
        series without window. Without a metric, the values are meaningless.
        """
        self.changed: ChangedSeries[Series] = ChangedSeries()
        """The series whose windows changed. Windows also become stale, which is no change."""

    @property
    def size(self) -> int:
        """The maximum number of scores in a window."""
        return self._size

    def another(self) -> Windows:
        """New, empty windows with the same limits."""
        return Windows(self._size, self._max_age_s, self._stale_after_s)

    def __len__(self) -> int:
        """Number of evaluations in at least one window."""
        return len(self._recorded)

    def __contains__(self, key: object) -> bool:
        """Whether the evaluation with this key is in at least one window."""
        return key in self._recorded

    def has_score(self, key: EvaluationKey, series: Series) -> bool:
        """Whether a window of a series has a score of this evaluation."""
        recorded = self._recorded.get(key)
        return recorded is not None and any(
            window.metric is not None and window.series == series for window in recorded.held
        )

    def record(
        self,
        evaluation: Evaluation,
        now: float,
        series: Series | None = None,
        version: str | None = None,
        *,
        begins: bool = False,
    ) -> None:
        """Add the scores of `evaluation` to the windows of `series` (by default `series_of` it)
        and, if given, to those of the `version`. `begins`: it may be a revision without an earlier
        one.
        """
        self.advance(now)
        scores = {
            result.criterion.name: result.score.value
            for result in evaluation.results
            if result.score.value is not None
        }
        by_window = dict(_by_window(series or series_of(evaluation), scores, version))
        key, told = evaluation.key, _Told(evaluation.revision, by_window)
        known = self._recorded.get(key)
        if known is None and told.revision > 0 and not begins:
            self._wait_for_the_first(key, told)
        elif known is None:
            self._record(key, max(told, self._early.pop(key, told), key=lambda one: one.revision))
        elif told.revision >= known.revision:
            self._record(key, told)

    def restore(
        self,
        key: EvaluationKey,
        series: Series,
        scores: Mapping[str, float],
        since: float,
        version: str | None = None,
    ) -> None:
        """Add an evaluation that an earlier process recorded at `since`, with the scores of its
        newest revision by metric.

        Call it in the order of age, oldest first. The result is the same as if every evaluation had
        arrived in its newest revision only, and withdrawn ones had never arrived.
        """
        self.advance(since)
        self._record(key, _Told(0, dict(_by_window(series, scores, version))))

    def withdraw(self, key: EvaluationKey) -> None:
        """Remove an evaluation from all windows; does nothing if it is in none."""
        self._early.pop(key, None)
        recorded = self._recorded.get(key)
        if recorded is not None:
            for window in tuple(recorded.held):
                self._remove(key, window)
            del self._recorded[key]

    def forget(self, unwanted: Callable[[Series, str | None], bool]) -> None:
        """Empty the windows for whose series and metric `unwanted` returns true. The metric `None`
        stands for evaluations without scores.
        """
        self._early.clear()
        windows = [
            window
            for windows in self._scores.values()
            for window in windows
            if unwanted(window.series, window.metric)
        ]
        for window in windows:
            for key in tuple(self._scores[window.series][window]):
                self._remove(key, window)
                self._forget_unless_held(key)

    def snapshot(self, now: float) -> list[Window]:
        """All windows that are not stale at `now`, including those of single versions, in no
        particular order.
        """
        self.advance(now)
        return [
            self._window(window, scores, last)
            for windows in self._scores.values()
            for window, scores in windows.items()
            if window.metric is not None and not self.is_stale(last := self._newest(scores).since)
        ]

    def series(self) -> Iterable[Series]:
        """All series with a window."""
        return self._scores.keys()

    def of(self, series: Series) -> list[Window]:
        """The windows of one series that are not stale, without those of single versions."""
        return [
            self._window(window, scores, last)
            for window, scores in self._scores.get(series, {}).items()
            if window.version is None
            and window.metric is not None
            and not self.is_stale(last := self._newest(scores).since)
        ]

    def is_stale(self, last: float) -> bool:
        """Whether a window is stale whose newest evaluation was recorded at `last`."""
        return self._now - last > self._stale_after_s

    def advance(self, now: float) -> None:
        """Remove what is too old at `now`."""
        self._now = max(self._now, now)
        while self._recorded:
            key, recorded = next(iter(self._recorded.items()))
            if self._now - recorded.since <= self._max_age_s:
                break
            self.withdraw(key)

    def set_back(self, now: float) -> None:
        """The clock was ahead. What was recorded after `now` counts as recorded now: otherwise it
        would not become stale before that time has come.
        """
        self._now = min(self._now, now)
        for recorded in self._recorded.values():
            recorded.since = min(recorded.since, now)
        self.changed.add_all()

    def _window(
        self, window: _WindowKey, scores: dict[EvaluationKey, float], last: float
    ) -> Window:
        series, metric, version = window
        values = tuple(scores.values())
        return Window(
            series.agent,
            series.scenario,
            metric or "",
            mean_of(values),
            min(values),
            len(values),
            last,
            series.tenant,
            version,
            values,
        )

    def _wait_for_the_first(self, key: EvaluationKey, told: _Told) -> None:
        earlier = self._early.get(key)
        if earlier is None or told.revision >= earlier.revision:
            self._early[key] = told
        if len(self._early) > _MAX_EARLY:
            self._early.popitem(last=False)

    def _record(self, key: EvaluationKey, told: _Told) -> None:
        recorded, scores = self._recorded.get(key), told.scores
        if recorded is None:
            self._order += 1
            recorded = self._recorded[key] = _Recorded(self._now, self._order)
        recorded.revision = told.revision
        for window in recorded.held - scores.keys():
            self._remove(key, window)
        for window, value in scores.items():
            if window not in recorded.lost:
                self._put(key, recorded, window, value)
        self.changed.add(next(iter(scores)).series)
        self._forget_unless_held(key)

    def _put(
        self, key: EvaluationKey, recorded: _Recorded, window: _WindowKey, value: float
    ) -> None:
        windows = self._scores.setdefault(window.series, {})
        scores = windows.setdefault(window, {})
        late = key not in scores and bool(scores) and self._newest(scores).order > recorded.order
        scores[key] = value
        recorded.held.add(window)
        if late:
            windows[window] = scores = dict(
                sorted(scores.items(), key=lambda item: self._recorded[item[0]].order)
            )
        if len(scores) > self._size:
            oldest = next(iter(scores))
            self._recorded[oldest].lost.add(window)
            self._remove(oldest, window)
            if oldest != key:
                self._forget_unless_held(oldest)

    def _remove(self, key: EvaluationKey, window: _WindowKey) -> None:
        self._recorded[key].held.remove(window)
        windows = self._scores[window.series]
        del windows[window][key]
        if not windows[window]:
            del windows[window]
        if not windows:
            del self._scores[window.series]
        self.changed.add(window.series)

    def _forget_unless_held(self, key: EvaluationKey) -> None:
        if not self._recorded[key].held:
            del self._recorded[key]

    def _newest(self, scores: dict[EvaluationKey, float]) -> _Recorded:
        return self._recorded[next(reversed(scores))]


def _by_window(
    series: Series, scores: Mapping[str, float], version: str | None
) -> Iterator[tuple[_WindowKey, float]]:
    yield _WindowKey(series, None), 0.0
    for metric, value in scores.items():
        yield _WindowKey(series, metric), value
        if version is not None:
            yield _WindowKey(series, metric, version), value
