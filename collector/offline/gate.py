"""The verdict of `pathgauge score`: replayed evaluations, aggregated by agent, scenario and
criterion.

A score is the exact mean over the invocations that got a value. Missing and unexpected turns of a
conversation count as 0, as they do online. Where invocations name their test run, the score is the
mean of the runs' means, so that every run has the same weight; invocations without a run form one
more run. A gate that compared nothing with a threshold does not pass.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import fmean, stdev

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result, Verdict
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.types import Reference

UNNAMED = "(no name)"
"""Shown for an agent whose spans do not name it."""

NOTHING_JUDGED = "Nothing was compared with a threshold, so the gate does not pass."


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

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over the test runs; `None` for fewer than two."""
        if len(self.runs) < 2:
            return None
        return stdev(self.runs)

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
        return f" over {len(self.runs)} runs (standard deviation {self.deviation:.3g})"


@dataclass(frozen=True, slots=True)
class Gate:
    """All lines, and whether the gate passes."""

    lines: tuple[Line, ...]

    @property
    def failures(self) -> tuple[Line, ...]:
        """The lines that make the gate fail."""
        return tuple(line for line in self.lines if line.verdict in ("failed", "error"))

    @property
    def judged(self) -> bool:
        """Whether any score was compared with a threshold."""
        return any(line.verdict in ("passed", "failed") for line in self.lines)

    @property
    def passed(self) -> bool:
        """Nothing failed, and at least one score was compared with a threshold."""
        return self.judged and not self.failures


@dataclass(slots=True)
class _Run:
    values: list[float] = field(default_factory=list)
    zeros: int = 0

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / (len(self.values) + self.zeros)


@dataclass(slots=True)
class _Aggregate:
    criterion: Criterion
    results: list[Result] = field(default_factory=list)
    runs: dict[str | None, _Run] = field(default_factory=lambda: defaultdict(_Run))

    def add(self, result: Result, run_id: str | None) -> None:
        self.results.append(result)
        run = self.runs[run_id]
        if result.score.value is not None:
            run.values.append(result.score.value)


_LineKey = tuple[str, str, str]
"""Agent, scenario, criterion."""

_ConversationKey = tuple[str, str | None, str | None]
"""Tenant, conversation, scenario."""


def judge(replayed: Iterable[Replayed]) -> Gate:
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
                aggregate.add(result, invocation.run_id)
        for finished in one.conversations:
            _add_zeros(finished, run_ids, aggregates)
    return Gate(tuple(_line(*key[:2], aggregates[key]) for key in sorted(aggregates)))


def _add_zeros(
    conversation: ConversationResult,
    run_ids: dict[_ConversationKey, str | None],
    aggregates: dict[_LineKey, _Aggregate],
) -> None:
    scenario = conversation.reference.scenario_id
    run_id = run_ids.get((conversation.tenant, conversation.conversation_id, scenario))
    for score in conversation.scores:
        key = conversation.agent or UNNAMED, scenario, score.criterion.name
        if key in aggregates:
            aggregates[key].runs[run_id].zeros += conversation.missing + conversation.unexpected


def scenarios_not_run(replayed: Iterable[Replayed], references: Iterable[Reference]) -> list[str]:
    """Scenarios that have a reference but no invocation. An agent that crashes early leaves no
    trace that could fail.
    """
    run = {
        evaluation.match.reference.scenario_id
        for one in replayed
        for evaluation in one.evaluations
        if evaluation.match.reference
    }
    return [reference.scenario_id for reference in references if reference.scenario_id not in run]


def _line_key(evaluation: Evaluation, result: Result) -> _LineKey:
    reference = evaluation.match.reference
    scenario = ""
    if reference:
        scenario = reference.scenario_id
    return evaluation.invocation.agent or UNNAMED, scenario, result.criterion.name


def _line(agent: str, scenario: str, aggregate: _Aggregate) -> Line:
    runs = [run for run in aggregate.runs.values() if run.values]
    means = tuple(run.mean for run in runs)
    score = fmean(means) if means else None
    verdict = aggregate.criterion.verdict(score)
    if any(result.verdict == "error" for result in aggregate.results):
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
        evaluated=sum(len(run.values) for run in runs),
        explanations=tuple(_explanations(aggregate)),
        runs=named_runs,
    )


def _explanations(aggregate: _Aggregate) -> Iterator[str]:
    explanations = [
        result.score.explanation
        for result in aggregate.results
        if result.verdict in ("failed", "error", "not_evaluated")
    ]
    zeros = sum(run.zeros for run in aggregate.runs.values())
    if zeros:
        explanations.append(f"{zeros} missing or unexpected turns count as 0")
    yield from dict.fromkeys(text for text in explanations if text)
