"""Scores of many invocations together: criteria with `over`, and the overall line of each
criterion.

Here every invocation has the same weight, whatever its scenario and run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pathgauge.collector.core.evaluations.aggregation import (
    Aggregate,
    Aggregation,
    aggregate,
    is_below,
    verdict,
)
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Verdict
from pathgauge.collector.core.evaluations.statistics import deviation_of
from pathgauge.collector.offline.gate_lines import UNNAMED, Line
from pathgauge.scorers.matching.measures import mean_of
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation


@dataclass(frozen=True, slots=True)
class AggregateLine:
    """The result of a criterion over a scenario, an agent (no scenario) or a suite (neither)."""

    agent: str
    scenario: str
    criterion: Criterion
    aggregation: Aggregation
    verdict: Verdict
    aggregate: Aggregate | None
    """`None` without scores."""

    def __str__(self) -> str:
        """The failure, with the number of scores and the interval."""
        outcome = f"{self.criterion.name} for {self.name} {self.verdict.capitalize()}."
        if self.aggregate is None:
            return f"{outcome} No score could be given."
        one = self.aggregate
        return (
            f"{outcome} Expected {self.criterion.threshold:g}, but got {one.value:.6g} over"
            f" {counted(one.samples, 'score')} (95 % interval {one.low:.3g} to {one.high:.3g})."
        )

    @property
    def name(self) -> str:
        """What it is about, such as `planner [refund]`; `all agents` for a suite."""
        if self.aggregation.over == "suite":
            return "all agents"
        return f"{self.agent} [{self.scenario}]" if self.scenario else self.agent

    def fails_because_of(self, evaluation: Evaluation) -> bool:
        """Whether it failed, and a score of this invocation pulls it down."""
        threshold = self.criterion.threshold
        if self.verdict != "failed" or threshold is None or not self._covers(evaluation.invocation):
            return False
        return any(
            is_below(self.aggregation, self.criterion.scorer, threshold, result.score.value)
            for result in evaluation.results
            if result.criterion.name == self.criterion.name and result.score.value is not None
        )

    def _covers(self, invocation: Invocation) -> bool:
        return self.agent in ("", invocation.agent or UNNAMED) and self.scenario in (
            "",
            invocation.scenario_id,
        )


@dataclass(frozen=True, slots=True)
class Overall:
    """Mean and sample standard deviation of all scores of a criterion."""

    metric: str
    mean: float
    deviation: float | None
    """`None` with fewer than two scores."""
    samples: int


@dataclass(slots=True)
class _Group:
    criterion: Criterion
    aggregation: Aggregation
    scores: dict[str, tuple[float, ...]] = field(default_factory=dict)


def aggregate_lines(lines: Iterable[Line]) -> Iterator[AggregateLine]:
    """One line for each scenario, agent or suite that a criterion sums up."""
    groups: dict[tuple[str, str, str], _Group] = {}
    for one in lines:
        aggregation = one.criterion.aggregation
        if aggregation is None:
            continue
        agent = "" if aggregation.over == "suite" else one.agent
        scenario = one.scenario if aggregation.over == "scenario" else ""
        key = agent, scenario, one.criterion.name
        group = groups.setdefault(key, _Group(one.criterion, aggregation))
        if one.scenario or not aggregation.of_runs:
            group.scores[f"{one.agent}\n{one.scenario}"] = one.values
    for agent, scenario, name in sorted(groups):
        yield _line(agent, scenario, groups[agent, scenario, name])


def too_few_runs(lines: Iterable[Line]) -> Counter[str]:
    """How many invocations have a score of a criterion over repeated runs that does not count,
    because the scenario has fewer runs than the criterion needs.
    """
    found: Counter[str] = Counter()
    for one in lines:
        aggregation = one.criterion.aggregation
        if aggregation is None or not aggregation.of_runs or one.criterion.threshold is None:
            continue
        if one.scenario and one.evaluated and len(one.values) < aggregation.k:
            found[one.criterion.name] += one.evaluated
    return found


def _line(agent: str, scenario: str, group: _Group) -> AggregateLine:
    criterion, aggregation = group.criterion, group.aggregation
    summary = aggregate(aggregation, criterion.scorer, group.scores)
    outcome: Verdict = "informational"
    if summary is None:
        outcome = "not_evaluated"
    elif criterion.threshold is not None:
        outcome = verdict(aggregation, criterion.scorer, criterion.threshold, summary.value)
    return AggregateLine(agent, scenario, criterion, aggregation, outcome, summary)


def overall_lines(lines: Iterable[Line]) -> Iterator[Overall]:
    """One line for each criterion with at least one score, in order of their names."""
    by_metric: dict[str, list[float]] = {}
    for one in lines:
        by_metric.setdefault(one.criterion.name, []).extend(one.values)
    for metric, values in sorted(by_metric.items()):
        finite = [value for value in values if math.isfinite(value)]
        if finite:
            deviation = deviation_of(finite) if len(finite) > 1 else None
            yield Overall(metric, mean_of(finite), deviation, len(finite))
