"""Sliding windows over scores: evaluations come in, and for each agent, scenario and metric the
recent mean, minimum and count go out.

Rules:
1. Only scores with a value count. A window holds the newest `size` of them that are at most
   `max_age_s` old.
2. The age of a score counts from the first record of its evaluation; a revision is not younger than
   what it revises.
3. A revision puts its scores in the place of the earlier ones: it may change a score, add one, take
   one away, or move all of them to another agent or scenario. A score that newer ones pushed out of
   a window never returns there; a revision of an evaluation that has left every window changes
   nothing.
4. A withdrawn evaluation is as if it had never been recorded; what its scores pushed out stays out.
5. A window without a score younger than `stale_after_s` is not reported: its mean says nothing of
   the present.
6. Time does not run backwards: an earlier `now` counts as the latest one seen.
7. The scores of a version of the agent are in a window of their own besides, for which the same
   rules hold: one that gets little of the traffic is not lost among those of the others.

Memory is bounded by `size` times the number of (agent, scenario, metric) and of (agent, version,
scenario, metric) in use, which whoever names them keeps bounded.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evaluations.statistics import mean_of


class Series(NamedTuple):
    """What the windows of one evaluation are filed under; `""` stands for what is not known, and
    for the only tenant.
    """

    agent: str
    scenario: str
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The scores of one metric, in the scorer's own scale. There is at least one of them."""

    agent: str
    scenario: str
    metric: str
    mean: float
    minimum: float
    samples: int
    last: float
    """When the newest of the evaluations was recorded, in the unit of `now`."""
    tenant: str = ""
    version: str | None = None
    """Whose scores alone these are; `None`: those of all versions."""
    values: tuple[float, ...] = field(default=(), compare=False, repr=False)
    """The scores, the oldest first."""


@dataclass(frozen=True, slots=True)
class Recent:
    """What the windows need of a stored evaluation, as its newest revision has it."""

    key: EvaluationKey
    agent: str
    scenario: str
    """Names as senders and references gave them, or the labels made of them; `""` for what is not
    known.
    """
    reference_version: str | None
    """Of the reference that the scores compare with; `None` without one."""
    at: float
    """When the first revision was published, in Unix seconds."""
    scores: Mapping[str, float]
    """Those that have a value, by metric."""
    agent_version: str | None = None
    judges: Mapping[str, str] = field(default_factory=dict)
    """Of the scores that a model gave, the judge, by metric."""


class _Place(NamedTuple):
    series: Series
    metric: str | None
    """`None` is the roster of all evaluations of the series: it lets a revision bring the first
    score of an evaluation.
    """
    version: str | None = None
    """`None` is all versions."""


@dataclass(slots=True)
class _Recorded:
    """An evaluation that is in some window."""

    since: float
    order: int
    held: set[_Place] = field(default_factory=set)
    """The windows that it is in."""
    lost: set[_Place] = field(default_factory=set)
    """The windows that it was pushed out of by newer ones."""


class Windows:
    """All windows of a process. Not safe for use from several threads at once."""

    def __init__(
        self, size: int = 100, max_age_s: float = 3600, stale_after_s: float = 3600
    ) -> None:
        self._size = size
        self._max_age_s = max_age_s
        self._stale_after_s = stale_after_s
        self._now = -math.inf
        self._order = 0
        self._recorded: dict[EvaluationKey, _Recorded] = {}
        """In the order of recording, hence of age."""
        self._scores: dict[_Place, dict[EvaluationKey, float]] = {}
        """In the same order, and never empty; the values of a roster mean nothing."""

    def refill(self) -> Refill:
        """Takes in what an earlier process recorded, when nothing else has been."""
        return Refill(self, self._size)

    def another(self) -> Windows:
        """Empty windows of the same size."""
        return Windows(self._size, self._max_age_s, self._stale_after_s)

    def __len__(self) -> int:
        """How many evaluations are held in some window."""
        return len(self._recorded)

    def record(
        self,
        evaluation: Evaluation,
        now: float,
        series: Series | None = None,
        version: str | None = None,
    ) -> None:
        """Take the scores of `evaluation` in, under `series` or else under the names that the
        invocation and its reference have.

        With a `version` they are filed under that, too.
        """
        self._advance(now)
        if evaluation.key in self._recorded or evaluation.revision == 0:
            scores = {
                result.criterion.name: result.score.value
                for result in evaluation.results
                if result.score.value is not None
            }
            self._file(
                evaluation.key, dict(_places(series or series_of(evaluation), scores, version))
            )

    def restore(
        self,
        key: EvaluationKey,
        series: Series,
        scores: Mapping[str, float],
        since: float,
        version: str | None = None,
    ) -> None:
        """Take in an evaluation that an earlier process recorded at `since`, with the scores of its
        newest revision by metric.

        To be called in the order of age, the oldest first. The windows are then as if each
        evaluation had come in its newest revision at once, and those that were withdrawn never.
        """
        self._advance(since)
        self._file(key, dict(_places(series, scores, version)))

    def withdraw(self, key: EvaluationKey) -> None:
        """Take all scores of the evaluation `key` out again; one that is in no window is no error."""
        recorded = self._recorded.get(key)
        if recorded is not None:
            for place in tuple(recorded.held):
                self._take(key, place)
            del self._recorded[key]

    def forget(self, unwanted: Callable[[Series, str | None], bool]) -> None:
        """Empty the windows for whose series and metric `unwanted` says so; the metric is `None`
        for evaluations without scores.
        """
        for place in [place for place in self._scores if unwanted(place.series, place.metric)]:
            for key in tuple(self._scores[place]):
                self._take(key, place)
                self._forget_unless_held(key)

    def snapshot(self, now: float) -> list[Window]:
        """All windows that are not stale at `now`, those of single versions among them, in no
        particular order.
        """
        self._advance(now)
        windows = []
        for place, scores in self._scores.items():
            last = self._newest(scores).since
            if place.metric is not None and self._now - last <= self._stale_after_s:
                values = tuple(scores.values())
                agent, scenario, tenant = place.series
                mean, least, samples = mean_of(values), min(values), len(values)
                windows.append(
                    Window(
                        agent,
                        scenario,
                        place.metric,
                        mean,
                        least,
                        samples,
                        last,
                        tenant,
                        place.version,
                        values,
                    )
                )
        return windows

    def _file(self, key: EvaluationKey, scores: Mapping[_Place, float]) -> None:
        recorded = self._recorded.get(key)
        if recorded is None:
            self._order += 1
            recorded = self._recorded[key] = _Recorded(self._now, self._order)
        for place in recorded.held - scores.keys():
            self._take(key, place)
        for place, value in scores.items():
            if place not in recorded.lost:
                self._put(key, recorded, place, value)
        self._forget_unless_held(key)

    def _advance(self, now: float) -> None:
        self._now = max(self._now, now)
        while self._recorded:
            key, recorded = next(iter(self._recorded.items()))
            if self._now - recorded.since <= self._max_age_s:
                break
            self.withdraw(key)

    def _put(self, key: EvaluationKey, recorded: _Recorded, place: _Place, value: float) -> None:
        scores = self._scores.setdefault(place, {})
        late = key not in scores and bool(scores) and self._newest(scores).order > recorded.order
        scores[key] = value
        recorded.held.add(place)
        if late:
            self._scores[place] = scores = dict(
                sorted(scores.items(), key=lambda item: self._recorded[item[0]].order)
            )
        if len(scores) > self._size:
            oldest = next(iter(scores))
            self._recorded[oldest].lost.add(place)
            self._take(oldest, place)
            if oldest != key:
                self._forget_unless_held(oldest)

    def _take(self, key: EvaluationKey, place: _Place) -> None:
        self._recorded[key].held.remove(place)
        scores = self._scores[place]
        del scores[key]
        if not scores:
            del self._scores[place]

    def _forget_unless_held(self, key: EvaluationKey) -> None:
        if not self._recorded[key].held:
            del self._recorded[key]

    def _newest(self, scores: dict[EvaluationKey, float]) -> _Recorded:
        return self._recorded[next(reversed(scores))]


class Refill:
    """What an earlier process recorded comes in, the last of it first, and only what has room in
    some window is kept.
    """

    def __init__(self, windows: Windows, size: int) -> None:
        self._windows = windows
        self._size = size
        self._found: defaultdict[tuple[Series, str | None], Counter[str | None]] = defaultdict(
            Counter
        )
        """How many evaluations there are by metric, `None` being all of them: for each series, and
        for each version in it.
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
        """Take in an evaluation; see `Windows.restore`."""
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
        for one in reversed(self._kept):
            self._windows.restore(*one)


def series_of(evaluation: Evaluation) -> Series:
    """The agent of the invocation, and the scenario of its reference or else the one it names."""
    reference = evaluation.match.reference
    scenario = evaluation.invocation.scenario_id if reference is None else reference.scenario_id
    return Series(evaluation.invocation.agent or "", scenario or "")


def _places(
    series: Series, scores: Mapping[str, float], version: str | None
) -> Iterator[tuple[_Place, float]]:
    yield _Place(series, None), 0.0
    for metric, value in scores.items():
        yield _Place(series, metric), value
        if version is not None:
            yield _Place(series, metric, version), value
