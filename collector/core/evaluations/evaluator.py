"""Scores one invocation with every criterion that applies.

A criterion is a scorer with its options and a threshold. If a scorer raises, or returns what it may
not, such as a value outside its own range, its criterion gets the verdict `error`; other criteria
are unaffected. An invocation whose entry span never arrived is not scored, because an unknown part
of it is missing.

Criteria that ask a model are not run here but in the judge queue, which builds their results with
`result_of` and `failed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, get_args

from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.scorer_watch import UNWATCHED, ScorerWatch
from pathgauge.collector.core.evaluations.shadow_result import (
    AwaitedShadow,
    Shadowed,
    Verdicts,
)
from pathgauge.collector.core.evidence.failure import Failure
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.collector.core.references import Match
from pathgauge.scorers.authoring.extras import extras_of
from pathgauge.scorers.authoring.ranges import in_range, meets
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.session_protocol import SessionTurn, scores_sessions
from pathgauge.scorers.types import Invocation, Score, Scorer

Verdict = Literal["passed", "failed", "not_evaluated", "error", "informational"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_MAX_QUOTED = 100

EvaluationKey = tuple[str, str, str]
"""Tenant, trace id, span id of the entry agent."""


def evaluation_key(invocation: Invocation) -> EvaluationKey:
    """The identity of the evaluation of an invocation."""
    return invocation.tenant, invocation.trace_id, invocation.span_id


OVERLOADED = Score.not_evaluated("judge_overloaded", "too many evaluations wait for their judges")
_NOT_JUDGED: Mapping[str, Score] = {
    "not_sampled": Score.not_evaluated("not_sampled"),
    "not_asked": Score.not_evaluated("judge_not_asked", "the backfill did not ask judges"),
    "overloaded": OVERLOADED,
}

SESSION = "session"
"""The dialect of the invocation that stands for a whole session."""

WhenJudged = Literal["later", "unconfigured", "not_sampled", "not_asked", "overloaded"]
"""Whether criteria that ask a model are judged later, or the reason why they are not.
`unconfigured`: there is no judge queue, and the scorer itself reports that no judge is configured.
"""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A configured scorer. Without a threshold, its scores are informational."""

    name: str
    scorer: Scorer
    threshold: float | None = None
    objective: float | None = None
    """The SLO: the share of passes wanted, between 0 and 1. It is used in alerts, and does not
    affect the verdict on an invocation.
    """
    judge: str = ""
    """For a scorer that asks a model: `model@template`. It labels the scores, so that a change of
    the judge is not mistaken for a change of the agent.
    """
    aggregation: Aggregation | None = None
    """The scores that the threshold judges together; `None`: it judges each invocation."""

    def verdict(self, value: float | None) -> Verdict:
        """Compare the score of an invocation with the threshold, in the scorer's direction."""
        if value is None:
            return "not_evaluated"
        if self.threshold is None or self.aggregation is not None:
            return "informational"
        return "passed" if meets(self.scorer, value, self.threshold) else "failed"


@dataclass(frozen=True, slots=True)
class Result:
    """The score and verdict of one criterion for one invocation."""

    criterion: Criterion
    score: Score
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SessionResult:
    """What an evaluation says about a session beside its results."""

    ended_by: str
    members: tuple[tuple[str, str], ...]
    """Trace id and span id of each turn, in order."""
    turns: tuple[SessionTurn, ...] = ()
    """The turns; empty in a process that has not evaluated the session itself."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All results of one invocation, or of one session. Revision 0 is the first; late spans, and
    further turns of the session, cause later ones.
    """

    invocation: Invocation
    match: Match
    results: tuple[Result, ...]
    closed_by: str
    revision: int = 0
    awaits: bool = False
    """Whether results of judges will follow."""
    failure: Failure | None = None
    """What kind of failure it was, if a criterion failed. The evaluator does not set it, but
    `pathgauge.collector.core.evidence.failures.with_failure`.
    """
    misses: tuple[Miss, ...] = ()
    """Which tool calls made a score worse than the best one. Set together with `failure`."""
    shadow: Shadowed | None = None
    """The scores of criteria in shadow, which are stored beside the others and nothing else."""
    shadow_awaited: AwaitedShadow | None = None
    """Set if results of judges in shadow will follow."""
    shadow_uncompared: Verdicts = ()
    """Results in shadow whose active criteria may be judges that have not answered."""

    session: SessionResult | None = None
    """Set if a whole session was evaluated, and not a single invocation."""

    @property
    def key(self) -> EvaluationKey:
        """The identity of the evaluated invocation."""
        return self.invocation.tenant, self.invocation.trace_id, self.invocation.span_id

    @property
    def scenario_id(self) -> str | None:
        """The scenario of the reference, else the one that the invocation names."""
        return self.match.scenario_of(self.invocation)

    @property
    def scored(self) -> bool:
        """Whether at least one criterion got a value."""
        return any(result.score.value is not None for result in self.results)

    @property
    def failed(self) -> bool:
        """Whether at least one criterion failed."""
        return any(result.verdict == "failed" for result in self.results)


class Evaluator:
    """The active criteria: global ones, and per scenario those that replace them."""

    def __init__(
        self,
        criteria: tuple[Criterion, ...],
        overrides: Mapping[str, tuple[Criterion, ...]] | None = None,
    ) -> None:
        self.criteria = criteria
        self.overrides = dict(overrides or {})
        self.extras = extras_of(criterion.scorer for criterion in self.every)
        """What to keep of the telemetry beside the usual parts of an invocation."""

        self.of_sessions = any(scores_sessions(criterion.scorer) for criterion in self.every)
        """Whether any criterion scores whole sessions."""

    @property
    def every(self) -> Iterator[Criterion]:
        """The criteria of all scenarios."""
        return chain(self.criteria, *self.overrides.values())

    def criteria_of(self, match: Match, scenario_id: str | None) -> tuple[Criterion, ...]:
        """The criteria that apply in a scenario, to single invocations and to whole sessions.
        Without a reference, only those that need none.
        """
        # A turn that the reference of the scenario does not have is still one of the scenario.
        found = self.overrides.get(scenario_id or "", self.criteria)
        if match.reference is None:
            return tuple(c for c in found if not c.scorer.needs_reference)
        return found

    def criteria_for(
        self, match: Match, invocation: Invocation, *, session: bool = False
    ) -> tuple[Criterion, ...]:
        """Those of `criteria_of` that apply to an invocation, or to a whole session."""
        found = self.criteria_of(match, match.scenario_of(invocation))
        if not self.of_sessions:
            return () if session else found
        return tuple(c for c in found if scores_sessions(c.scorer) is session)

    def judges_for(
        self, match: Match, invocation: Invocation, *, session: bool
    ) -> tuple[Criterion, ...]:
        """The criteria among `criteria_for` that ask a model."""
        criteria = self.criteria_for(match, invocation, session=session)
        return tuple(criterion for criterion in criteria if asks_model(criterion.scorer))

    def evaluate(
        self,
        invocation: Invocation,
        match: Match,
        *,
        closed_by: str = "root_ended",
        revision: int = 0,
        judging: WhenJudged = "unconfigured",
        watch: ScorerWatch = UNWATCHED,
    ) -> Evaluation:
        """Run every criterion that applies. `judging` decides about those that ask a model."""
        results, awaits = [], False
        for criterion in self.criteria_for(match, invocation):
            if (
                judging == "unconfigured"
                or "missing_root" in invocation.flags
                or not asks_model(criterion.scorer)
            ):
                results.append(_run(criterion, invocation, match, watch))
            elif judging == "later":
                awaits = True
            else:
                results.append(Result(criterion, _NOT_JUDGED[judging], "not_evaluated"))
        return Evaluation(invocation, match, tuple(results), closed_by, revision, awaits)

    def evaluate_session(
        self,
        invocation: Invocation,
        match: Match,
        session: SessionResult,
        *,
        revision: int = 0,
        judging: WhenJudged = "unconfigured",
        watch: ScorerWatch = UNWATCHED,
    ) -> Evaluation:
        """Run every criterion for sessions that applies; `invocation` stands for the session."""
        results, awaits = [], False
        for criterion in self.criteria_for(match, invocation, session=True):
            if judging == "unconfigured" or not asks_model(criterion.scorer):
                results.append(_run_session(criterion, invocation, session.turns, match, watch))
            elif judging == "later":
                awaits = True
            else:
                results.append(Result(criterion, _NOT_JUDGED[judging], "not_evaluated"))
        return Evaluation(
            invocation, match, tuple(results), SESSION, revision, awaits, session=session
        )


def result_of(criterion: Criterion, score: object) -> Result:
    """The result for what a scorer, which is third-party code, has returned. It is an error if that
    is no score, if its value is outside the scorer's range, or if it has neither a value nor a
    reason: nobody would miss the value. A value becomes a `float`, and a reason must be a text,
    because the store cannot write the objects of other libraries.
    """
    if not isinstance(score, Score):
        return failed(criterion, TypeError(f"returned {type(score).__name__}, expected a Score"))
    reason: object = score.reason
    if not isinstance(reason, str | None):
        return failed(criterion, _wrong("reason", reason, "a text"))
    value = score.value
    if value is None and score.reason is None:
        message = "returned neither a value nor a reason why there is none"
        return Result(criterion, Score(None, None, message, score.details), "error")
    if value is None:
        return Result(criterion, score, "not_evaluated")
    if type(value) is not float:
        if not hasattr(value, "__float__"):
            return failed(criterion, _wrong("value", value, "a number"))
        value = float(value)
        score = replace(score, value=value)
    if not in_range(criterion.scorer, value):
        low, high = criterion.scorer.low, criterion.scorer.high
        message = f"{value} is outside [{low}, {high}]"
        return Result(criterion, Score(None, None, message, score.details), "error")
    return Result(criterion, score, criterion.verdict(value))


def _wrong(part: str, found: object, expected: str) -> TypeError:
    quoted = repr(found)[:_MAX_QUOTED]
    return TypeError(f"returned the {part} {quoted}, expected {expected}")


def failed(criterion: Criterion, error: BaseException) -> Result:
    """The result for a scorer that raised. The text of its exception may raise, too."""
    try:
        text = str(error)
    except Exception:
        text = "its text cannot be read"
    return Result(criterion, Score(None, None, f"{type(error).__name__}: {text}"), "error")


def _with_turn(invocation: Invocation, match: Match) -> Invocation:
    """The invocation with its position in the conversation, if the collector has numbered it."""
    reference = match.reference  # with a single turn it says nothing about the position
    numbered = reference is not None and len(reference.turns) > 1
    if invocation.turn is not None or match.turn_index is None or not numbered:
        return invocation
    return replace(invocation, turn=match.turn_index)


def _run_session(
    criterion: Criterion,
    invocation: Invocation,
    turns: tuple[SessionTurn, ...],
    match: Match,
    watch: ScorerWatch,
) -> Result:
    scorer = criterion.scorer
    assert scores_sessions(scorer)
    return _called(
        criterion, lambda: scorer.score_session(turns, match.reference), invocation, watch
    )


def _run(criterion: Criterion, invocation: Invocation, match: Match, watch: ScorerWatch) -> Result:
    if "missing_root" in invocation.flags:
        score = Score.not_evaluated("incomplete", "the agent's own span never arrived")
        return Result(criterion, score, "not_evaluated")
    scorer, actual = criterion.scorer, _with_turn(invocation, match)
    return _called(criterion, lambda: scorer.score(actual, match.turn), invocation, watch)


def _called(
    criterion: Criterion, score: Callable[[], object], invocation: Invocation, watch: ScorerWatch
) -> Result:
    """The result of a call of a scorer, which is third-party code and may raise anything."""
    since = watch.clock()
    try:
        result = result_of(criterion, score())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        watch.on_failure(criterion.name, error, invocation.trace_id)
        return failed(criterion, error)
    finally:
        watch.seconds[criterion.name] += watch.clock() - since
    if result.verdict == "error":
        watch.on_failure(criterion.name, None, invocation.trace_id)
    return result
