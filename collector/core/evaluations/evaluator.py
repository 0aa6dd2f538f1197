"""Scores one invocation: an `Invocation` and its `Match` come in, an `Evaluation` goes out.

A criterion is a scorer with its options and a threshold. A scorer that raises, or that returns a
value outside its own range, yields the verdict `error` for its criterion and touches nothing else.
An invocation whose anchor never arrived is not judged: nobody knows how much of it is missing.
Criteria that ask a model are left for later: whoever asks makes results of them with `result_of`
and `failed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pathgauge.collector.core.references import Match
from pathgauge.scorers.authoring.ranges import in_range, meets
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.types import Invocation, Score, Scorer

Verdict = Literal["passed", "failed", "not_evaluated", "error", "informational"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

EvaluationKey = tuple[str, str, str]
"""Tenant, trace id, anchor span id."""

OVERLOADED = Score.not_evaluated("judge_overloaded", "too many evaluations wait for their judges")
_NOT_JUDGED: Mapping[str, Score] = {
    "not_sampled": Score.not_evaluated("not_sampled"),
    "overloaded": OVERLOADED,
}

WhenJudged = Literal["later", "unconfigured", "not_sampled", "overloaded"]
"""What becomes of criteria that ask a model: they are judged beside the pipeline, or why not."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A configured scorer; without a threshold its scores are informational."""

    name: str
    scorer: Scorer
    threshold: float | None = None
    objective: float | None = None
    """The wanted share of passes, between 0 and 1; `None` without one. What is alerted on, not what
    an invocation is judged by.
    """
    judge: str = ""
    """Of a scorer that asks a model: `model@template`, from configuration alone, so that another
    judge is not taken for another agent.
    """

    def verdict(self, value: float | None) -> Verdict:
        """Compare a value with the threshold in the scorer's direction."""
        if value is None:
            return "not_evaluated"
        if self.threshold is None:
            return "informational"
        return "passed" if meets(self.scorer, value, self.threshold) else "failed"


@dataclass(frozen=True, slots=True)
class Result:
    """What one criterion says of one invocation."""

    criterion: Criterion
    score: Score
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All results of one invocation. `revision` 0 is the first; late telemetry makes the next ones."""

    invocation: Invocation
    match: Match
    results: tuple[Result, ...]
    closed_by: str
    revision: int = 0
    awaits: bool = False
    """Whether judges will say more of it."""

    @property
    def key(self) -> EvaluationKey:
        """The identity of the evaluated invocation."""
        return self.invocation.tenant, self.invocation.trace_id, self.invocation.span_id

    @property
    def scored(self) -> bool:
        """Whether at least one criterion got a value."""
        return any(result.score.value is not None for result in self.results)


class Evaluator:
    """The criteria in force: global ones, and those of scenarios that override them."""

    def __init__(
        self,
        criteria: tuple[Criterion, ...],
        overrides: Mapping[str, tuple[Criterion, ...]] | None = None,
    ) -> None:
        self.criteria = criteria
        self.overrides = dict(overrides or {})

    def criteria_for(self, match: Match) -> tuple[Criterion, ...]:
        """The criteria that apply: without a reference, only those that need none."""
        if match.reference is None:
            return tuple(c for c in self.criteria if not c.scorer.needs_reference)
        return self.overrides.get(match.reference.scenario_id, self.criteria)

    def judges_for(self, match: Match) -> tuple[Criterion, ...]:
        """Those criteria among them that ask a model."""
        return tuple(
            criterion for criterion in self.criteria_for(match) if asks_model(criterion.scorer)
        )

    def evaluate(
        self,
        invocation: Invocation,
        match: Match,
        *,
        closed_by: str = "root_ended",
        revision: int = 0,
        judging: WhenJudged = "unconfigured",
    ) -> Evaluation:
        """Run every criterion that applies. Those that ask a model are run as `judging` says."""
        results, awaits = [], False
        for criterion in self.criteria_for(match):
            if (
                judging == "unconfigured"
                or "missing_root" in invocation.flags
                or not asks_model(criterion.scorer)
            ):
                results.append(_run(criterion, invocation, match))
            elif judging == "later":
                awaits = True
            else:
                results.append(Result(criterion, _NOT_JUDGED[judging], "not_evaluated"))
        return Evaluation(invocation, match, tuple(results), closed_by, revision, awaits)


def result_of(criterion: Criterion, score: Score) -> Result:
    """What a criterion says by its score; a value outside of the scorer's range is an error."""
    if score.value is not None and not in_range(criterion.scorer, score.value):
        low, high = criterion.scorer.low, criterion.scorer.high
        return Result(
            criterion,
            Score(None, None, f"{score.value} is outside [{low}, {high}]", score.details),
            "error",
        )
    return Result(criterion, score, criterion.verdict(score.value))


def failed(criterion: Criterion, error: Exception) -> Result:
    """What comes of a scorer that raised."""
    return Result(criterion, Score(None, None, f"{type(error).__name__}: {error}"), "error")


def _run(criterion: Criterion, invocation: Invocation, match: Match) -> Result:
    if "missing_root" in invocation.flags:
        return Result(
            criterion,
            Score.not_evaluated("incomplete", "the agent's own span never arrived"),
            "not_evaluated",
        )
    try:
        return result_of(criterion, criterion.scorer.score(invocation, match.turn))
    except (
        Exception
    ) as error:  # a scorer is foreign code: whatever it raises or returns is its own error
        return failed(criterion, error)
