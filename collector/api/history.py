"""The history of one agent in one scenario: scores over time, verdicts by version, and what the
newest runs did.

The gauges only know recent scores. The history comes from stored results, at most `MAX_RESULTS` of
them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evaluations.aggregation import mean_interval
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.statistics import deviation_of
from pathgauge.collector.store.evidence import table as evidence_rows
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.results import find
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.scorers.matching.measures import mean_of

MAX_RESULTS = 2_000
MAX_POINTS = 60
"""Points of a line."""
MAX_RUNS = 40
"""Runs whose calls are compared."""
_MAX_PAGES = 4
"""A page ends after a time, so one may be too few."""


@dataclass(frozen=True, slots=True)
class Point:
    """The scores of a period. Times are Unix seconds."""

    at: float
    """The middle of the period."""
    mean: float
    samples: int
    low: float
    """Lower end of the 95 % confidence interval of the mean."""
    high: float


@dataclass(frozen=True, slots=True)
class Line:
    """The scores of one criterion over time."""

    criterion: str
    threshold: float | None
    higher_is_better: bool
    points: tuple[Point, ...]
    bounds: tuple[float, float] | None
    """The lowest and the highest possible score; `None` without limits."""


@dataclass(frozen=True, slots=True)
class VersionVerdicts:
    """The verdicts on one version of the agent."""

    version: str | None
    first_at: float
    last_at: float
    verdicts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Runs that called the same tools in the same order."""

    tools: tuple[str, ...]
    runs: int
    failed: int
    newest: StoredResult


@dataclass(frozen=True, slots=True)
class History:
    """All of it."""

    results: int
    complete: bool
    """Whether these are all results in the store; else only the newest."""
    lines: tuple[Line, ...] = ()
    versions: tuple[VersionVerdicts, ...] = ()
    """In the order of their first results."""
    behaviours: tuple[Behaviour, ...] = ()
    """The most frequent first."""


def history(sources: Sources, series: Series) -> History:
    """The history of a series."""
    if sources.reading is None:
        return History(0, True)
    wanted = Filter(tenant=series.tenant, agent=series.agent, scenario=series.scenario)
    with sources.reading() as connection:
        found: list[StoredResult] = []
        before: int | None = None
        for _ in range(_MAX_PAGES):
            page = find(connection, wanted, MAX_RESULTS - len(found), before)
            found += page.results
            before = page.next
            if before is None or len(found) >= MAX_RESULTS:
                break
        evidence = [(one, evidence_rows.find(connection, one.key)) for one in found[:MAX_RUNS]]
    runs = [
        (one, tuple(call.name for call in explained.invocation.tool_calls))
        for one, explained in evidence
        if explained is not None and "no_tool_spans" not in explained.invocation.flags
    ]
    # Rows are in the order in which they were stored. A clock that was set back gave them times in
    # another one.
    oldest_first = sorted(reversed(found), key=lambda one: one.at)
    criteria = _criteria(sources, series)
    return History(
        len(found),
        before is None,
        tuple(_lines(oldest_first, criteria)),
        tuple(_versions(oldest_first)),
        tuple(_behaviours(runs)),
    )


def labels_of(series: Series) -> Series:
    """The series as metrics name it."""
    return series._replace(
        agent=label_value(series.agent, MAX_NAME_BYTES), scenario=label_value(series.scenario)
    )


def _criteria(sources: Sources, series: Series) -> Mapping[str, Criterion]:
    """The active criteria of the series, by name. Without recent scores, those that it would have
    now: whether a low score is good must not depend on when the last run was.
    """
    labels, evaluator = labels_of(series), sources.evaluator()
    active = evaluator.overrides.get(series.scenario, evaluator.criteria)
    recent = [
        one.criterion
        for one in sources.scores()
        if one.criterion is not None
        and Series(one.window.agent, one.window.scenario, one.window.tenant) == labels
    ]
    return {one.name: one for one in (*active, *recent)}


def _lines(results: Sequence[StoredResult], criteria: Mapping[str, Criterion]) -> Iterator[Line]:
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    thresholds: dict[str, float | None] = {}
    for result in results:
        for one in result.criteria:
            if one.value is not None:
                values[one.name].append((result.at, one.value))
                thresholds[one.name] = one.threshold
    for name, timed in values.items():
        criterion = criteria.get(name)
        yield Line(
            name,
            thresholds[name],
            criterion is None or criterion.scorer.higher_is_better,
            tuple(_points(timed, criterion)),
            _bounds(criterion),
        )


def _bounds(criterion: Criterion | None) -> tuple[float, float] | None:
    if criterion is None or not math.isfinite(criterion.scorer.high - criterion.scorer.low):
        return None
    return criterion.scorer.low, criterion.scorer.high


def _points(timed: Sequence[tuple[float, float]], criterion: Criterion | None) -> Iterator[Point]:
    """Means over equal periods, without periods that have no score."""
    start, end = timed[0][0], timed[-1][0]
    width = max(end - start, 1.0) / MAX_POINTS
    periods: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for at, value in timed:
        periods[min(MAX_POINTS - 1, int((at - start) / width))].append((at, value))
    for one in periods.values():
        values = [value for _, value in one]
        low = high = mean = mean_of(values)
        if criterion is not None:
            deviation = deviation_of(values)
            low, high = mean_interval(mean, deviation, len(values), criterion.scorer)
        yield Point((one[0][0] + one[-1][0]) / 2, mean, len(values), low, high)


def _versions(results: Sequence[StoredResult]) -> Iterator[VersionVerdicts]:
    by_version: dict[str | None, list[StoredResult]] = defaultdict(list)
    for result in results:
        by_version[result.agent_version].append(result)
    for version, found in by_version.items():
        verdicts = Counter(result.verdict for result in found)
        yield VersionVerdicts(version, found[0].at, found[-1].at, verdicts)


def _behaviours(
    runs: Sequence[tuple[StoredResult, tuple[str, ...]]],
) -> Iterator[Behaviour]:
    by_tools: dict[tuple[str, ...], list[StoredResult]] = defaultdict(list)
    for result, tools in runs:
        by_tools[tools].append(result)
    for tools, found in sorted(by_tools.items(), key=lambda one: -len(one[1])):
        failed = sum(one.verdict == "failed" for one in found)
        yield Behaviour(tools, len(found), failed, found[0])
