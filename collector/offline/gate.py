"""The offline gate: replayed evaluations come in, one aggregated verdict per agent, scenario and
criterion goes out.

A score is the exact mean over the invocations that got a value; missing and unexpected turns of a
conversation count as 0, as they do online. Where invocations name their test run, it is the mean
over the runs of these means, so that every run counts the same, and those that name none are one
run more. A gate that judged nothing has not passed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import fmean, stdev

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result, Verdict
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.types import Reference

UNNAMED = "(no name)"
"""Stands for an agent whose spans do not name it."""

NOTHING_JUDGED = "Nothing was compared with a threshold, so the gate does not pass."


@dataclass(frozen=True, slots=True)
class Line:
    """What one criterion says of one agent in one scenario."""

    agent: str
    scenario: str
    criterion: Criterion
    verdict: Verdict
    score: float | None
    invocations: int
    evaluated: int
    """Those of them that got a value."""
    explanations: tuple[str, ...]
    """Why invocations failed or could not be judged, without repetition."""
    runs: tuple[float, ...] = ()
    """The mean of each test run that got a value; none where invocations name no run."""

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over the test runs; `None` for less than two."""
        return stdev(self.runs) if len(self.runs) > 1 else None

    def __str__(self) -> str:
        """The failure in the words of ADK's own gate, with the runs and the scenario added."""
        scenario = f" [{self.scenario}]" if self.scenario else ""
        over = (
            ""
            if self.deviation is None
            else f" over {len(self.runs)} runs (standard deviation {self.deviation:.3g})"
        )
        told = (
            "No score could be given."
            if self.verdict == "error"
            else f"Expected {self.criterion.threshold:g}, but got {self.score:.6g}{over}."
        )
        return (
            f"{self.criterion.name} for {self.agent} {self.verdict.capitalize()}. {told}{scenario}"
        )


@dataclass(frozen=True, slots=True)
class Gate:
    """All lines, and whether they let the change pass."""

    lines: tuple[Line, ...]

    @property
    def failures(self) -> tuple[Line, ...]:
        """The lines that stop the gate."""
        return tuple(line for line in self.lines if line.verdict in ("failed", "error"))

    @property
    def judged(self) -> bool:
        """Whether any score was compared with a threshold."""
        return any(line.verdict in ("passed", "failed") for line in self.lines)

    @property
    def passed(self) -> bool:
        """Nothing failed, and something was judged."""
        return self.judged and not self.failures


@dataclass(slots=True)
class _Run:
    values: list[float] = field(default_factory=list)
    zeros: int = 0

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / (len(self.values) + self.zeros)


@dataclass(slots=True)
class _Tally:
    criterion: Criterion
    results: list[Result] = field(default_factory=list)
    runs: dict[str | None, _Run] = field(default_factory=lambda: defaultdict(_Run))


def judge(replayed: Iterable[Replayed]) -> Gate:
    """Aggregate everything that was replayed."""
    metrics: dict[tuple[str, str, str], _Tally] = {}
    for one in replayed:
        runs: dict[tuple[str, str | None, str | None], str | None] = {}
        for evaluation in one.evaluations:
            invocation = evaluation.invocation
            runs[invocation.tenant, invocation.conversation_id, invocation.scenario_id] = (
                invocation.run_id
            )
            for result in evaluation.results:
                tally = metrics.setdefault(_key(evaluation, result), _Tally(result.criterion))
                tally.results.append(result)
                tally.runs[invocation.run_id].values += (
                    [] if result.score.value is None else [result.score.value]
                )
        for case in one.cases:
            run_id = runs.get((case.tenant, case.conversation_id, case.reference.scenario_id))
            for score in case.scores:
                key = case.agent or UNNAMED, case.reference.scenario_id, score.criterion.name
                if key in metrics:
                    metrics[key].runs[run_id].zeros += case.missing + case.unexpected
    return Gate(tuple(_line(*key[:2], tally) for key, tally in sorted(metrics.items())))


def not_run(replayed: Iterable[Replayed], references: Iterable[Reference]) -> list[str]:
    """The scenarios that have a reference and were not run: an agent that crashed early leaves no
    trace to fail by.
    """
    run = {
        evaluation.match.reference.scenario_id
        for one in replayed
        for evaluation in one.evaluations
        if evaluation.match.reference
    }
    return [reference.scenario_id for reference in references if reference.scenario_id not in run]


def _key(evaluation: Evaluation, result: Result) -> tuple[str, str, str]:
    reference = evaluation.match.reference
    return (
        evaluation.invocation.agent or UNNAMED,
        reference.scenario_id if reference else "",
        result.criterion.name,
    )


def _line(agent: str, scenario: str, tally: _Tally) -> Line:
    judged = [run for run in tally.runs.values() if run.values]
    means = tuple(run.mean for run in judged)
    score = fmean(means) if means else None
    broken = any(result.verdict == "error" for result in tally.results)
    return Line(
        agent=agent,
        scenario=scenario,
        criterion=tally.criterion,
        verdict="error" if broken else tally.criterion.verdict(score),
        score=score,
        invocations=len(tally.results),
        evaluated=sum(len(run.values) for run in judged),
        explanations=tuple(_explanations(tally)),
        runs=means if tally.runs.keys() != {None} else (),
    )


def _explanations(tally: _Tally) -> Iterator[str]:
    told = [
        result.score.explanation
        for result in tally.results
        if result.verdict in ("failed", "error", "not_evaluated")
    ]
    zeros = sum(run.zeros for run in tally.runs.values())
    if zeros:
        told.append(f"{zeros} missing or unexpected turns count as 0")
    yield from dict.fromkeys(text for text in told if text)
