"""Combines several criteria into one: whether an invocation passes all, or what passing cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.extras import NO_EXTRAS, Extras, extras_of
from pathgauge.scorers.authoring.options import FrozenMapping, check_choice
from pathgauge.scorers.authoring.ranges import Amount, Share, in_range, meets
from pathgauge.scorers.composite.parts import OfParts, Part, judged, scored
from pathgauge.scorers.cost.cost import Cost
from pathgauge.scorers.cost.latency_and_failure import Latency
from pathgauge.scorers.cost.prices import TokenPrice
from pathgauge.scorers.cost.usage import ModelCalls, ToolCalls, TotalTokens
from pathgauge.scorers.judge_protocol import Ask, Judge, asks_model
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score, Scorer

NotEvaluated = Literal["ignore", "fail"]
"""How a member without a value counts: not at all, or as failed."""

Measure = Literal["total_tokens", "cost", "latency", "tool_calls", "model_calls"]
"""The cost of an invocation: tokens, US dollars, seconds or calls, sub-agents included."""

Verdict = Literal["passed", "failed", "not_evaluated"]


@dataclass(frozen=True)
class Member:
    """One criterion that an invocation must pass."""

    # Pydantic validates the options of a composite, and knows no schema for scorers.
    __pydantic_config__: ClassVar[Mapping[str, bool]] = {"arbitrary_types_allowed": True}

    name: str
    scorer: Scorer
    threshold: float


class _Result(NamedTuple):
    member: Member
    score: Score
    verdict: Verdict


@dataclass(frozen=True)
class OfCriteria(ABC):
    """A scorer over several criteria. Each instance sets the class attributes below by its
    members.
    """

    needs_reference: ClassVar[bool] = False
    asks_model: ClassVar[bool] = False
    model: ClassVar[str | None] = None
    template: ClassVar[str] = ""
    extras: ClassVar[Extras] = NO_EXTRAS

    of: tuple[Member, ...] = field(default=(), metadata={"written": "list of criteria"})
    """The criteria, each with a threshold; in a configuration, their names."""
    not_evaluated: NotEvaluated = "ignore"
    """How to count a criterion without a value: `ignore` it, or `fail`."""

    def __post_init__(self) -> None:
        check_choice("not_evaluated", self.not_evaluated, get_args(NotEvaluated))
        object.__setattr__(
            self, "needs_reference", any(member.scorer.needs_reference for member in self.of)
        )
        object.__setattr__(self, "extras", extras_of(member.scorer for member in self.of))
        judges = [member.scorer for member in self.of if asks_model(member.scorer)]
        object.__setattr__(self, "asks_model", bool(judges))
        models = {judge.model for judge in judges}
        object.__setattr__(self, "model", models.pop() if len(models) == 1 else None)
        object.__setattr__(self, "template", _template(judges))

    @abstractmethod
    def parts(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        """Compute the score from the scores of the members."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score every member. `details` has the verdict, value and threshold of each. Members that
        ask a model have no value.
        """
        return scored(self.parts(actual, expected))

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Score every member, and ask a model where a member needs one."""
        return await judged(self.parts(actual, expected), ask)

    def pass_all(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        """1 if the invocation passes every member that counts, else 0.

        Raises `ValueError` for a member whose value is outside its own range. Exceptions of members
        are not caught.
        """
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference", "no reference")
        scores = yield [Part(member.scorer, actual, expected) for member in self.of]
        results = [_result(member, score) for member, score in zip(self.of, scores, strict=True)]
        details: Mapping[str, Json] = {"members": [_member_details(result) for result in results]}
        verdicts = {result.verdict for result in results}
        failing = {"failed", "not_evaluated"} if self.not_evaluated == "fail" else {"failed"}
        passed = not verdicts & failing
        explanation = _explanation(results)
        if passed and "passed" not in verdicts:
            return Score.not_evaluated("not_applicable", explanation or "no criteria", **details)
        return Score(float(passed), None, explanation, details)


@dataclass(frozen=True)
class Composite(OfCriteria, Share):
    """1 if the invocation passes all of several criteria, else 0; the mean is the pass rate."""

    name: ClassVar[str] = "composite"

    def parts(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        """1 if the invocation passes, else 0."""
        return self.pass_all(actual, expected)


@dataclass(frozen=True)
class CostOfPassed(OfCriteria, Amount):
    """The cost of an invocation that passes all of several criteria. Others have no value."""

    name: ClassVar[str] = "cost_of_passed"

    measure: Measure = "total_tokens"
    """The cost: `total_tokens`, `cost` in US dollars, `latency` in seconds, `tool_calls` or
    `model_calls`.
    """
    prices: Mapping[str, TokenPrice] = FrozenMapping()
    """For the measure `cost`, as in the scorer `cost`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("measure", self.measure, get_args(Measure))
        used = self.prices if self.measure == "cost" else {}
        object.__setattr__(self, "prices", FrozenMapping(used))

    def parts(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        """The cost if the invocation passes."""
        passed = yield from self.pass_all(actual, expected)
        if passed.value is None:
            return passed
        if not passed.value:
            return Score.not_evaluated(
                "not_applicable", f"did not pass: {passed.explanation}", **passed.details
            )
        if self.measure == "cost":
            return Cost(self.prices).score(actual, expected)
        return _MEASURES[self.measure].score(actual, expected)


def _template(judges: Sequence[Judge]) -> str:
    """The template of the only judge, or a fingerprint of several that changes with any of them."""
    if len(judges) <= 1:
        return "".join(judge.template for judge in judges)
    templates = repr([(judge.model, judge.template) for judge in judges])
    return sha256(templates.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _result(member: Member, score: Score) -> _Result:
    if score.value is None:
        return _Result(member, score, "not_evaluated")
    if not in_range(member.scorer, score.value):
        raise ValueError(
            f"{member.name}: {score.value} is outside [{member.scorer.low}, {member.scorer.high}]"
        )
    passed = meets(member.scorer, score.value, member.threshold)
    return _Result(member, score, "passed" if passed else "failed")


def _explanation(results: Sequence[_Result]) -> str:
    """For instance `failed: latency (75 s); passed: failure, tool_trajectory_f1`."""
    by_verdict: dict[Verdict, list[str]] = {"failed": [], "not_evaluated": [], "passed": []}
    for member, score, verdict in results:
        reason = "" if verdict == "passed" else f" ({score.explanation})"
        by_verdict[verdict].append(f"{member.name}{reason}")
    return "; ".join(
        f"{verdict.replace('_', ' ')}: {listed(names)}"
        for verdict, names in by_verdict.items()
        if names
    )


def _member_details(result: _Result) -> Json:
    return {
        "name": result.member.name,
        "verdict": result.verdict,
        "value": result.score.value,
        "threshold": result.member.threshold,
        "reason": result.score.reason,
        "explanation": result.score.explanation,
    }


_MEASURES: Mapping[Measure, Scorer] = {
    "total_tokens": TotalTokens(),
    "latency": Latency(),
    "tool_calls": ToolCalls(),
    "model_calls": ModelCalls(),
}
