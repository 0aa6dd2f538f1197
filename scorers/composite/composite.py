"""Several criteria as one: scorers with their thresholds come in, whether an invocation passes them
all, or what it cost, goes out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.authoring.ranges import Amount, Share, in_range, meets
from pathgauge.scorers.composite.parts import OfParts, Part, judged, scored
from pathgauge.scorers.cost.latency_and_failure import Latency
from pathgauge.scorers.cost.usage import ModelCalls, ToolCalls, TotalTokens
from pathgauge.scorers.judge_protocol import Ask, Judge, asks_model
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score, Scorer

NotEvaluated = Literal["ignore", "fail"]
"""What a member without a value means: nothing, or that the invocation does not pass."""

Measure = Literal["total_tokens", "latency", "tool_calls", "model_calls"]
"""What an invocation costs: tokens in and out, seconds, or calls; sub-agents included."""

Verdict = Literal["passed", "failed", "not_evaluated"]


@dataclass(frozen=True)
class Member:
    """One criterion that an invocation has to pass."""

    __pydantic_config__: ClassVar[Mapping[str, bool]] = {
        "arbitrary_types_allowed": True
    }  # so that a configuration may bring scorers

    name: str
    scorer: Scorer
    threshold: float


class _Judged(NamedTuple):
    member: Member
    score: Score
    verdict: Verdict


@dataclass(frozen=True)
class OfCriteria(ABC):
    """What scorers over several criteria have in common."""

    needs_reference: ClassVar[bool] = (
        False  # each instance has its own of these: what holds for one of its members
    )
    asks_model: ClassVar[bool] = False
    model: ClassVar[str | None] = None
    template: ClassVar[str] = ""

    of: tuple[Member, ...] = field(default=(), metadata={"written": "list of criteria"})
    """The criteria, each of which has a threshold; in a configuration their names."""
    not_evaluated: NotEvaluated = "ignore"
    """What a criterion without a value means: `ignore` it, or `fail`."""

    def __post_init__(self) -> None:
        check_choice("not_evaluated", self.not_evaluated, get_args(NotEvaluated))
        object.__setattr__(
            self, "needs_reference", any(member.scorer.needs_reference for member in self.of)
        )
        judges = [member.scorer for member in self.of if asks_model(member.scorer)]
        object.__setattr__(self, "asks_model", bool(judges))
        models = {judge.model for judge in judges}
        object.__setattr__(self, "model", models.pop() if len(models) == 1 else None)
        object.__setattr__(
            self,
            "template",
            judges[0].template if len(judges) == 1 else _digest(judges) if judges else "",
        )

    @abstractmethod
    def parts(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        """The score, from those of the members."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score every member; `details` has its verdict, value and threshold one by one. Those that
        ask a model have no value.
        """
        return scored(self.parts(actual, expected))

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Score every member, and ask those that ask a model."""
        return await judged(self.parts(actual, expected), ask)

    def pass_all(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        """1 when the invocation passes every member that counts, 0 when it does not.

        Raises `ValueError` for a member whose value is outside its own range, and whatever a member
        raises.
        """
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference", "no reference")
        scores = yield [Part(member.scorer, actual, expected) for member in self.of]
        found = [_judged(member, score) for member, score in zip(self.of, scores, strict=True)]
        details: Mapping[str, Json] = {"members": [_told(one) for one in found]}
        verdicts = {one.verdict for one in found}
        passed = "failed" not in verdicts and not (
            self.not_evaluated == "fail" and "not_evaluated" in verdicts
        )
        if passed and "passed" not in verdicts:
            return Score.not_evaluated("not_applicable", _line(found) or "no criteria", **details)
        return Score(float(passed), None, _line(found), details)


@dataclass(frozen=True)
class Composite(OfCriteria, Share):
    """1 when the invocation passes all of several criteria, else 0: the mean is the pass rate."""

    name: ClassVar[str] = "composite"

    def parts(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        """Whether the invocation passes."""
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

    def parts(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        """The measure of an invocation that passes."""
        passed = yield from self.pass_all(actual, expected)
        if passed.value is None:
            return passed
        if not passed.value:
            return Score.not_evaluated(
                "not_applicable", f"did not pass: {passed.explanation}", **passed.details
            )
        return _MEASURES[self.measure].score(actual, expected)


def _digest(judges: Sequence[Judge]) -> str:
    """What the template of several judges is: it changes when one of them is another."""
    return sha256(
        repr([(judge.model, judge.template) for judge in judges]).encode("utf-8", "surrogatepass")
    ).hexdigest()[:8]


def _judged(member: Member, score: Score) -> _Judged:
    if score.value is None:
        return _Judged(member, score, "not_evaluated")
    if not in_range(member.scorer, score.value):
        raise ValueError(
            f"{member.name}: {score.value} is outside [{member.scorer.low}, {member.scorer.high}]"
        )
    return _Judged(
        member, score, "passed" if meets(member.scorer, score.value, member.threshold) else "failed"
    )


def _line(judged: Sequence[_Judged]) -> str:
    """For instance `failed: latency (75 s); passed: failure, tool_trajectory_f1`."""
    by_verdict: dict[Verdict, list[str]] = {"failed": [], "not_evaluated": [], "passed": []}
    for member, score, verdict in judged:
        by_verdict[verdict].append(
            member.name if verdict == "passed" else f"{member.name} ({score.explanation})"
        )
    return "; ".join(
        f"{verdict.replace('_', ' ')}: {listed(names)}"
        for verdict, names in by_verdict.items()
        if names
    )


def _told(judged: _Judged) -> Json:
    member, score, verdict = judged
    told = {
        "name": member.name,
        "verdict": verdict,
        "value": score.value,
        "threshold": member.threshold,
    }
    return {**told, "reason": score.reason, "explanation": score.explanation}


_MEASURES: Mapping[Measure, Scorer] = {
    "total_tokens": TotalTokens(),
    "latency": Latency(),
    "tool_calls": ToolCalls(),
    "model_calls": ModelCalls(),
}
