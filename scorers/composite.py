"""Several criteria as one: scorers with their thresholds come in, whether an invocation passes them all, or what it cost, goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, get_args

from scorers.kinds import Amount, Share
from scorers.matching.evidence import listed
from scorers.options import check_choice
from scorers.runs.amounts import ModelCalls, ToolCalls, TotalTokens
from scorers.runs.efficiency import Latency
from scorers.thresholds import in_range, meets
from scorers.types import Invocation, Json, ReferenceTurn, Score, Scorer

NotEvaluated = Literal["ignore", "fail"]
"""What a member without a value means: nothing, or that the invocation does not pass."""

Measure = Literal["total_tokens", "latency", "tool_calls", "model_calls"]
"""What an invocation costs: tokens in and out, seconds, or calls; sub-agents included."""

Verdict = Literal["passed", "failed", "not_evaluated"]


@dataclass(frozen=True)
class Member:
    """One criterion that an invocation has to pass."""

    __pydantic_config__: ClassVar[Mapping[str, bool]] = {"arbitrary_types_allowed": True}  # so that a configuration may bring scorers

    name: str
    scorer: Scorer
    threshold: float


class _Judged(NamedTuple):
    member: Member
    score: Score
    verdict: Verdict


@dataclass(frozen=True)
class OfCriteria:
    """What scorers over several criteria have in common."""

    needs_reference: ClassVar[bool] = False  # each instance has its own: whether one of its members does

    of: tuple[Member, ...] = field(default=(), metadata={"written": "list of criteria"})
    """The criteria, each of which has a threshold; in a configuration their names."""
    not_evaluated: NotEvaluated = "ignore"
    """What a criterion without a value means: `ignore` it, or `fail`."""

    def __post_init__(self) -> None:
        check_choice("not_evaluated", self.not_evaluated, get_args(NotEvaluated))
        object.__setattr__(self, "needs_reference", any(member.scorer.needs_reference for member in self.of))

    def pass_all(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """1 when the invocation passes every member that counts, 0 when it does not.

        Raises `ValueError` for a member whose value is outside its own range, and whatever a member raises.
        """
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference", "no reference")
        judged = [_judge(member, actual, expected) for member in self.of]
        details: Mapping[str, Json] = {"members": [_told(one) for one in judged]}
        verdicts = {one.verdict for one in judged}
        passed = "failed" not in verdicts and not (self.not_evaluated == "fail" and "not_evaluated" in verdicts)
        if passed and "passed" not in verdicts:
            return Score.not_evaluated("not_applicable", _line(judged) or "no criteria", **details)
        return Score(float(passed), None, _line(judged), details)


@dataclass(frozen=True)
class Composite(OfCriteria, Share):
    """1 when the invocation passes all of several criteria, else 0: the mean is the pass rate."""

    name: ClassVar[str] = "composite"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Judge by every member; `details` has its verdict, value and threshold one by one."""
        return self.pass_all(actual, expected)


@dataclass(frozen=True)
class CostOfPassed(OfCriteria, Amount):
    """What an invocation cost that passes all of several criteria; one that does not has no value."""

    name: ClassVar[str] = "cost_of_passed"

    measure: Measure = "total_tokens"
    """The cost: `total_tokens`, `latency` in seconds, `tool_calls` or `model_calls`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("measure", self.measure, get_args(Measure))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Measure an invocation that passes all members."""
        judged = self.pass_all(actual, expected)
        if judged.value is None:
            return judged
        if not judged.value:
            return Score.not_evaluated("not_applicable", f"did not pass: {judged.explanation}", **judged.details)
        return _MEASURES[self.measure].score(actual, expected)


def _judge(member: Member, actual: Invocation, expected: ReferenceTurn | None) -> _Judged:
    score = member.scorer.score(actual, expected)
    if score.value is None:
        return _Judged(member, score, "not_evaluated")
    if not in_range(member.scorer, score.value):
        raise ValueError(f"{member.name}: {score.value} is outside [{member.scorer.low}, {member.scorer.high}]")
    return _Judged(member, score, "passed" if meets(member.scorer, score.value, member.threshold) else "failed")


def _line(judged: Sequence[_Judged]) -> str:
    """For instance `failed: latency (75 s); passed: failure, tool_trajectory_f1`."""
    by_verdict: dict[Verdict, list[str]] = {"failed": [], "not_evaluated": [], "passed": []}
    for member, score, verdict in judged:
        by_verdict[verdict].append(member.name if verdict == "passed" else f"{member.name} ({score.explanation})")
    return "; ".join(f"{verdict.replace('_', ' ')}: {listed(names)}" for verdict, names in by_verdict.items() if names)


def _told(judged: _Judged) -> Json:
    member, score, verdict = judged
    told = {"name": member.name, "verdict": verdict, "value": score.value, "threshold": member.threshold}
    return {**told, "reason": score.reason, "explanation": score.explanation}


_MEASURES: Mapping[Measure, Scorer] = {
    "total_tokens": TotalTokens(),
    "latency": Latency(),
    "tool_calls": ToolCalls(),
    "model_calls": ModelCalls(),
}
