"""The lines of a gate: scores aggregated by agent, scenario and criterion.

A score is the exact mean over the invocations that got a value. Missing and unexpected turns of a
conversation count as the worst value, as they do online. Where invocations name their test run, the
score is the mean of the runs' means, so that every run has the same weight; invocations without a
run form one more run.

A run in which such turns have no worst value to count as has no mean. It is left out here, and
counted by the coverage.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat

from pathgauge.collector.core.evaluations.conversation import mean_with_absent
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result, Verdict
from pathgauge.collector.core.evaluations.statistics import deviation_of
from pathgauge.collector.core.references import OF_KNOWN_SCENARIO
from pathgauge.collector.offline.coverage import unscored_reason
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.authoring.ranges import worst
from pathgauge.scorers.matching.measures import mean_of
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation

UNNAMED = "(no name)"
"""Shown for an agent whose spans do not name it."""

_EXPLAINED: tuple[Verdict, ...] = ("failed", "error", "not_evaluated")


@dataclass(frozen=True, slots=True)
class Line:
    """The result of one criterion for one agent in one scenario."""

    agent: str
    scenario: str
    criterion: Criterion
    verdict: Verdict
    score: float | None
    invocations: int
    evaluated: int
    """Invocations that got a value."""
    explanations: tuple[str, ...]
    """Why invocations failed or could not be judged, without repetition."""
    runs: tuple[float, ...] = ()
    """The mean of each test run that got a value; empty when no invocation names a run."""
    unscored: Mapping[str, int] = field(default_factory=dict)
    """Invocations without a value that the criterion applies to, by reason."""
    traces: Mapping[str, str] = field(default_factory=dict)
    """The trace of each invocation, with the explanation of a failed or missing score."""
    duration_s: float | None = None
    """The seconds of all invocations whose duration is known."""
    values: tuple[float, ...] = ()
    """All scores; the worst value for each missing or unexpected turn of a conversation."""

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over the test runs; `None` for fewer than two."""
        if len(self.runs) < 2:
            return None
        return deviation_of(self.runs)

    def __str__(self) -> str:
        """The failure in the wording of ADK's own gate, with the runs and the scenario added."""
        outcome = f"{self.criterion.name} for {self.agent} {self.verdict.capitalize()}."
        if self.verdict == "error":
            reason = "No score could be given."
        else:
            reason = f"Expected {self.criterion.threshold:g}, but got {self.score:.6g}{self._over}."
        if self.scenario:
            reason = f"{reason} [{self.scenario}]"
        return f"{outcome} {reason}"

    @property
    def _over(self) -> str:
        if self.deviation is None:
            return ""
        return f" over {counted(len(self.runs), 'run')} (standard deviation {self.deviation:.3g})"


@dataclass(slots=True)
class _Run:
    values: list[float] = field(default_factory=list)
    absent: int = 0
    """Missing and unexpected turns."""


@dataclass(slots=True)
class _Aggregate:
    criterion: Criterion
    results: list[tuple[Invocation, Result]] = field(default_factory=list)
    runs: dict[str | None, _Run] = field(default_factory=lambda: defaultdict(_Run))

    def add(self, invocation: Invocation, result: Result) -> None:
        self.results.append((invocation, result))
        run = self.runs[invocation.run_id]
        if result.score.value is not None:
            run.values.append(result.score.value)


_LineKey = tuple[str, str, str]
"""Agent, scenario, criterion."""

_ConversationKey = tuple[str, str | None, str | None]
"""Tenant, conversation, scenario."""


def lines_of(replayed: Iterable[Replayed]) -> Iterator[Line]:
    """Aggregate everything that was replayed."""
    aggregates: dict[_LineKey, _Aggregate] = {}
    for one in replayed:
        run_ids: dict[_ConversationKey, str | None] = {}
        for evaluation in one.evaluations:
            invocation = evaluation.invocation
            conversation = invocation.tenant, invocation.conversation_id, invocation.scenario_id
            run_ids[conversation] = invocation.run_id
            for result in evaluation.results:
                key = _line_key(evaluation, result)
                aggregate = aggregates.setdefault(key, _Aggregate(result.criterion))
                aggregate.add(invocation, result)
        for finished in one.conversations:
            _add_absent_turns(finished, run_ids, aggregates)
    for key in sorted(aggregates):
        yield _line(*key[:2], aggregates[key])


def _add_absent_turns(
    conversation: ConversationResult,
    run_ids: dict[_ConversationKey, str | None],
    aggregates: dict[_LineKey, _Aggregate],
) -> None:
    scenario = conversation.reference.scenario_id
    run_id = run_ids.get((conversation.tenant, conversation.conversation_id, scenario))
    for score in conversation.scores:
        key = conversation.agent or UNNAMED, scenario, score.criterion.name
        if key in aggregates:
            aggregates[key].runs[run_id].absent += conversation.missing + conversation.unexpected


def _line_key(evaluation: Evaluation, result: Result) -> _LineKey:
    match, aggregation = evaluation.match, result.criterion.aggregation
    # A turn that the reference does not have has the criteria of its scenario, but is no run of it.
    is_run = match.reference is not None
    is_turn = match.unmatched in OF_KNOWN_SCENARIO and (
        aggregation is None or not aggregation.of_runs
    )
    scenario = evaluation.scenario_id if is_run or is_turn else None
    return evaluation.invocation.agent or UNNAMED, scenario or "", result.criterion.name


def _line(agent: str, scenario: str, aggregate: _Aggregate) -> Line:
    scored = [run for run in aggregate.runs.values() if run.values or run.absent]
    by_run = [
        (mean, run)
        for run in scored
        if (mean := mean_with_absent(aggregate.criterion, run.values, run.absent)) is not None
    ]
    means = tuple(mean for mean, _ in by_run)
    score = mean_of(means) if means else None
    verdict = aggregate.criterion.verdict(score)
    if any(result.verdict == "error" for _, result in aggregate.results):
        verdict = "error"
    named_runs: tuple[float, ...] = ()
    if aggregate.runs.keys() != {None}:
        named_runs = means
    return Line(
        agent=agent,
        scenario=scenario,
        criterion=aggregate.criterion,
        verdict=verdict,
        score=score,
        invocations=len(aggregate.results),
        evaluated=sum(len(run.values) for run in scored),
        explanations=tuple(_explanations(aggregate)),
        runs=named_runs,
        unscored=Counter(filter(None, (unscored_reason(one) for _, one in aggregate.results))),
        traces=_traces(aggregate),
        duration_s=_duration(aggregate),
        values=tuple(value for _, run in by_run for value in _values(aggregate.criterion, run)),
    )


def _values(criterion: Criterion, run: _Run) -> Iterator[float]:
    yield from run.values
    value = worst(criterion.scorer)
    if value is not None:
        yield from repeat(value, run.absent)


def _traces(aggregate: _Aggregate) -> dict[str, str]:
    traces: dict[str, str] = {}
    for invocation, result in aggregate.results:
        explanation = result.score.explanation if result.verdict in _EXPLAINED else ""
        if not traces.get(invocation.trace_id):
            traces[invocation.trace_id] = explanation
    return traces


def _duration(aggregate: _Aggregate) -> float | None:
    known = [
        invocation.duration_s
        for invocation, _ in aggregate.results
        if invocation.duration_s is not None
    ]
    return math.fsum(known) if known else None


def _explanations(aggregate: _Aggregate) -> Iterator[str]:
    explanations = [
        result.score.explanation for _, result in aggregate.results if result.verdict in _EXPLAINED
    ]
    absent = sum(run.absent for run in aggregate.runs.values())
    if absent:
        value = worst(aggregate.criterion.scorer)
        text = "have no worst value to count as" if value is None else f"count as {value:g}"
        explanations.append(f"{absent} missing or unexpected turns {text}")
    yield from dict.fromkeys(text for text in explanations if text)
